import base64
import gzip
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from support.report_samples import result, step, table

from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.report.reported_run import ReportedRun
from graphrag_eval_lc.report.run_report import report_data


def data_of(results: Any, config: EvaluationConfig | None = None, **record: Any) -> dict[str, Any]:
    run = ReportedRun(folder=None, record=record, config=config or EvaluationConfig(), results=results)
    return report_data(run)


def test_all_sections_come_from_a_single_pass() -> None:
    def single_pass() -> Iterator[dict[str, Any]]:
        yield result(step("sparql_query", table("T1", "T2")))
        yield {**result(step("sparql_query")), "question_id": "q2", "error": "KeyError: x", "status": "error"}

    data = data_of(single_pass())
    assert str(data["view"].headline) == "1 of 2 right, 1 error · steps_score 0.500 (0.00–1.00)"
    assert data["groups"] == ["KeyError"]
    details: dict[str, Any] = {}
    for chunk in data["chunks"]:
        details |= json.loads(gzip.decompress(base64.b64decode(chunk)))
    assert [row["k"] for row in json.loads("".join(data["index_json"]))] == list(details) == ["q", "q2"]
    assert data["errors"][0]["questions"] == ["q2"]
    assert data["tools"] == ["sparql_query"]
    assert data["matrix"] is None
    assert (data["samples_word"], data["view"].chances) == ("questions", ())


def test_report_data_is_json() -> None:
    assert json.loads(
        json.dumps({**(data := data_of([result()])), "view": asdict(data["view"])}, allow_nan=False, default=list)
    )


def test_repeats_are_samples_of_one_question() -> None:
    data = data_of([{**result(), "repeat": repeat} for repeat in (1, 2, 3)])
    headline = data["view"].headline
    assert (headline.questions, headline.samples, headline.repeats, data["samples_word"]) == (1, 3, 3, "samples")
    assert [name for name, _ in data["view"].chances] == ["pass@1", "pass@3", "pass^3"]
    assert [row["k"] for row in json.loads("".join(data["index_json"]))] == ["q", "q #2", "q #3"]


def test_list_templates_and_extremes_show_the_agents_cost() -> None:
    judged = {"answer_f1": 1.0, "answer_correctness_cost": 5.0}
    data = data_of([{**result(), **judged, "agent_cost": 0.5}, {**result(), **judged, "question_id": "q2"}])
    assert [row["usd"] for row in json.loads("".join(data["index_json"]))] == [0.5, None]
    view = data["view"]
    assert view.templates[0].usd == 0.5
    assert [(row.key, row.value) for row in view.most_expensive] == [("q", 0.5)]
    assert {row.name: row.total for row in view.spent} == {"Agent's cost": 0.5, "Judges' cost": 10.0}


def facts(*results: Any, **record: Any) -> dict[str, str]:
    return {fact["name"]: fact["value"] for fact in data_of(results, **record)["what_ran"]}


def test_facts_have_the_total_cost_and_recursion_limit_errors() -> None:
    text = "GraphRecursionError: Recursion limit of 30 reached without hitting a stop condition."
    failed = {**result(), "question_id": "q2", "status": "error", "error": text, "total_tokens": 1000}
    priced = {**result(), "agent_cost": 0.5, "total_tokens": 234}
    judged = {"answer_f1": 1.0, "answer_correctness_cost": 0.25}
    assert facts({**priced, **judged}, failed) == {
        "Total cost": "at least $0.75 (agent's cost $0.50, judges' cost $0.25, 1 sample is not measured in full, so "
        "the total is of the rest); 1,234 tokens of the agent",
        "Recursion limit": "30, reached by 1 question: q2",
    }
    assert facts(priced) == {"Total cost": "$0.50; 234 tokens of the agent"}
    assert facts({**result(), "total_tokens": 234}) == {"Total cost": "not known; 234 tokens of the agent"}
    assert facts(result()) == {}


def test_dataset_path_is_quoted_for_the_shell() -> None:
    assert data_of([result()], dataset={"path": "my data/qa.yaml"})["dataset"] == "'my data/qa.yaml'"
    assert data_of([result()])["dataset"] == "DATASET.yaml"


def test_caveats_on_the_numbers_are_warnings() -> None:
    stopped = {"reason": "max_time", "message": "the time is up", "left_out": 1234}
    assert data_of([result()], stopped=stopped)["warnings"] == [
        "The run was stopped: the time is up; 1,234 samples were not asked.",
        "There is only one template: questions of one template resemble each other, so with fewer than 5 "
        "intervals are too narrow.",
    ]


def test_run_without_results_is_empty_with_a_warning() -> None:
    data = data_of([])
    assert data["warnings"] == ["The run has no results."]
    assert (data["view"].scores, data["view"].templates) == ((), ())
    assert (list(data["index_json"]), list(data["chunks"])) == (["[]"], [])


def test_incomplete_results_of_other_tools_are_shown() -> None:
    data = data_of([{"question_id": 7, "template_id": 3}])
    assert json.loads("".join(data["index_json"]))[0]["k"] == "7"


def test_graded_steps_have_a_note_on_their_score() -> None:
    graded = EvaluationConfig.model_validate({"steps": {"grading": "graded"}})
    assert data_of([result()])["view"].grading_note is None
    assert (
        data_of([result()], graded)["view"].grading_note == "Steps are graded: steps_score is steps_f1, over all groups"
    )
    assert data_of([], graded)["view"].grading_note is None
