"""Each value of an answer has the verdict in ``verdicts.yaml``, and an address if it was found."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from graphrag_eval_lc import run_evaluation
from graphrag_eval_lc.answers.evidence import Evidence
from graphrag_eval_lc.answers.grounding import grounding_record
from graphrag_eval_lc.matching import StepView

TABLE = yaml.safe_load(Path(__file__).with_name("verdicts.yaml").read_text(encoding="utf-8"))
FOUND = ("row", "rounded", "count", "aggregate")


def steps_of(outputs: dict[str, str], **more: Any) -> list[dict[str, Any]]:
    return [
        {"id": name, "name": "query", "status": "success", "args": {}, "output": output, **more}
        for name, output in outputs.items()
    ]


@pytest.mark.parametrize("case", [pytest.param(case, id=case["what"]) for case in TABLE["cases"]])
def test_verdicts_match_the_table(case: dict[str, Any]) -> None:
    evidence = Evidence([StepView(step) for step in steps_of(TABLE["outputs"])])
    record = grounding_record(case["answer"], case.get("question", ""), evidence)
    assert [f"{value['kind']} {value['verdict']}" for value in record["answer_values"]] == case["values"]
    assert record.get("answer_grounded") == pytest.approx(case.get("grounded"), abs=1e-4)
    assert record.get("answer_lines_in_one_row") == case.get("lines")
    assert all(("at" in value) == (value["verdict"] in FOUND) for value in record["answer_values"])


def test_addresses_name_the_step_the_row_and_the_column() -> None:
    evidence = Evidence([StepView(step) for step in steps_of(TABLE["outputs"])])
    answer = "ASKER since 31 January 2021; 2 plants, mean 67.32, 88213"
    found = {value["text"]: value.get("at") for value in grounding_record(answer, "", evidence)["answer_values"]}
    assert found == {
        "ASKER": "plants/row 2/name",
        "31 January 2021": "plants/row 2/since",
        "2": "plants/rows",
        "67.32": "prices/mean of value",
        "88213": "note/text",
    }


def test_failed_steps_are_no_evidence_and_truncated_ones_are_inconclusive() -> None:
    failed = [StepView(step) for step in steps_of(TABLE["outputs"], status="error")]
    cut = [StepView(step) for step in steps_of({"q": '[{"name": "ASKER"}, {"na'})]
    verdicts = [
        grounding_record("It costs 107.41.", "", Evidence(steps))["answer_values"][0]["verdict"]
        for steps in (failed, cut)
    ]
    assert verdicts == ["none", "undecided"]


def test_results_have_the_keys_only_if_configured_and_drop_earlier_ones() -> None:
    step = steps_of({"call_1": TABLE["outputs"]["prices"]})[0] | {"name": "sparql_query"}
    question = {
        "id": "q",
        "question_text": "?",
        "reference_steps": [[{"name": "sparql_query", "output": step["output"]}]],
    }
    dataset = [{"template_id": "t", "questions": [question]}]
    response = {"question_id": "q", "actual_steps": [step], "actual_answer": "It was 98.05 and 107.14."}
    response |= {"answer_grounded": 0.9, "answer_values": []}
    [off] = run_evaluation(dataset, [response])
    [on] = run_evaluation(dataset, [response], {"answer_grounding": {"enabled": True}})
    assert not any(key.startswith("answer_") for key in off)
    assert on["answer_values"] == [
        {"text": "98.05", "kind": "number", "verdict": "row", "at": "call_1/row 2/value"},
        {"text": "107.14", "kind": "number", "verdict": "none"},
    ]
    assert on["answer_grounded_reason"] == "107.14 is in nothing that the agent found"
    assert (on["answer_grounded"], on["answer_ungrounded"], on["answer_row_coverage"]) == (0.5, 1, pytest.approx(1 / 3))


@pytest.mark.parametrize(
    ("answer", "coverage"),
    [
        ("107.41 at 2024-07-20 00:00, 98.05 later", 2 / 3),
        ("107.41, 98.05 and 1 more", 1.0),
        ("There are 3 prices.", 1.0),
        ("I do not know.", 0.0),
        ("If you want, I can list more rows.", 0.0),
    ],
)
def test_coverage_is_over_the_rows_of_the_last_matched_query(answer: str, coverage: float) -> None:
    outputs = {name: TABLE["outputs"][name] for name in ("plants", "prices")} | {"note": "nothing"}
    steps = [StepView(step) for step in steps_of(outputs)]
    assert grounding_record(answer, "", Evidence(steps), [0, 1, 2])["answer_row_coverage"] == pytest.approx(coverage)


def test_short_number_alone_does_not_measure_coverage() -> None:
    [step] = [StepView(step) for step in steps_of({"count": '[{"n": 3}]'})]
    assert "answer_row_coverage" not in grounding_record("3 films.", "How many?", Evidence([step]), [0])


def test_cell_with_the_name_is_preferred_to_an_iri_that_ends_with_it() -> None:
    [step] = [
        StepView(step) for step in steps_of({"films": '[{"film": "http://films.example/alien", "title": "Alien"}]'})
    ]
    [value] = grounding_record("Alien", "Which film?", Evidence([step]))["answer_values"]
    assert value["at"].endswith("/row 1/title")
