"""Settings that make the scores of two runs hard to compare."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import compare_runs
from graphrag_eval_lc.registry import metric_spec

Scored = Callable[..., list[dict[str, Any]]]
STEPS = {"scoring": "last_group", "names": {}, "outputs": {}}


@pytest.fixture
def warnings_of(tmp_path: Path, scored: Scored) -> Callable[..., list[str]]:
    """Return a function that compares two runs with the same results and these configs (or another section of
    run.json).
    """

    def warnings(
        *configs: dict[str, Any], metrics: list[str] | None = None, section: str = "config", **values: float
    ) -> list[str]:
        for name, config in zip("ab", configs, strict=True):
            path = tmp_path / name
            path.mkdir(exist_ok=True)
            lines = (f"{json.dumps(result)}\n" for result in scored(*[1.0, 0.5] * 10, **values))
            path.joinpath("results.jsonl").write_text("".join(lines))
            path.joinpath("run.json").write_text(json.dumps({"format_version": 2, section: config}))
        compared = compare_runs(tmp_path / "a", tmp_path / "b", metrics=metrics)
        return [text for text in compared.warnings if "may not be comparable" in text]

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
def test_different_step_scoring_is_reported_once(warnings_of: Callable[..., list[str]], other: dict[str, Any]) -> None:
    [name] = other
    assert warnings_of({"steps": STEPS}, {"steps": {**STEPS, **other}}) == [
        f"A and B were scored with other settings (steps.{name}), so that steps_score may not be comparable."
    ]


def test_different_capture_options_affect_step_metrics(
    warnings_of: Callable[..., list[str]],
) -> None:
    captures = {"max_output_chars": None, "redact": True, "added": 1}, {"max_output_chars": 1000, "redact": True}
    assert warnings_of(*captures, section="capture", total_tokens=9) == [
        "A and B were recorded with other options of the capture (max_output_chars), so that steps_score may not be "
        "comparable."
    ]
    assert warnings_of(*captures, section="capture", metrics=["total_tokens"], total_tokens=9) == []
    assert warnings_of(captures[0], {}, section="capture") == []


def test_only_the_judge_engine_changes_scores(warnings_of: Callable[..., list[str]]) -> None:
    judges = {"max_concurrency": 16, "engine": "native", "cache": True}
    judged = {"answer_f1": 0.5}
    assert warnings_of({}, {"judges": judges}, **judged) == []
    assert warnings_of({"judges": judges}, {"judges": {**judges, "max_concurrency": 2}}, **judged) == []
    assert warnings_of({"judges": judges}, {"judges": {**judges, "engine": "ragas"}}, **judged) == [
        "A and B were scored with other settings (judges), so that answer_f1 may not be comparable."
    ]


MODEL, OTHER_MODEL = ({"generation": {"model": name}, "embedding": {"model": "e"}} for name in ("m", "n"))
OTHER_EMBEDDING = {**MODEL, "embedding": {"model": "f"}}
SCORES = {"answer_f1": 0.5, "answer_relevance": 0.5, "retrieval_context_f1": 0.5, "tone": 0.5, "agent_cost": 0.1}


def test_another_judge_model_affects_judged_metrics_only(warnings_of: Callable[..., list[str]]) -> None:
    assert warnings_of({"llm": MODEL}, {"llm": OTHER_MODEL}) == []
    (warning,) = warnings_of({"llm": MODEL}, {"llm": OTHER_MODEL}, **SCORES)
    assert "(llm.generation), so that answer_relevance and answer_f1 may not be comparable." in warning
    assert warnings_of({"llm": MODEL}, {"llm": OTHER_MODEL}, metrics=["steps_score"], **SCORES) == []


def test_another_embedding_model_affects_relevance_only(warnings_of: Callable[..., list[str]]) -> None:
    (warning,) = warnings_of({"llm": MODEL}, {"llm": OTHER_EMBEDDING}, **SCORES)
    assert "(llm.embedding), so that answer_relevance may not be comparable." in warning


def test_settings_that_affect_the_same_metrics_are_reported_together(warnings_of: Callable[..., list[str]]) -> None:
    one = {"steps": STEPS, "sparql": {"strict": True}, "prices": {}, "gates": [{"max_lost": 2}]}
    other = {"steps": {**STEPS, "scoring": "all_groups"}, "sparql": {}, "prices": {"m": {"input": 1}}}
    assert warnings_of(one, other, **SCORES) == [
        "A and B were scored with other settings (steps.scoring, sparql), so that steps_score may not be comparable.",
        "A and B were scored with other settings (prices), so that agent_cost may not be comparable.",
    ]


def test_custom_evaluations_affect_their_own_keys(warnings_of: Callable[..., list[str]]) -> None:
    def custom(instructions: str) -> dict[str, Any]:
        evaluation = {"name": "tone", "inputs": ["actual_answer"], "instructions": instructions}
        return {"custom_evaluations": [{**evaluation, "outputs": {"tone": "0 or 1"}}]}

    (warning,) = warnings_of(custom("Is it polite?"), custom("Is it kind?"), **SCORES)
    assert "(custom_evaluations), so that tone may not be comparable." in warning


@pytest.mark.parametrize("metric", ["steps_score", "steps_f1", "retrieval_ids_ndcg@10", "retrieval_text_f1"])
def test_metrics_that_depend_on_steps_declare_it(metric: str) -> None:
    assert "steps" in metric_spec(metric).depends_on
    assert "llm" not in metric_spec(metric).depends_on
