"""Metric names in gates are checked before a run."""

from typing import Any

import pytest

from graphrag_eval_lc import register_metric
from graphrag_eval_lc.compare import read_gates
from graphrag_eval_lc.compare.gate_names import KnownMetrics, check_gates
from graphrag_eval_lc.config import load_config
from graphrag_eval_lc.errors import ConfigError, OptionError

LLM = {"llm": {"generation": {"provider": "openai", "model": "gpt-4o-mini"}}}
EMBEDDING = {"llm": {**LLM["llm"], "embedding": {"provider": "openai", "model": "text-embedding-3-small"}}}
CUSTOM = {
    **LLM,
    "custom_evaluations": [
        {"name": "tone", "inputs": ["actual_answer"], "instructions": "?", "outputs": {"warm": "0-1"}}
    ],
}


def plain(question: Any, response: Any) -> float:
    return 1.0


def anything(question: Any, response: Any) -> Any:
    return {"polite": 1.0}


def checked(gate: Any, config: Any = None, *evaluators: Any) -> list[str]:
    known = KnownMetrics.of(load_config(config), evaluators)
    return check_gates(read_gates([gate]), known, ["notes", "lines"], of_config=False)


@pytest.mark.parametrize(
    ("gate", "config"),
    [
        ("steps_score=1", None),
        ("steps_score_upper=1", None),
        ("steps_f1=1", None),
        ("notes/steps_score.min=1", None),
        ("elapsed_sec.p95=1", None),
        ("undecided=0", None),
        ("retrieval_missing=0", None),
        ("cost.sum=0", None),
        ("retrieval_ids_recall=1", None),
        ("retrieval_ids_ndcg@7=1", {"retrieval": {"measures": ["nDCG@7"]}}),
        ("retrieval_text_f1=1", None),
        ("answer_f1=1", LLM),
        ("answer_correctness_cost=1", LLM),
        ("judges_cost=1", LLM),
        ("answer_relevance=1", EMBEDDING),
        ("warm=1", CUSTOM),
        ("tone_cost=1", CUSTOM),
        ({"max_lost": 2}, None),
    ],
)
def test_metrics_that_a_run_may_have_are_accepted(gate: Any, config: Any) -> None:
    known = KnownMetrics.of(load_config(config))
    assert check_gates(read_gates([gate], has_baseline=True), known, ["notes"], of_config=False) == []


@pytest.mark.parametrize(
    ("gate", "config", "complaint"),
    [
        ("step_score=0.9", None, r"unknown metric step_score\. Did you mean steps_score\?"),
        ("total_token=9", None, r"unknown metric total_token\. Did you mean total_tokens\?"),
        ("xyzzy=9", None, r"unknown metric xyzzy\. There are steps_score, .* plugins and evaluators"),
        ("elapsed_sec.p99=9", None, r"unknown statistic p99 of elapsed_sec\. Did you mean p95\?"),
        ("elapsed_sec.=9", None, r"unknown statistic \(empty\) of elapsed_sec\. There are mean, .*"),
        ("note/steps_score=0.9", None, r"the dataset has no template note\. Did you mean notes\?"),
        ("xyzzy/steps_score=0.9", None, r"the dataset has no template xyzzy\. There are notes, lines\."),
        ("answer_f1=0.9", None, r"answer_f1 is judged by a model, and the config has no llm section, so .* Add llm: "),
        ("answer_f=0.9", None, r"Did you mean answer_f1\?"),
        ("judges_cost=1", None, "judges_cost is what models cost that judge, and the config has no llm section"),
        ("answer_f1=0.9", {**LLM, "answer_correctness": {"enabled": False}}, "judged by answer_correctness, which the"),
        ("answer_relevance=0.9", LLM, r"answer_relevance needs an embedding model, .* Name one in llm\.embedding\."),
        (
            "retrieval_ids_ndcg@7=1",
            None,
            r"retrieval\.measures .* does not list it\. Did you mean retrieval_ids_ndcg\?",
        ),
        (
            "retrieval_text_f1=1",
            {"retrieval": {"text": {"enabled": False}}},
            r"as retrieval\.text is off in the config\. Switch it on",
        ),
        ("retrieval_text_f2=1", None, r"unknown metric retrieval_text_f2\. Did you mean retrieval_text_f1"),
        ("AP=1", None, r"unknown metric AP\. Did you mean retrieval_ids_average_precision\?"),
        ("warmth=1", CUSTOM, r"Did you mean warm\?"),
        ({"metric": "stepz", "max_drop": 0.1}, None, "unknown metric stepz"),
    ],
)
def test_unknown_names_are_reported_with_the_nearest(gate: Any, config: Any, complaint: str) -> None:
    known = KnownMetrics.of(load_config(config))
    with pytest.raises(OptionError, match=complaint):
        check_gates(read_gates([gate], has_baseline=True), known, ["notes", "lines"], of_config=False)


