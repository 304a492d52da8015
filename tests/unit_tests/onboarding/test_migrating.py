"""Migrating graphrag-eval's config, and checking which published figures the new settings reproduce."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from graphrag_eval_lc import compute_aggregates, load_dataset, load_responses, migrate, run_evaluation
from graphrag_eval_lc.config import load_config
from graphrag_eval_lc.errors import (
    ComparisonError,
    ConfigError,
    GraphRAGEvalError,
    NothingToCompareError,
    RunFolderError,
)
from graphrag_eval_lc.onboarding.migration import VERSIONS

ONE, TWO = ({"name": "lookup", "args": {}, "output": output} for output in "12")
DATASET: list[Any] = [
    {
        "template_id": "t",
        "questions": [
            {"id": "groups", "question_text": "?", "reference_steps": [[ONE], [TWO]]},
            {"id": "failed", "question_text": "?", "reference_steps": [[ONE]]},
        ],
    }
]
LAST_ALONE = {"question_id": "groups", "actual_steps": [{**TWO, "id": "s1", "status": "success"}]}
FAILURE = {"question_id": "failed", "status": "error", "error": "timeout"}
RESPONSES: list[Any] = [LAST_ALONE, FAILURE]


def scores(**found: float) -> list[dict[str, Any]]:
    return [{"question_id": identifier, "steps_score": score} for identifier, score in found.items()]


@pytest.mark.parametrize(("published", "version"), [(0.5, "6"), (1.0, "5"), (0.25, "6")])
def test_version_that_reproduces_more_figures_is_written(published: float, version: str) -> None:
    found = migrate(DATASET, RESPONSES, published=scores(groups=published))
    assert (found.version, found.settings) == (version, VERSIONS[version])
    assert [each.published for each in found.differences] == [0.25] * (published == 0.25)


@pytest.mark.parametrize("version", sorted(VERSIONS))
def test_aggregates_are_compared(version: str) -> None:
    settings = VERSIONS[version]
    aggregates = compute_aggregates(run_evaluation(DATASET, RESPONSES, settings), settings)
    found = migrate(DATASET, RESPONSES, published=aggregates)
    assert (found.version, found.differences) == (version, ())
    assert found.compared > 20
    aggregates["micro"]["steps_score"]["mean"] = 0.125
    [difference] = migrate(DATASET, RESPONSES, published=[aggregates]).differences
    assert (difference.question_id, difference.key, difference.published) == (None, "micro/steps_score/mean", 0.125)


def test_unmeasured_value_equals_a_published_zero() -> None:
    zeros = dict.fromkeys(("sum", "mean", "median", "min", "max"), 0)
    found = migrate(DATASET, RESPONSES, published={"micro": {"input_tokens": zeros}})
    assert (found.compared, found.differences) == (5, ())


@pytest.mark.parametrize(
    ("published", "why"),
    [
        ({"steps_score": 0.25}, "Reference step 1.1 (lookup) has no match here: "),
        ({"total_tokens": 7}, "Check that dataset and responses are those that were scored."),
        ({"question_id": "other", "steps_score": 1.0}, "do not have the question"),
    ],
)
def test_difference_says_why(published: dict[str, Any], why: str) -> None:
    rest = scores(failed=0.0)
    found = migrate(DATASET, RESPONSES, published=[*rest, {"question_id": "groups", **published}])
    assert [why in each.why for each in found.differences] == [True]
    assert found.verdict == "1 of 2 published figures are equal with the settings of graphrag-eval 6."


def test_notes_name_skipped_questions_and_judged_figures() -> None:
    published = [{"question_id": "groups", "steps_score": 0.5, "answer_f1": 0.5, "politeness": 3}]
    config = {
        "llm": {"generation": {"provider": "openai", "model": "m"}},
        "custom_evaluations": [
            {"name": "polite", "inputs": ["actual_answer"], "instructions": "Judge.", "outputs": {"politeness": "0-5"}}
        ],
    }
    found = migrate(DATASET, [LAST_ALONE], config=config, published=published)
    assert found.differences == ()
    left_out, judged = found.notes
    assert left_out.startswith("1 question without a response is left out")
    assert "answer_f1, politeness" in judged


def test_without_published_figures_version_6_is_assumed() -> None:
    found = migrate(DATASET, RESPONSES)
    assert found.settings == VERSIONS["6"]
    assert found.verdict.startswith("Nothing published to compare with")


def test_written_config_reproduces_the_figures(tmp_path: Path) -> None:
    (tmp_path / "qa.yaml").write_text(yaml.safe_dump(DATASET))
    (tmp_path / "responses.jsonl").write_text(json.dumps(LAST_ALONE) + "\n")
    (tmp_path / "old.yaml").write_text("llm: {generation: {provider: openai, model: m}}")
    found = migrate(
        tmp_path / "qa.yaml",
        tmp_path / "responses.jsonl",
        config=tmp_path / "old.yaml",
        published=scores(groups=0.5),
        output_dir=tmp_path / "moved",
    )
    [path] = found.files
    config = load_config(path)
    assert config.run == {"dataset": "../qa.yaml", "output": "runs"}
    assert config.llm is not None
    scored = load_config({"steps": config.steps, "aggregates": config.aggregates})
    [result] = run_evaluation(
        load_dataset(tmp_path / "qa.yaml"), load_responses(tmp_path / "responses.jsonl"), scored, answered_only=True
    )
    assert result["steps_score"] == 0.5


def test_dataset_in_memory_is_written_and_nothing_is_overwritten_by_default(tmp_path: Path) -> None:
    migrate(DATASET, RESPONSES, output_dir=tmp_path)
    assert load_dataset(tmp_path / "questions.yaml") == DATASET
    with pytest.raises(RunFolderError, match="exists already"):
        migrate(DATASET, RESPONSES, output_dir=tmp_path)
    assert len(migrate(DATASET, RESPONSES, output_dir=tmp_path, overwrite=True).files) == 2
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError):
        migrate(DATASET, RESPONSES, output_dir=tmp_path / "file" / "moved")


@pytest.mark.parametrize(
    ("published", "error", "complaint"),
    [
        ({"scores": 1}, ComparisonError, "not results or aggregates"),
        ([[]], ComparisonError, "not results or aggregates"),
        (scores(other=1.0), NothingToCompareError, "none of the 1 published question"),
        ([{"question_id": "groups", "steps_score": "high"}], ComparisonError, "'high' is no number"),
    ],
)
def test_published_figures_must_be_graphrag_evals(
    published: Any, error: type[GraphRAGEvalError], complaint: str
) -> None:
    with pytest.raises(error, match=complaint):
        migrate(DATASET, RESPONSES, published=published)


@pytest.mark.parametrize(("run", "version", "questions"), [("substations", "5", 190), ("timeseries", "6", 60)])
def test_recorded_runs_reproduce_all_published_figures(
    conformance_dir: Path, run: str, version: str, questions: int
) -> None:
    folder = conformance_dir / "real_runs" / run
    found = migrate(
        folder / "reference.yaml",
        folder / "responses.jsonl",
        published=[folder / "expected_scores.json", folder / "expected_summary.yaml"],
    )
    assert (found.version, found.differences) == (version, ())
    assert found.compared > questions + 100


def test_old_config_is_checked_before_scoring(tmp_path: Path) -> None:
    path = tmp_path / "old.yaml"
    path.write_text("llm:\n  generation:\n    provider: openai\n    model: m\n    temperature: 5\n")
    with pytest.raises(ConfigError, match=r"old.yaml, line 5, key llm.generation.temperature: 5 is not allowed here"):
        migrate(DATASET, RESPONSES, config=path)
