"""Choosing the baseline of a run in a folder, and detecting slow drift with it."""

import random
from pathlib import Path
from typing import Any

import pytest
from support.scored_runs import write_run

from graphrag_eval_lc import compare_runs, trend
from graphrag_eval_lc.errors import GraphRAGEvalError, NothingToCompareError, OptionError, RunFolderError
from graphrag_eval_lc.run_store import baseline_in

C1, C2 = ({"git": {"commit": commit, "clean": True}} for commit in ("c1", "c2"))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return runs of which the second is the best, the first three are of one commit, and one has another dataset."""
    folder = tmp_path / "runs"
    questions = {f"q{index}": "d" for index in range(24)}
    for day, (name, right, record) in enumerate(
        [
            ("a", 16, C1),
            ("b", 20, C1),
            ("other-data", 24, {**C1, "dataset": {"sha256": "d2"}}),
            ("dirty", 12, {"git": {"commit": "c1", "clean": False}}),
            ("config", 13, {**C1, "config": {"steps": {"grading": "graded"}}}),
            ("stopped", 24, {**C2, "stopped": {"message": "budget"}}),
            ("part", 24, {**C2, "questions": {"q0": "d"}}),
            ("last", 12, {**C2, "label": "today"}),
        ],
        start=1,
    ):
        scores: list[float | None] = [float(index < right) for index in range(24)]
        write_run(
            folder / name, day, scores, **{"questions": questions, "config": {"steps": {"grading": "binary"}}, **record}
        )
    return folder


@pytest.mark.parametrize(
    ("run", "against", "expected"),
    [
        ("last", "previous", (["part"], 1)),
        ("last", "first", (["a", "b"], 1)),
        ("last", "best", (["a", "b"], 3)),  # a and b together, dirty, and config
        ("b", "best", (["a"], 1)),
        ("last", "dirty", (["dirty"], 1)),
        ("a", "today", (["last"], 1)),  # a named run may be later
        ("last", "b", (["a", "b"], 1)),
        ("b", "b", None),
        ("a", "first", None),
        ("other-data", "first", None),
    ],
)
def test_baseline_is_chosen_among_comparable_runs(
    store: Path, run: str, against: str, expected: tuple[list[str], int] | None
) -> None:
    if expected is None:
        kind: type[GraphRAGEvalError] = NothingToCompareError
        what = "no earlier finished run with the questions and the dataset"
        if against == run:
            kind, what = RunFolderError, "is not compared with itself"
        with pytest.raises(kind, match=what):
            baseline_in(store, store / run, against)
        return
    found = baseline_in(store, store / run, against)
    assert ([each.path.name for each in found.runs], found.chosen_from) == expected
    (point,) = (point for point in trend(store, against=against).points if point.run.path.name == run)
    if against != "previous":
        assert point.baseline == found


def test_run_outside_the_folder_is_compared_with_those_in_it(store: Path, tmp_path: Path) -> None:
    run = write_run(tmp_path / "elsewhere", 1, [1.0] * 24)
    assert [each.path.name for each in baseline_in(store, run, "previous").runs] == ["last"]
    assert [each.path.name for each in baseline_in(store, run, "previous", but=[store / "last"]).runs] == ["part"]
    with pytest.raises(OptionError, match=r"found no run todya.*Did you mean today\?"):
        baseline_in(store, run, "todya")


def test_runs_of_one_commit_are_pooled_as_repeats(store: Path) -> None:
    baseline = baseline_in(store, store / "last", "first")
    metric = compare_runs(baseline, store / "last", metrics=["steps_score"]).pairs[0].metric("steps_score")
    assert metric is not None
    assert (metric.mean_a, metric.mean_b) == (18 / 24, 12 / 24)
    point = trend(store, against="first").points[-1]
    assert point.differences["steps_score"] == metric
    assert trend(store, against="first", last=1).points[0].differences == point.differences
    assert trend(store, against="first").rows()[-1]["against"] == f"{store / 'a'} + {store / 'b'}"


def test_comparison_with_the_best_run_is_corrected_for_its_selection(store: Path) -> None:
    plain, best = (
        compare_runs(a, store / "last", metrics=["steps_score"]).pairs[0].metrics[0]
        for a in (baseline_in(store, store / "last", "first"), baseline_in(store, store / "last", "best"))
    )
    assert best.p_value == min(1.0, 3 * plain.p_value)
    assert (best.power or 0) <= (plain.power or 0)
    assert plain.interval is not None
    assert best.interval is not None
    assert best.interval.low <= plain.interval.low
    assert best.confidence == pytest.approx(1 - 0.05 / 3)
    warnings = compare_runs(baseline_in(store, store / "last", "best"), store / "last").warnings
    assert "A is the best of 3 runs" in warnings[0]


def drifting_runs(folder: Path, loss: float, seed: int, runs: int = 20) -> Path:
    """Write runs of 400 questions in 50 templates, each scoring slightly lower than the one before."""
    chance = random.Random(seed)
    easy = [min(0.95, max(0.3, chance.gauss(0.8, 0.15))) for _ in range(400)]
    for day in range(runs):
        scores: list[float | None] = [float(chance.random() < each - loss * day) for each in easy]
        write_run(folder / f"r{day:02}", day + 1, scores, templates=50)
    return folder


def first_found(folder: Path, against: str) -> list[int]:
    points = trend(folder, against=against).points
    return [at for at, point in enumerate(points) if any(d.verdict == "worse" for d in point.differences.values())]


@pytest.mark.full
def test_loss_of_a_hundredth_per_run_is_detected(tmp_path: Path) -> None:
    drifting = drifting_runs(tmp_path / "drift", 0.01, seed=1)
    found: dict[str, Any] = {against: first_found(drifting, against) for against in ("previous", "first", "best")}
    assert len(found["previous"]) <= 3
    for against in ("first", "best"):
        assert found[against][0] <= 12
        assert set(range(14, 20)) <= set(found[against])
    steady = drifting_runs(tmp_path / "steady", 0.0, seed=2)
    assert all(len(first_found(steady, against)) <= 1 for against in ("first", "best"))
