from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from graphrag_eval_lc import compare_runs, run_evaluation
from graphrag_eval_lc.compare import Flip
from graphrag_eval_lc.compare.flips import Direction, direction_of
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.registry import MetricSpec, metric_spec
from graphrag_eval_lc.registry.metrics import STEPS_SCORE

Scored = Callable[..., list[dict[str, Any]]]
DATASET: list[Any] = [
    {
        "template_id": "t",
        "questions": [
            {
                "id": "q",
                "question_text": "Where is OSLO?",
                "reference_answer": "In NO1.",
                "reference_steps": [[{"name": "lookup", "output": "urn:oslo"}]],
            }
        ],
    }
]


def step(name: str, output: str, **args: Any) -> dict[str, Any]:
    return {"name": name, "id": output, "args": args, "status": "success", "output": output, "elapsed_sec": 0.5}


def flips(steps_a: list[Any], steps_b: list[Any]) -> Flip:
    runs: list[Any] = [
        run_evaluation(DATASET, [{"question_id": "q", "actual_answer": answer, "actual_steps": steps}])  # type: ignore[typeddict-item]
        for answer, steps in (("Here.", steps_a), ("There.", steps_b))
    ]
    (question,) = compare_runs(*runs).pairs[0].flips
    return question


@pytest.mark.parametrize(
    ("a", "b", "direction"),
    [
        (1.0, 0.5, "broken"),
        (0.0, 1.0, "fixed"),
        (0.5, 0.25, "worse"),
        (0.25, 0.5, "better"),
        (0.999999999999, 0.5, "broken"),
    ],
)
def test_direction_is_from_a_to_b(a: float, b: float, direction: Direction) -> None:
    assert direction_of(a, b, metric_spec(STEPS_SCORE)) == direction


@pytest.mark.parametrize(
    ("lower_is_better", "bounds", "unit", "direction"),
    [
        (True, (0.0, None), "seconds", "worse"),
        (True, (None, None), "score", "worse"),
        (True, (0.5, 2.0), "score", "broken"),
        (False, (0.0, None), "seconds", "better"),
        (False, (None, None), "seconds", "better"),
        (False, (None, None), "score", "fixed"),  # like an undeclared number
        (False, (0.0, 1.5), "km", "fixed"),
        (False, (1.0, 5.0), "score", "better"),
    ],
)
def test_best_value_of_the_range_is_right(
    lower_is_better: bool, bounds: tuple[float | None, float | None], unit: str, direction: Direction
) -> None:
    spec = MetricSpec(key="own", lower_is_better=lower_is_better, range=bounds, unit=unit)
    assert direction_of(0.5, 1.5, spec) == direction


def test_flips_contain_both_scores_reasons_and_answers() -> None:
    question = flips([step("lookup", "urn:oslo")], [step("lookup", "urn:bergen")])
    assert (question.question_id, question.template_id, question.direction) == ("q", "t", "broken")
    assert (question.score_a, question.score_b) == (1.0, 0.0)
    assert (question.question_text, question.reference_answer) == ("Where is OSLO?", "In NO1.")
    assert (question.a.reason, question.a.answer) == ("", "Here.")
    assert question.b.reason == (
        "the same call as in A returned another output: another text: urn:bergen instead of urn:oslo"
    )


@pytest.mark.parametrize(
    ("in_a", "in_b", "why"),
    [("old", "new", "new"), ("old", "", "before: old"), ("", "", "")],
)
def test_why_is_the_new_or_the_old_reason(in_a: str, in_b: str, why: str) -> None:
    flip = flips([step("lookup", "urn:oslo")], [step("lookup", "urn:bergen")])
    assert replace(flip, a=replace(flip.a, reason=in_a), b=replace(flip.b, reason=in_b)).why == why


def test_same_calls_are_aligned_with_others_in_between() -> None:
    a = [step("find", "1"), step("lookup", "urn:oslo", of="OSLO")]
    b = [step("find", "2"), step("think", "3"), step("lookup", "urn:no", of="NO")]
    pairs = flips(a, b).steps
    names = [(pair.a and pair.a.name, pair.b and pair.b.name) for pair in pairs]
    assert [(*both, pair.is_same, pair.has_same_output) for both, pair in zip(names, pairs, strict=True)] == [
        ("find", "find", True, False),
        ("lookup", "think", False, False),
        (None, "lookup", False, False),
    ]
    matched = pairs[1].a
    assert matched is not None
    assert (matched.args, matched.output, matched.elapsed_sec, matched.fulfils) == (
        '{"of": "OSLO"}',
        "urn:oslo",
        0.5,
        True,
    )


def ask(query: str, *values: str, error: str | None = None) -> dict[str, Any]:
    rows = [{"x": {"type": "literal", "value": value}} for value in values]
    output = None if error else json_text({"head": {"vars": ["x"]}, "results": {"bindings": rows}})
    return {"name": "sparql_query", "args": {"query": query}, "output": output, "error": error} | {
        "status": "error" if error else "success"
    }


