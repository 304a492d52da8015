"""Which settings of two runs make their scores hard to compare."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import compare_runs

Scored = Callable[..., list[dict[str, Any]]]
STEPS = {"scoring": "last_group", "names": {}, "outputs": {}}


@pytest.fixture
def warnings_of(tmp_path: Path, scored: Scored) -> Callable[..., list[str]]:
    """Return the function that compares two runs that have the same results and these configs."""

    def warnings(*configs: dict[str, Any]) -> list[str]:
        for name, config in zip("ab", configs, strict=True):
            path = tmp_path / name
            path.mkdir(exist_ok=True)
            lines = (f"{json.dumps(result)}\n" for result in scored(*[1.0, 0.5] * 10))
            path.joinpath("results.jsonl").write_text("".join(lines))
            path.joinpath("run.json").write_text(json.dumps({"format_version": 1, "config": config}))
        return [text for text in compare_runs(tmp_path / "a", tmp_path / "b").warnings if "settings" in text]

    return warnings


@pytest.mark.parametrize(
    "other",
    [
        {"grading": "graded"},
        {"scoring": "all_groups"},
        {"kinds": {"read_cypher": "rows"}},
        {"rows": {"node_keys": ["iri"]}},
    ],
)
def test_steps_that_are_scored_otherwise_are_told_once(
    warnings_of: Callable[..., list[str]], other: dict[str, Any]
) -> None:
    [name] = other
    assert warnings_of({"steps": STEPS}, {"steps": {**STEPS, **other}}) == [
        f"A and B were scored with other settings (steps.{name}), so that their scores may not be comparable."
    ]


def test_what_an_older_version_did_not_tell_is_its_default(warnings_of: Callable[..., list[str]]) -> None:
    now = {**STEPS, "kinds": {}, "rows": {"node_keys": []}, "grading": "binary"}
    assert warnings_of({"steps": STEPS}, {"steps": now}) == []


def test_only_the_engine_of_judges_changes_scores(warnings_of: Callable[..., list[str]]) -> None:
    judges = {"max_concurrency": 16, "engine": "native", "cache": True}
    assert warnings_of({}, {"judges": judges}) == []
    assert warnings_of({"judges": judges}, {"judges": {**judges, "max_concurrency": 2}}) == []
    (told,) = warnings_of({"judges": judges}, {"judges": {**judges, "engine": "ragas"}})
    assert "(judges)" in told


def test_gates_change_no_scores(warnings_of: Callable[..., list[str]]) -> None:
    assert warnings_of({}, {"gates": [{"metric": "steps_score", "under": 0.9}]}) == []
