"""Scorers that are missing when a run is re-scored: rejected by name, or dropped on request and reported."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.scored_runs import record_in

from graphrag_eval_lc import compare_runs, run_benchmark, score_responses, score_run
from graphrag_eval_lc.benchmark.earlier_run import judging_warnings, missing_scorers
from graphrag_eval_lc.benchmark.run_benchmark import plan_benchmark
from graphrag_eval_lc.benchmark.score_options import CheckedScoreOptions
from graphrag_eval_lc.config import load_config
from graphrag_eval_lc.errors import OptionError, RunFolderError
from graphrag_eval_lc.matching import register_matcher

Forget = Callable[[], None]
DATASET: list[Any] = [
    {
        "template_id": "t",
        "questions": [
            {"id": "q", "question_text": "How many?", "reference_steps": [[{"name": "count_rows", "output": "7"}]]}
        ],
    }
]
STEP = {"name": "count_rows", "args": {}, "id": "c", "status": "success", "output": "7 rows"}
RESPONSES: list[Any] = [{"question_id": "q", "actual_answer": "seven rows", "actual_steps": [STEP]}]


def match_counts(reference: Any, actual: Any) -> float:
    return float(reference["output"] == str(actual["output"]).split()[0])


def answer_words(question: Any, response: Any) -> int:
    return len(response["actual_answer"].split())


def style(question: Any, response: Any) -> dict[str, Any]:
    return {"politeness": 0.5, "is_short": True, "tone": "calm"}


def register() -> None:
    register_matcher(name="count_rows")(match_counts)


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def folder(tmp_path: Path, forget_matchers: Forget) -> Path:
    """Return the folder of a run scored with a matcher and two evaluators, which are then unregistered."""
    register()
    score_responses(DATASET, RESPONSES, output_dir=tmp_path / "run", evaluators=[answer_words, style])
    forget_matchers()
    return tmp_path / "run"


# --- re-scoring ------------------------------------------------------------------------------------------------------


def test_missing_scorers_are_rejected_by_name(folder: Path) -> None:
    before = files_in(folder)
    with pytest.raises(RunFolderError) as caught:
        score_run(folder, dataset=DATASET)
    assert str(caught.value) == (
        f"{folder}: what scored the run is missing now: the matcher for count_rows ({__name__}:match_counts), "
        f"the evaluator answer_words ({__name__}:answer_words) and the evaluator style ({__name__}:style; it returned "
        "politeness, is_short); without them its scores would change or go. Add "
        f"--plugin {__name__}, --evaluator {__name__}:answer_words, --evaluator {__name__}:style "
        "(in Python, import or pass them); or --drop-missing (drop_missing=True) to score without."
    )
    assert files_in(folder) == before


def test_restored_scorers_score_as_before(folder: Path) -> None:
    register()
    run = score_run(folder, dataset=DATASET, evaluators=[answer_words, style])
    assert (run.results[0]["steps_score"], run.warnings) == (1.0, [])
    assert run.aggregates["micro"]["politeness"]["mean"] == 0.5
    with pytest.raises(RunFolderError, match=r"is missing now: the evaluator style \(.*; without it"):
        score_run(folder, dataset=DATASET, evaluators=[answer_words])


def test_missing_scorers_are_dropped_on_request_and_reported(folder: Path) -> None:
    run = score_run(folder, dataset=DATASET, evaluators=[style], drop_missing=True)
    assert run.warnings == [
        f"scored without the matcher for count_rows ({__name__}:match_counts) and "
        f"the evaluator answer_words ({__name__}:answer_words)"
    ]
    assert run.results[0]["steps_score"] == 0.0
    record = record_in(folder)
    assert (record["matchers"], [each["name"] for each in record["evaluators"]]) == ([], ["style"])
    assert score_run(folder, dataset=DATASET, evaluators=[style]).warnings == []


# --- resuming --------------------------------------------------------------------------------------------------------


def counting(question: str) -> str:
    return "seven rows"


def test_session_without_earlier_scorers_is_rejected(tmp_path: Path, forget_matchers: Forget) -> None:
    options: Any = {"output_dir": tmp_path, "progress": "off"}
    register()
    run_benchmark(counting, DATASET, evaluators=[answer_words], **options)
    run_benchmark(counting, DATASET, evaluators=[answer_words], retry_errors=True, **options)
    forget_matchers()
    before = files_in(tmp_path)
    for attempt in (run_benchmark, plan_benchmark):
        with pytest.raises(
            RunFolderError, match=r"count_rows .* and the evaluator answer_words .*; or --force \(force"
        ):
            attempt(counting, DATASET, **options)
    assert files_in(tmp_path) == before
    run = run_benchmark(counting, DATASET, force=True, **options)
    assert [warning for warning in run.warnings if "scored without the matcher for count_rows" in warning]
    assert record_in(tmp_path)["evaluators"] == []
    run_benchmark(counting, DATASET, evaluators=[answer_words], **options)
    with pytest.raises(OptionError, match="a lambda has no name"):
        plan_benchmark(counting, DATASET, evaluators=[lambda question, response: 1], **options)


# --- models ----------------------------------------------------------------------------------------------------------

JUDGED = {"generation": "anthropic:x", "embedding": "fake", "metrics": ["answer_correctness", "answer_relevance"]}
IN_CONFIG = {"llm": {"generation": {"model": "a"}, "embedding": {"model": "b"}}}


def missing_models(judges: dict[str, Any], before: dict[str, Any], now: Any, **given: Any) -> list[str]:
    earlier = {"judges": judges, "config": before, "matchers": [], "evaluators": []}
    options = CheckedScoreOptions(config=load_config(now, has_llm=True), **given)
    return [each.what for each in missing_scorers(earlier, options)]


def test_models_from_python_are_reported_as_missing() -> None:
    (model,) = missing_models(JUDGED, {"llm": None}, None)
    assert model == "the model anthropic:x (it judged answer_correctness, answer_relevance)"
    assert missing_models(JUDGED, {}, None, llm=object(), embeddings=object()) == []
    (model,) = missing_models(JUDGED, {}, None, llm=object())
    assert model == "the embedding model fake (answer_relevance needs it)"
    assert missing_models(JUDGED, {}, IN_CONFIG) == []
    assert missing_models(JUDGED, {}, {"answer_relevance": {"enabled": False}}, llm=object()) == []
    assert missing_models(JUDGED, {}, {"judges": {"metrics": ["answer_correctness"]}}, llm=object()) == []


def test_model_removed_from_the_config_is_not_missing() -> None:
    assert missing_models(JUDGED, IN_CONFIG, None) == []


def test_effect_of_another_config_on_judged_scores_is_reported() -> None:
    earlier = {"judges": {**JUDGED, "custom_evaluations": ["tone"]}}
    assert judging_warnings(earlier, earlier["judges"]) == []
    assert judging_warnings({}, JUDGED) == []
    assert judging_warnings(earlier, {**JUDGED, "generation": "openai:y", "metrics": ["answer_correctness"]}) == [
        "judged by openai:y now, and by anthropic:x before",
        "judged before and not any more, as the config does not ask for it: answer_relevance, tone",
    ]
    assert judging_warnings(earlier, None) == [
        "judged before and not any more, as the config does not ask for it: answer_correctness, answer_relevance, tone"
    ]


# --- opening a folder imports nothing --------------------------------------------------------------------------------


def test_code_named_by_a_folder_is_never_loaded(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("named_by_the_folder.py", "agent_of_the_folder.py"):
        Path(name).write_text("open('loaded', 'w').close()\ndef f(*_): ...")
    record = record_in(folder)
    record["agent"] = "agent_of_the_folder.py:f"
    record["matchers"] = [{"name": "count_rows", "function": "named_by_the_folder:f"}]
    record["evaluators"] = [{"name": "f", "function": "named_by_the_folder.py:f"}]
    record["config"]["capture"]["redact"] = "named_by_the_folder:f"
    (folder / "run.json").write_text(json.dumps(record))
    with pytest.raises(RunFolderError, match="named_by_the_folder"):
        score_run(folder, dataset=DATASET)
    score_run(folder, dataset=DATASET, drop_missing=True)
    compare_runs(folder, folder)
    assert record_in(folder)["config"]["capture"]["redact"] == "named_by_the_folder:f"
    assert not Path("loaded").exists()
