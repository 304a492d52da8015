import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.scripted_judges import ScriptedEmbeddings, ScriptedJudge

from graphrag_eval_lc.config import load_config
from graphrag_eval_lc.errors import ConfigError, JudgeError, MissingExtraError
from graphrag_eval_lc.judges import ragas_engine
from graphrag_eval_lc.judges.judging import Judges
from graphrag_eval_lc.judges.model_interface import UnusableAnswerError
from graphrag_eval_lc.judges.ragas_engine import ragas_module


@pytest.fixture
def ragas_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ragas", None)


@pytest.fixture
def broken_ragas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the file of a package that shadows any installed ragas."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "ragas"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "ragas").mkdir()
    ragas_engine._kinds.cache_clear()
    yield tmp_path / "ragas" / "__init__.py"
    ragas_engine._kinds.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "ragas"]:
        del sys.modules[name]


@pytest.mark.usefixtures("ragas_is_absent")
def test_missing_ragas_is_an_error_with_the_fix() -> None:
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
def test_broken_ragas_is_an_error_with_the_reason(content: str, reason: str, broken_ragas: Path) -> None:
    broken_ragas.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        ragas_module("ragas")
    assert str(caught.value) == (
        f"key judges.engine: ragas is installed and cannot be imported: {reason}. "
        "Run: pip install 'graphrag-eval-lc[ragas]', or leave engine out."
    )


@pytest.mark.parametrize(("environment", "expected"), [(None, "true"), ("false", "false")])
def test_telemetry_is_off_unless_the_environment_says_otherwise(
    environment: str | None, expected: str, broken_ragas: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken_ragas.write_text("import os; TRACKED = os.environ['RAGAS_DO_NOT_TRACK']", encoding="utf-8")
    monkeypatch.setenv("RAGAS_DO_NOT_TRACK", environment or "")
    if environment is None:
        monkeypatch.delenv("RAGAS_DO_NOT_TRACK")
    assert expected == ragas_module("ragas").TRACKED
    assert os.environ["RAGAS_DO_NOT_TRACK"] == expected


FAKE = {
    "llms/base.py": "class InstructorBaseRagasLLM: ...",
    "embeddings/base.py": "class BaseRagasEmbedding: ...",
    "metrics/collections.py": """
from types import SimpleNamespace
from pydantic import BaseModel
class Verdict(BaseModel):
    verdict: int
class AnswerRelevancy:
    def __init__(self, llm, embeddings):
        self.llm, self.embeddings = llm, embeddings
    async def ascore(self, user_input, response):
        try:
            verdicts = [(await self.llm.agenerate(response, Verdict)).verdict for _ in range(3)]
            vectors = await self.embeddings.aembed_texts([user_input])
        except Exception as problem:
            raise RuntimeError("wrapped") from problem
        return SimpleNamespace(value=sum(verdicts) + vectors[0][0])
""",
}


@pytest.mark.parametrize("is_asked", [True, False])
async def test_ragas_uses_the_judges_models_and_reports_their_errors(broken_ragas: Path, is_asked: bool) -> None:
    for name, content in {"__init__.py": "", **FAKE}.items():
        (broken_ragas.parent / name).parent.mkdir(exist_ok=True)
        (broken_ragas.parent / name).write_text(content, encoding="utf-8")
    judge = ScriptedJudge([{"verdict": 1}] * 3 if is_asked else [JudgeError("refused")])
    metric = ragas_engine.AnswerRelevance(judge, ScriptedEmbeddings({"Q?": [0.5]}))
    if not is_asked:
        with pytest.raises(UnusableAnswerError, match="refused"):
            await metric.ascore(user_input="Q?", response="A.")
        return
    score = await metric.ascore(user_input="Q?", response="A.")
    assert (score.value, len({sent.system for sent in judge.asked})) == (3.5, 3)
    assert score.cost == pytest.approx(0.031)


@pytest.mark.usefixtures("ragas_is_absent")
def test_ragas_engine_needs_ragas_before_the_first_request() -> None:
    model = {"base_url": "http://127.0.0.1:1", "api_key": "k"}
    config = {"llm": {"generation": model, "embedding": model}, "judges": {"engine": "ragas"}}
    with pytest.raises(MissingExtraError, match="ragas"):
        Judges.from_config(load_config(config))


@pytest.mark.usefixtures("ragas_is_absent")
def test_correctness_alone_does_not_need_ragas() -> None:
    model = {"base_url": "http://127.0.0.1:1", "api_key": "k"}
    judges = {"engine": "ragas", "metrics": ["answer_correctness"]}
    judges = Judges.from_config(load_config({"llm": {"generation": model, "embedding": model}, "judges": judges}))
    assert judges is not None
    assert judges.describe()["metrics"] == ["answer_correctness"]
