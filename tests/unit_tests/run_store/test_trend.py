"""How scores change across the runs of a folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.scored_runs import write_run

from graphrag_eval_lc import compare_runs, trend
from graphrag_eval_lc.errors import OptionError, RunFolderError
from graphrag_eval_lc.metrics.intervals import mean_interval

Change = Callable[..., None]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a folder of three runs, not written in order of their start times."""
    folder = tmp_path / "runs"
    write_run(folder / "c", 3, [0.0, 0.0, 1.0, 0.0] * 6, tags=["x", "nightly"])
    write_run(folder / "a", 1, [1.0, 0.0, 1.0, None] * 6, label="first", tags=["x"])
    write_run(folder / "b", 2, [1.0, 1.0, 1.0, None] * 6, git={"commit": "c0ffee", "clean": True}, tags=["x"])
    return folder


def test_runs_are_ordered_by_start_time(store: Path) -> None:
    assert [point.run.label for point in trend(store).points] == ["first", "b", "c"]
    assert [point.run.label for point in trend(store, last=2).points] == ["b", "c"]
    assert [point.run.label for point in trend(store, tags=["x", "nightly"]).points] == ["c"]


def test_mean_includes_failed_questions_and_has_the_reports_interval(store: Path) -> None:
    value = trend(store).points[0].values["steps_score"]
    assert (value.mean, value.answered, value.number_of_questions) == (0.5, pytest.approx(2 / 3), 24)
    clusters = [index % 4 for index in range(24)]
    interval = mean_interval([1.0, 0.0, 1.0, 0.0] * 6, clusters, bounds=(0, 1))
    assert interval is not None
    assert (value.low, value.high, value.note) == (interval.low, interval.high, interval.note)


def test_difference_equals_a_comparison_with_the_previous_run(store: Path) -> None:
    first, second, third = trend(store).points
    assert first.differences == {}
    compared = compare_runs(store / "a", store / "b", metrics=["steps_score"]).pairs[0].metric("steps_score")
    assert second.differences["steps_score"] == compared
    assert third.differences["steps_score"].difference == -0.5


def test_templates_have_their_own_means(store: Path) -> None:
    found = trend(store)
    assert found.templates("steps_score") == ["t0", "t1", "t2", "t3"]
    assert [round(point.templates["steps_score"]["t1"].mean, 3) for point in found.points] == [0, 1, 0]
    only = trend(store, template_ids=["t1"])
    assert [point.values["steps_score"].mean for point in only.points] == [0, 1, 0]
    assert only.points[0].number_of_questions == 6


def test_costs_are_shown_as_well(store: Path) -> None:
    assert [dict(point.spent) for point in trend(store).points] == [
        {"total_tokens": 100.0},
        {"total_tokens": 200.0},
        {"total_tokens": 300.0},
    ]


@pytest.mark.parametrize(
    ("before", "after", "description"),
    [
        (
            {"dataset": {"sha256": "d1"}, "questions": {"a": "1", "b": "2"}},
            {"dataset": {"sha256": "d2"}, "questions": {"b": "3", "c": "4"}},
            "the dataset: questions 1 new, 1 gone, 1 with another text (d1 → d2)",
        ),
        ({}, {"dataset": {"sha256": "d2"}}, "the dataset: its references or other keys (d1 → d2)"),
        (
            {"config": {"steps": {"grading": "binary"}}},
            {"config": {"steps": {"grading": "graded"}}},
            "the config: steps.grading",
        ),
        (
            {"judges": {"generation": "openai:a"}},
            {"judges": {"generation": "openai:b"}},
            "the judge: openai:a → openai:b",
        ),
        (
            {"judges": {"prompts": {"p": "1", "gone": "1"}}},
            {"judges": {"prompts": {"p": "2", "new": "1"}}},
            "the judges' prompts: p",
        ),
        (
            {"questions": {"a": "1", "b": "2"}},
            {"questions": {"a": "1"}},
            "which questions of the dataset were asked: 1 gone",
        ),
        (
            {"evaluators": [{"name": "a"}, {"name": "b"}]},
            {"evaluators": [{"name": "b"}, {"name": "c"}]},
            "the evaluators: with c, without a",
        ),
        ({"agent": "a.py:one"}, {"agent": "a.py:two"}, "the agent: a.py:one → a.py:two"),
        ({"agent_config": {"x": 1}}, {"agent_config": {"x": 2}}, "the agent's config"),
        (
            {"agent_digests": {"a.py": "1", "b.py": "2"}},
            {"agent_digests": {"a.py": "3", "b.py": "2"}},
            "the agent's source: a.py",
        ),
        ({"repeats": 3}, {}, "repeats: 3 → 1"),
        ({"capture": {"redact": None}}, {"capture": {"redact": "m:f"}}, "what is kept of runs: redact"),
        (
            {"versions": {"graphrag-eval-lc": "0.1"}},
            {"versions": {"graphrag-eval-lc": "0.2"}},
            "graphrag-eval-lc: 0.1 → 0.2",
        ),
    ],
)
def test_other_changes_are_listed(tmp_path: Path, before: Any, after: Any, description: str) -> None:
    write_run(tmp_path / "a", 1, [1.0], **before)
    write_run(tmp_path / "b", 2, [1.0], **after)
    first, second = trend(tmp_path).points
    assert list(first.changes) == []
    assert list(second.changes) == [description]


