import json
from pathlib import Path

import pytest

from graphrag_eval_lc.cli import main


def exit_code(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ending:
        main(arguments)
    code = ending.value.code
    assert code is None or isinstance(code, int)
    return code or 0


@pytest.mark.parametrize("name", ["config", "dataset", "responses", "run"])
def test_schema_is_printed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("dataset", "schema", name) == 0
    assert "$schema" in json.loads(capsys.readouterr().out)


def test_schema_is_written_to_a_file(tmp_path: Path) -> None:
    assert exit_code("dataset", "schema", "config", "-o", str(tmp_path / "config.schema.json")) == 0
    assert "gates" in json.loads((tmp_path / "config.schema.json").read_text())["properties"]


def test_unknown_schema_names_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("dataset", "schema", "confg") == 2
    assert "There are config, dataset, responses, " in capsys.readouterr().err