RIGHT, LIKE_IT = ask("SELECT ?x { ?x a :A FILTER(?x != 1) }", "1"), ask("SELECT ?x {\n  ?x a :A FILTER(?x != 1) }", "2")
LOST_ITS_PREFIX = ask("SELECT ?x { ?x a cim:A }", error="no prefix")


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        (
            [RIGHT],
            [LIKE_IT],
            "the same call as in {there} returned other rows: The only row is missing: (1); 1 extra row: (2).",
        ),
        ([RIGHT], [ask(RIGHT["args"]["query"], error="HTTP 503")], "the same call as in {there} failed: HTTP 503"),
        (
            [LOST_ITS_PREFIX, RIGHT],
            [LOST_ITS_PREFIX],
            "the call of sparql_query that matched in {there} is missing in {here}",
        ),
        (
            [RIGHT],
            [ask("SELECT ?x { ?x a :B }", "2")],
            "sparql_query: The query looks for the class :B instead of :A; lacks the filter",
        ),
        ([RIGHT], [], "sparql_query: the agent did not call sparql_query"),
        ([ask('ASK { ?x :name "A  B" }', "1")], [ask('ASK { ?x :name "A B" }', "2")], "sparql_query: "),
        ([ask("SELECT ?x # all\n{ ?x a :A }", "1")], [ask("SELECT ?x # all { ?x a :A }", "2")], "sparql_query: "),
    ],
)
def test_reason_names_the_difference_from_the_matched_call(a: list[Any], b: list[Any], reason: str) -> None:
    step = {"name": "sparql_query", "args": {"query": "SELECT ?x { ?x a :A FILTER(?x != 2) }"}}
    step |= {"output": RIGHT["output"], "output_media_type": "application/sparql-results+json"}
    dataset: list[Any] = [
        {"template_id": "t", "questions": [{"id": "q", "question_text": "?", "reference_steps": [[step]]}]}
    ]
    first, second = (run_evaluation(dataset, [{"question_id": "q", "actual_steps": steps}]) for steps in (a, b))  # type: ignore[typeddict-item]
    (broken,), (fixed,) = compare_runs(first, second).pairs[0].flips, compare_runs(second, first).pairs[0].flips
    assert (broken.direction, fixed.direction) == ("broken", "fixed")
    assert broken.why.startswith(reason.format(there="A", here="B"))
    assert fixed.why.startswith(f"before: {reason.format(there='B', here='A')}")


def test_one_of_two_calls_with_the_same_id_matches_the_reference_step() -> None:
    twice = [{**step("lookup", output, of=output), "id": "c"} for output in ("urn:bergen", "urn:oslo")]
    shown = [pair.a for pair in flips(twice, [step("think", "1")]).steps if pair.a is not None]
    assert [(each.output, each.fulfils) for each in shown] == [("urn:bergen", False), ("urn:oslo", True)]


def test_step_that_failed_shows_its_error() -> None:
    failed = {"name": "lookup", "args": {}, "status": "error", "error": "no such name", "output": None}
    shown = flips([step("lookup", "urn:oslo")], [failed]).steps[0].b
    assert shown is not None
    assert (shown.output, shown.status, shown.fulfils) == ("no such name", "error", False)


def test_long_texts_are_truncated() -> None:
    shown = flips([step("lookup", "urn:oslo")], [step("lookup", "x" * 10_000)]).steps[0].b
    assert shown is not None
    assert shown.output.endswith("xxx… (8,000 characters left out)")


def test_wrong_questions_come_first_by_size_of_change(scored: Scored) -> None:
    a, b = scored(0.0, 0.5, 1.0, 1.0, 0.5), scored(1.0, 0.25, 0.5, None, 0.5)
    questions = compare_runs(a, b).pairs[0].flips
    assert [(question.question_id, question.direction) for question in questions] == [
        ("q3", "broken"),
        ("q2", "broken"),
        ("q0", "fixed"),
        ("q1", "worse"),
    ]
    assert (questions[0].b.status, questions[0].b.reason, questions[0].b.score) == ("error", "away", None)


def test_worst_repeat_is_shown(scored: Scored) -> None:
    repeats = [
        {**scored(score)[0], "repeat": repeat, "actual_answer": str(repeat)}
        for repeat, score in enumerate((1.0, 0.0, 0.0), start=1)
    ]
    (question,) = compare_runs(repeats, scored(1.0)).pairs[0].flips
    assert (question.a.repeat, question.a.answer, question.score_a) == (2, "2", pytest.approx(1 / 3))


def test_rounding_does_not_flip_questions(scored: Scored) -> None:
    comparison = compare_runs(scored(0.1 + 0.2), scored(0.3))
    assert comparison.pairs[0].flips == ()
    metric = comparison.pairs[0].metric("steps_score")
    assert metric is not None
    assert (metric.ties, metric.difference) == (1, 0.0)


def test_reason_of_a_judged_metric_comes_from_the_judge(scored: Scored) -> None:
    a = scored(1.0, answer_f1=1.0, answer_correctness_reason="All is there.")
    b = scored(1.0, answer_f1=0.5, answer_correctness_reason="One claim is missing.")
    (question,) = compare_runs(a, b, metrics=["answer_f1"]).pairs[0].flips
    assert (question.a.reason, question.b.reason) == ("", "One claim is missing.")


def test_retrieval_steps_have_the_score(scored: Scored) -> None:
    a, b = (scored(1.0, actual_steps=[{"name": "retrieval", "retrieval_utilization": value}]) for value in (0.5, 0.25))
    (question,) = compare_runs(a, b, metrics=["retrieval_utilization"]).pairs[0].flips
    assert (question.a.score, question.b.score, question.direction) == (0.5, 0.25, "worse")
