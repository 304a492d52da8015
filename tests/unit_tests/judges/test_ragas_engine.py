import os
import sys
from pathlib import Path

import pytest

from graphrag_eval_lc.config import load_config
from graphrag_eval_lc.errors import ConfigError, MissingExtraError
from graphrag_eval_lc.judges.judging import Judges
from graphrag_eval_lc.judges.ragas_engine import ragas_module


@pytest.fixture
def ragas_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ragas", None)


@pytest.fixture
def broken_ragas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the file of a package that goes before any ragas that is installed."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "ragas"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "ragas").mkdir()
    return tmp_path / "ragas" / "__init__.py"


@pytest.mark.usefixtures("ragas_is_absent")
def test_absent_ragas_is_one_sentence_with_the_mend() -> None:
    with pytest.raises(MissingExtraError) as caught:
        ragas_module("ragas")
    assert str(caught.value) == (
        "judges.engine: ragas needs the package ragas, which is not installed. "
        "Run: pip install 'graphrag-eval-lc[ragas]'"
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("import openai.no_such_module", "ModuleNotFoundError: No module named 'openai.no_such_module'"),
        ("raise AttributeError('module numpy has no attribute x')", "AttributeError: module numpy has no attribute x"),
        ("raise RuntimeError", "RuntimeError"),
    ],
)
def test_broken_ragas_is_one_sentence_with_the_reason(content: str, reason: str, broken_ragas: Path) -> None:
    broken_ragas.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        ragas_module("ragas")
    assert str(caught.value) == (
        f"key judges.engine: ragas is installed and cannot be imported: {reason}. "
        "Run: pip install 'graphrag-eval-lc[ragas]', or leave engine out."
    )


def test_a_ragas_of_old_without_the_metrics_is_broken(broken_ragas: Path) -> None:
    broken_ragas.write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"No module named 'ragas\.metrics'"):
        ragas_module("ragas.metrics.collections")


@pytest.mark.parametrize(("given", "then"), [(None, "true"), ("false", "false")])
def test_telemetry_is_off_unless_the_environment_says_otherwise(
    given: str | None, then: str, broken_ragas: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken_ragas.write_text("import os; TRACKED = os.environ['RAGAS_DO_NOT_TRACK']", encoding="utf-8")
    monkeypatch.setenv("RAGAS_DO_NOT_TRACK", given or "")
    if given is None:
        monkeypatch.delenv("RAGAS_DO_NOT_TRACK")
    assert then == ragas_module("ragas").TRACKED
    assert os.environ["RAGAS_DO_NOT_TRACK"] == then


@pytest.mark.usefixtures("ragas_is_absent")
def test_judges_with_the_engine_ragas_need_ragas_before_anything_is_asked() -> None:
    model = {"base_url": "http://127.0.0.1:1", "api_key": "k"}
    config = {"llm": {"generation": model, "embedding": model}, "judges": {"engine": "ragas"}}
    with pytest.raises(MissingExtraError, match="ragas"):
        Judges.from_config(load_config(config))


@pytest.mark.usefixtures("ragas_is_absent")
def test_correctness_alone_does_without_ragas() -> None:
    model = {"base_url": "http://127.0.0.1:1", "api_key": "k"}
    judges = {"engine": "ragas", "metrics": ["answer_correctness"]}
    made = Judges.from_config(load_config({"llm": {"generation": model, "embedding": model}, "judges": judges}))
    assert made is not None
    assert made.describe()["metrics"] == ["answer_correctness"]
