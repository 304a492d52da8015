from dataclasses import replace
from typing import Any

import pytest
from support.report_samples import sample, step, table

from graphrag_eval_lc import run_evaluation
from graphrag_eval_lc.aggregation.sample_values import Metrics
from graphrag_eval_lc.config import load_config
from graphrag_eval_lc.report.problems import Funnel
from graphrag_eval_lc.report.steps import SampleSteps, step_groups
from graphrag_eval_lc.view.samples import SeenSample, seen_samples

SEARCH = {"name": "autocomplete_search", "args": {}, "id": "s", "status": "success", "output": "urn:oslo"}
RESULTS = '{"head": {"vars": ["iri"]}, "results": {"bindings": [{"iri": {"type": "uri", "value": "urn:oslo"}}]}}'
FOUND = {**SEARCH, "output": RESULTS}


def funnel_of(*samples: SeenSample, config: Any = None) -> Funnel:
    funnel = Funnel()
    for at, each in enumerate(samples):
        funnel.add(replace(each, key=str(at)), SampleSteps(each.result, load_config(config)))
    return funnel


def record_of(*samples: SeenSample, config: Any = None) -> Any:
    return funnel_of(*samples, config=config).record()


def dropouts(*samples: SeenSample, config: Any = None) -> dict[str, int]:
    """Return how many samples dropped out at each stage."""
    record = record_of(*samples, config=config)
    return {stage["name"]: len(stage["fell_out"]) for stage in record["stages"]}


def test_question_drops_out_at_its_first_failure() -> None:
    right, wrong, empty = table("T1", "T2"), table("T3"), table()
    assert dropouts(
        sample(step("sparql_query", wrong)),
        sample(FOUND),
        sample(FOUND, step("sparql_query")),
        sample(FOUND, step("sparql_query", empty)),
        sample(FOUND, step("sparql_query", wrong)),
        sample(FOUND, step("sparql_query", right), answer_f1=0.4),
        sample(FOUND, step("sparql_query", right), answer_f1=0.5),
    ) == {"IRI found": 1, "a query ran": 2, "a query had rows": 1, "rows right": 1, "answer right": 1}


def test_remaining_questions_enter_the_next_stage() -> None:
    record = record_of(sample(FOUND, step("sparql_query", table("T1", "T2"))))
    assert [(stage["entered"], stage["passed"], stage["passed_over"]) for stage in record["stages"]] == [(1, 1, 0)] * 4
    assert (record["questions"], record["outside"]) == (1, 0)


def test_iri_used_in_a_query_counts_as_found() -> None:
    query = {"query": "SELECT ?name { <urn:oslo> ?p ?name }"}
    assert dropouts(sample(step("sparql_query", table("T3"), args=query)))["IRI found"] == 0


def test_iri_search_is_skipped_if_the_rows_are_right_without_it() -> None:
    record = record_of(
        sample(FOUND, step("sparql_query", table("T3"))), sample(step("sparql_query", table("T1", "T2")))
    )
    first = record["stages"][0]
    assert (first["entered"], first["passed"], first["passed_over"], first["fell_out"]) == (2, 1, 1, [])


def test_question_without_a_reference_query_is_outside_the_funnel() -> None:
    other = sample(FOUND, reference_steps=[[{"name": "retrieval", "output": "[]"}]])
    assert record_of(other) is None
    assert record_of(other, sample(FOUND))["outside"] == 1


def test_failed_question_counts_as_a_wrong_answer_if_others_are_judged() -> None:
    steps = [FOUND, step("sparql_query", table("T1", "T2"))]
    assert dropouts(sample(*steps, answer_f1=1.0), sample(*steps, error="away"))["answer right"] == 1
    assert "answer right" not in dropouts(sample(*steps), sample(*steps, error="away"))


