"""Recorded runs of real agents reproduce their published scores, matches and aggregates."""

import json
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import compute_aggregates, load_dataset, load_responses, run_evaluation
from graphrag_eval_lc.errors import DatasetError
from graphrag_eval_lc.files.reading import parse_yaml, read_text

RUNS = [
    pytest.param("substations", "last_group", 190, id="substations"),
    pytest.param("timeseries", "all_groups", 60, id="timeseries"),
]


def evaluated(folder: Path, scoring: str) -> list[dict[str, Any]]:
    results = run_evaluation(
        load_dataset(folder / "reference.yaml"),
        load_responses(folder / "responses.jsonl"),
        {"steps": {"scoring": scoring}},
    )
    return [dict(result) for result in results]


@pytest.mark.parametrize(("run", "scoring", "questions"), RUNS)
def test_every_question_has_its_published_score_and_matches(
    conformance_dir: Path, run: str, scoring: str, questions: int
) -> None:
    folder = conformance_dir / "real_runs" / run
    expected = json.loads((folder / "expected_scores.json").read_text())
    found = [
        {
            "question_id": result["question_id"],
            "status": result["status"],
            "steps_score": result["steps_score"],
            "matches": [[step.get("matches") for step in group] for group in result["reference_steps"]],
        }
        for result in evaluated(folder, scoring)
    ]
    assert len(found) == questions
    assert found == expected


# Metrics that graphrag-eval does not have.
FURTHER = {"steps_recall", "steps_precision", "steps_f1", "steps_order"}


def unequal(expected: Any, found: Any, path: str = "") -> list[str]:
    """Return the paths at which two nested structures of numbers differ by more than rounding."""
    if isinstance(expected, dict) and isinstance(found, dict):
        keys = sorted(expected.keys() | found.keys())
        return [line for key in keys for line in unequal(expected.get(key), found.get(key), f"{path}/{key}")]
    if isinstance(expected, int | float) and isinstance(found, int | float):
        return [] if found == pytest.approx(expected, rel=1e-12) else [f"{path}: {found} instead of {expected}"]
    return [] if expected == found else [f"{path}: {found} instead of {expected}"]


@pytest.mark.parametrize(("run", "scoring", "questions"), RUNS)
def test_aggregates_equal_the_published_ones(conformance_dir: Path, run: str, scoring: str, questions: int) -> None:
    folder = conformance_dir / "real_runs" / run
    summary = read_text(folder / "expected_summary.yaml", DatasetError, what="summary")
    expected = parse_yaml(summary, DatasetError, what="summary")
    found = compute_aggregates(evaluated(folder, scoring))
    assert found.pop("totals")["number_of_samples"] == questions
    parts = [*found["per_template"].values(), found["micro"], found["macro"]]
    further = [{key for key in part if key in FURTHER} for part in parts]
    assert all(keys == FURTHER for keys in further)
    for part in parts:
        for key in FURTHER:
            del part[key]
    assert unequal(expected, found) == []


@pytest.mark.parametrize(
    ("run", "scoring", "differing"),
    [
        ("substations", "last_group", 0),
        ("substations", "all_groups", 36),
        ("timeseries", "last_group", 10),
        ("timeseries", "all_groups", 0),
    ],
)
def test_readme_counts_the_scores_that_differ_by_scoring(
    conformance_dir: Path, run: str, scoring: str, differing: int
) -> None:
    folder = conformance_dir / "real_runs" / run
    expected = json.loads((folder / "expected_scores.json").read_text())
    published = {each["question_id"]: each["steps_score"] for each in expected}
    found = {result["question_id"]: result["steps_score"] for result in evaluated(folder, scoring)}
    assert found.keys() == published.keys()
    assert sum(found[key] != pytest.approx(published[key], abs=1e-12) for key in found) == differing
