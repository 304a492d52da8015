"""Retrieval measures from the dataset to the aggregates."""

import json
from typing import Any

from graphrag_eval_lc import compute_aggregates, run_evaluation

CONFIG = {
    "retrieval": {
        "measures": ["P@5", "nDCG@10"],
        "steps": ["search_docs", {"name": "sparql_query", "column": "doc"}],
        "missing": "zero",
    }
}


def documents(*ids: str) -> str:
    return json.dumps([{"id": identifier, "text": f"The text of document {identifier}."} for identifier in ids])


def results(name: str, *values: str) -> str:
    bindings = [{name: {"type": "uri", "value": value}} for value in values]
    return json.dumps({"head": {"vars": [name]}, "results": {"bindings": bindings}})


def question(identifier: str, *groups: list[dict[str, Any]]) -> dict[str, Any]:
    return {"id": identifier, "question_text": f"What of {identifier}?", "reference_steps": list(groups)}


def step(name: str, output: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "args": {}, "id": f"call_{name}", "status": "success", "output": output, **more}


MEDIA_TYPE = "application/sparql-results+json"
DATASET: list[Any] = [
    {
        "template_id": "documents",
        "questions": [
            question("q1", [{"name": "retrieval", "output": documents("a", "b")}]),
            question("q2", [{"name": "retrieval", "relevant_ids": [["a", "c"], ["b"]]}]),
        ],
    },
    {
        "template_id": "graph",
        "questions": [
            question(
                "q3", [{"name": "sparql_query", "output": results("doc", "urn:1"), "output_media_type": MEDIA_TYPE}]
            ),
            {"id": "q4", "question_text": "Why?"},
        ],
    },
]
RESPONSES: list[Any] = [
    {"question_id": "q1", "actual_steps": [step("search_docs", documents("x", "b"))]},
    {"question_id": "q2", "actual_steps": [step("retrieval", documents("z"))]},
    {"question_id": "q3", "actual_steps": [step("sparql_query", results("d", "urn:1", "urn:2"))]},
    {"question_id": "q4", "actual_steps": []},
]


def measured(result: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value for step in result["actual_steps"] for key, value in step.items() if key.startswith("retrieval_")
    }


def test_steps_questions_and_aggregates_have_measures() -> None:
    first, second, third, fourth = map(dict, run_evaluation(DATASET, RESPONSES, CONFIG))
    assert list(measured(first)) == [
        "retrieval_ids_precision@5",
        "retrieval_ids_ndcg@10",
        "retrieval_text_precision",
        "retrieval_text_recall",
        "retrieval_text_f1",
    ]
    assert [(each.get("steps_score"), each.get("retrieval_missing")) for each in (first, second, third, fourth)] == [
        (0.5, 0),
        (0.0, 1),
        (1.0, 0),
        (None, None),
    ]
    assert measured(second) == {}
    assert measured(third) == {"retrieval_ids_precision@5": 0.2, "retrieval_ids_ndcg@10": 1.0}
    assert ("retrieval_text_missing" in first, "retrieval_text_missing" in second) == (True, False)
    aggregates = compute_aggregates([first, second, third, fourth], CONFIG)
    assert aggregates["micro"]["retrieval_missing"] == 1
    assert aggregates["per_template"]["documents"]["retrieval_ids_precision@5"]["mean"] == 0.1
    assert aggregates["macro"]["retrieval_ids_precision@5"]["mean"] == 0.15000000000000002


def test_without_a_config_retrieval_steps_have_the_eight_measures() -> None:
    response = {"question_id": "q1", "actual_steps": [step("retrieval", documents("b"))]}
    result = dict(run_evaluation(DATASET, [response])[0])
    assert (measured(result)["retrieval_ids_recall"], measured(result)["retrieval_ids_precision"]) == (0.5, 1.0)
    assert len([key for key in measured(result) if key.startswith("retrieval_ids_")]) == 8


def test_measures_of_an_earlier_evaluation_are_replaced() -> None:
    first = run_evaluation(DATASET, RESPONSES, CONFIG)
    second = run_evaluation(DATASET, first, {"retrieval": {**CONFIG["retrieval"], "measures": ["RR"]}})  # type: ignore[arg-type]
    keys = [key for key in measured(dict(second[0])) if key.startswith("retrieval_ids_")]
    assert keys == ["retrieval_ids_reciprocal_rank"]
    without = run_evaluation([{"template_id": "t", "questions": [question("q1")]}], first)  # type: ignore[list-item]
    assert measured(dict(without[0])) == {}
    assert "retrieval_missing" not in without[0]


def test_question_without_a_response_retrieves_nothing() -> None:
    result = run_evaluation(DATASET, [], CONFIG)[0]
    assert (result["status"], result["retrieval_missing"], result["retrieval_text_missing"]) == ("error", 1, 1)


def test_invalid_relevant_ids_do_not_stop_the_evaluation() -> None:
    for broken in ([], ["a", ["b"]], {"a": "much"}):
        dataset: list[Any] = [
            {"template_id": "t", "questions": [question("q1", [{"name": "retrieval", "relevant_ids": broken}])]}
        ]
        result = dict(run_evaluation(dataset, RESPONSES)[0])
        assert (result["steps_score"], "retrieval_missing" in result) == (0.0, False)