def test_unjudged_answer_is_distinguished_from_one_not_needed() -> None:
    steps = [FOUND, step("sparql_query", table("T1", "T2"))]
    record = record_of(
        sample(*steps, answer_f1=1.0),
        sample(*steps, answer_correctness_error="RateLimitError: 429"),
        sample(*steps),
        sample(*steps, reference_answer=None),
    )
    last = record["stages"][-1]
    assert (last["name"], last["entered"], last["passed"], last["fell_out"]) == ("answer right", 4, 1, [])
    assert (last["not_judged"], last["passed_over"]) == (2, 1)
    assert [stage["not_judged"] for stage in record["stages"][:-1]] == [0] * 4


def test_tool_names_are_mapped_by_the_config() -> None:
    config = {"steps": {"names": {"kg": "sparql_query"}}}
    found = sample(FOUND, step("kg", table("T1", "T2")), config=config)
    assert dropouts(found, config=config)["rows right"] == 0


@pytest.mark.parametrize("output", ['{"head": {}, "boolean": false}', "no JSON"])
def test_ask_result_counts_as_rows_but_text_does_not(output: str) -> None:
    assert dropouts(sample(FOUND, step("sparql_query", output)))["a query had rows"] == ("boolean" not in output)


def test_matrix_compares_steps_with_answers() -> None:
    right, wrong = step("sparql_query", table("T1", "T2")), step("sparql_query", table("T3"))
    record = funnel_of(
        *(sample(steps, answer_f1=score) for steps, score in ((right, 1.0), (right, 0.0), (wrong, 0.9), (wrong, 0.1))),
        sample(right, answer_correctness_error="away"),
        sample(reference_steps=[], steps_score=None, answer_f1=1.0),
        sample(right, error="away"),  # its steps are right, but it has no answer
    ).matrix()
    assert record is not None
    text = record.pop("threshold_text")
    assert record.pop("left_out") == 2
    assert record == {"right_right": ["0"], "right_wrong": ["1", "6"], "wrong_right": ["2"], "wrong_wrong": ["3"]}
    assert "answer_f1 is at least 0.5" in text


def test_without_judgements_there_is_no_matrix() -> None:
    assert funnel_of(sample(error="away")).matrix() is None


def test_query_is_recognised_by_the_media_type_of_its_reference() -> None:
    reference = {"name": "run_sparql", "output": table("T1"), "output_media_type": "application/sparql-results+json"}
    diagnosis = {"score": 1.0, "matched": True, "reason": "the same rows"}
    record = record_of(
        sample(step("run_sparql", table("T1")), reference_steps=[[reference]], steps_diagnosis=[[diagnosis]])
    )
    assert [(stage["name"], stage["passed"]) for stage in record["stages"]] == [
        ("a query ran", 1),
        ("a query had rows", 1),
        ("rows right", 1),
    ]


@pytest.mark.parametrize(
    ("name", "more", "config"),
    [
        ("cypher_query", {}, None),
        ("ask_graph", {"output_media_type": "application/json", "required_columns": ["name"]}, None),
        ("ask_graph", {}, {"steps": {"kinds": {"ask_graph": "rows"}}}),
    ],
)
def test_funnel_and_rows_work_for_any_query_language(name: str, more: Any, config: Any) -> None:
    def result_of(output: str) -> Any:
        reference = {"name": name, "output": '[{"name": "T1"}, {"name": "T2"}]', **more}
        question = {"id": "q", "question_text": "Which?", "reference_steps": [[reference]]}
        response: Any = {"question_id": "q", "actual_steps": [step(name, output)]}
        return run_evaluation([{"template_id": "t", "questions": [question]}], [response], config)[0]  # type: ignore[list-item]

    settings = load_config(config)
    dropped_at = {}
    for output in ("[]", '[{"x": "T1"}, {"x": "T3"}]', '[{"x": "T2"}, {"x": "T1"}]'):
        [found] = seen_samples([result_of(output)], Metrics(settings))
        dropped_at[output] = [stage for stage, count in dropouts(found, config=config).items() if count]
    assert list(dropped_at.values()) == [["a query had rows"], ["rows right"], []]
    [[shown]] = step_groups(SampleSteps(result_of('[{"x": "T1"}, {"x": "T3"}]'), settings))
    assert shown["rows"]["unlike"] == [["missing", ["T2"], []], ["extra", ["T3"], []]]
