import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.run_folder import FORMAT_VERSION, RunFolder, json_text, yaml_text

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(json_values)
def test_json_text_is_utf_8_and_reads_back(value: Any) -> None:
    text = json_text(value)
    assert "\n" not in text
    assert json.loads(text.encode("utf-8")) == value


def test_json_text_takes_what_json_does_not() -> None:
    value = {"nan": float("nan"), "inf": [float("inf"), float("-inf")], "surrogate": "\ud800", "other": Path("x")}
    text = json_text(value).encode("utf-8")
    assert json.loads(text) == {"nan": "NaN", "inf": ["Infinity", "-Infinity"], "surrogate": "\ud800", "other": "x"}


def test_yaml_text_keeps_order_and_writes_equal_parts_out() -> None:
    part = {"mean": 1.0}
    text = yaml_text({"b": part, "a": part})
    assert text == "b:\n  mean: 1.0\na:\n  mean: 1.0\n"


def test_yaml_text_escapes_lone_surrogates_and_reads_back() -> None:
    value = {"per_template": {"t\ud83d": {"mean": 1.0}}, "query": "a\nb\ud83d"}
    text = yaml_text(value)
    text.encode("utf-8")
    assert yaml.safe_load(text) == value


def test_json_text_takes_keys_that_are_no_texts() -> None:
    assert json.loads(json_text({(1, 2): 3})) == {"(1, 2)": 3}


def test_files_of_a_run(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "runs" / "first")
    with folder.journal() as journal:
        journal.add({"question_id": "q1"})
        assert (folder.path / "responses.jsonl").read_text() == '{"question_id": "q1"}\n'
        journal.add({"question_id": "q2"})
    folder.write_results([{"question_id": "q1"}])
    folder.write_aggregates({"micro": {}})
    folder.write_run({"run_id": "r"})
    assert len((folder.path / "responses.jsonl").read_text().splitlines()) == 2
    assert json.loads((folder.path / "results.jsonl").read_text()) == {"question_id": "q1"}
    assert yaml.safe_load((folder.path / "aggregates.yaml").read_text()) == {"micro": {}}
    assert json.loads((folder.path / "run.json").read_text()) == {"format_version": FORMAT_VERSION, "run_id": "r"}
    assert not list(folder.path.glob("*.partial"))


def test_folder_that_holds_a_run_is_left_alone_unless_it_may_be_replaced(tmp_path: Path) -> None:
    RunFolder(tmp_path).write_run({"run_id": "old"})
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RunFolderError, match="holds a run already"):
        RunFolder(tmp_path)
    assert json.loads((tmp_path / "run.json").read_text())["run_id"] == "old"
    RunFolder(tmp_path, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError, match=r"file/run: cannot be written \(Not a directory\)"):
        RunFolder(tmp_path / "file" / "run")


def test_folder_that_vanishes_is_one_sentence(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.path.rmdir()
    with pytest.raises(RunFolderError, match=r"run\.json: cannot be written \(No such file or directory\)"):
        folder.write_run({})