def test_gates_labels_and_api_keys_are_not_changes(tmp_path: Path) -> None:
    write_run(tmp_path / "a", 1, [1.0], config={"gates": [], "llm": {"generation": {"api_key": "a"}}}, label="x")
    write_run(tmp_path / "b", 2, [1.0], config={"gates": [{"max_lost": 1}], "llm": {"generation": {"api_key": "a"}}})
    assert list(trend(tmp_path).points[1].changes) == []


def test_unfinished_runs_are_left_out_with_a_warning(store: Path, change: Change) -> None:
    (store / "b" / "aggregates.yaml").unlink()
    found = trend(store)
    assert [point.run.label for point in found.points] == ["first", "c"]
    assert found.warnings == (f"1 unfinished run left out: {store / 'b'}",)


def test_run_without_the_score_has_a_gap(store: Path) -> None:
    path = store / "b" / "results.jsonl"
    path.write_text(path.read_text().replace("steps_score", "other_score"))
    first, second, third = trend(store, ["steps_score"]).points
    assert "steps_score" not in second.values
    assert third.differences == {}
    assert first.values["steps_score"].mean == 0.5


def test_runs_without_common_questions_are_not_compared(store: Path) -> None:
    path = store / "b" / "results.jsonl"
    path.write_text(path.read_text().replace('"question_id": "', '"question_id": "z'))
    assert [len(point.differences) for point in trend(store).points] == [0, 0, 0]


def test_rows_are_per_run_or_per_template(store: Path, tmp_path: Path) -> None:
    found = trend(store)
    row = found.rows()[1]
    assert (row["label"], row["commit"], row["mean"], row["verdict"]) == ("b", "c0ffee", 0.75, "cannot tell")
    assert len(found.rows("templates")) == 12
    assert found.to_csv(tmp_path / "t.csv").read_text().count("\n") == 4
    assert list(found.to_pandas()["mean"]) == [0.5, 0.75, 0.25]
    with pytest.raises(OptionError, match="unknown kind of rows 'x'"):
        found.rows("x")  # type: ignore[arg-type]


def test_plot_has_a_point_for_each_run(store: Path) -> None:
    ax = trend(store).plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["first", "b", "c"]
    assert list(ax.lines[-1].get_xdata()) == [0.5, 0.75, 0.25]


def test_unknown_names_are_errors_with_the_nearest(store: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"none of the runs has the score step_score\. Did you mean steps_score\?"):
        trend(store, ["step_score"])
    with pytest.raises(OptionError, match="total_tokens is not a score"):
        trend(store, ["total_tokens"])
    with pytest.raises(OptionError, match=r"none of the runs has the template t9\. Did you mean t"):
        trend(store, template_ids=["t9"])
    with pytest.raises(OptionError, match="none of the runs has these tags"):
        trend(store, tags=["absent"])
    with pytest.raises(RunFolderError, match="the folder does not exist"):
        trend(tmp_path / "absent")
    (tmp_path / "empty").mkdir()
    with pytest.raises(OptionError, match="no run in the folder finished"):
        trend(tmp_path / "empty")