def test_names_of_functions_are_known_if_they_declare_them() -> None:
    assert checked("plain=1", None, plain) == []
    with pytest.raises(OptionError, match=r"unknown metric plian\. Did you mean plain\?"):
        checked("plian=1", None, plain)
    assert checked("anything=1", None, anything) == []
    assert checked("polite=1", None, anything, plain) == [
        "no metric polite is known beforehand, so anything must give it."
    ]
    (doubt,) = checked("step_score=1", None, anything)
    assert doubt.endswith("so anything must give it. Did you mean steps_score?")


def test_registered_metrics_are_known_with_their_direction() -> None:
    register_metric(key="detour", unit="km", lower_is_better=True)(lambda question, response: 12.0)
    assert checked("detour.p95=3") == []
    with pytest.raises(OptionError, match=r"less is better for detour.*: --fail-over detour=3\."):
        read_gates({"detour": 3})


@pytest.mark.parametrize(
    ("gate", "complaint"),
    [
        ({"metric": "total_tokens", "under": 9}, r"less is better for total_tokens.*: --fail-over total_tokens=9"),
        ({"metric": "undecided", "under": 9}, r"less is better for undecided.* Bound it from above: --fail-over"),
        ({"metric": "steps_score", "over": 0.9}, r"more is better for steps_score.*: --fail-under steps_score=0\.9"),
        ({"metric": "steps_score", "over": "+10%"}, r"Set how much it may drop: --max-drop steps_score"),
        ({"metric": "polite", "over": 3}, r"more is better for polite.*register_metric\(..., lower_is_better=True\)"),
    ],
)
def test_bound_in_the_wrong_direction_suggests_the_right_one(gate: Any, complaint: str) -> None:
    known = KnownMetrics.of(load_config(), [anything])
    with pytest.raises(OptionError, match=complaint):
        check_gates(read_gates([gate], has_baseline=True), known, [], of_config=False)


def test_config_gates_are_reported_with_their_keys() -> None:
    config = load_config({"gates": [{"under": 0.9}, {"metric": "step_score", "max_drop": 0.1}]})
    with pytest.raises(ConfigError, match=r"key gates\.1\.metric: unknown metric step_score"):
        check_gates(config.gates, KnownMetrics.of(config), [], of_config=True)
    config = load_config({"gates": [{"metric": "total_tokens", "under": 9}]})
    with pytest.raises(ConfigError, match=r"key gates\.0\.under: .* Bound it from above: over: 9\."):
        check_gates(config.gates, KnownMetrics.of(config), [], of_config=True)


def test_finished_runs_accept_names_that_they_measured_or_could_have_measured() -> None:
    known = KnownMetrics.of_runs([load_config()], ["polite"])
    for text in ("polite=1", "answer_f1=1", "steps_score=1"):
        assert check_gates(read_gates([text]), known, [], of_config=False) == []
    with pytest.raises(OptionError, match=r"unknown metric polte\. Did you mean polite\?"):
        check_gates(read_gates(["polte=1"]), known, [], of_config=False)


@pytest.mark.parametrize(
    ("gate", "complaint"),
    [
        ({"metric": "STEPS_SCORE", "under": 0.9}, r"unknown metric STEPS_SCORE\. Did you mean steps_score\?"),
        ({"template": "NOTES", "under": 0.9}, r"no template NOTES\. Did you mean notes\?"),
        ({"metric": "elapsed_sec.p95.p95", "over": 3}, r"names two statistics of elapsed_sec\. .* elapsed_sec\.p95\."),
        (
            {"metric": "elapsed_sec.p96.max", "over": 3},
            r"unknown statistic p96 of elapsed_sec\. Did you mean p95\?",
        ),
    ],
)
def test_capital_letters_and_a_second_statistic_are_reported(gate: Any, complaint: str) -> None:
    with pytest.raises(OptionError, match=complaint):
        check_gates(read_gates([gate]), KnownMetrics.of(load_config()), ["lines", "notes"], of_config=False)
