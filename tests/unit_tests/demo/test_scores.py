"""The rule-based planner's scores: 1, except for its deliberate slips and for results that the search ranks too low."""

from contextlib import suppress

import pytest
from langgraph.errors import GraphRecursionError

from graphrag_eval_lc import GraphRAGEvalCallbackHandler, load_dataset, run_evaluation
from graphrag_eval_lc.demo import DATASET_PATH

pytestmark = pytest.mark.full  # all demo questions are sent

DATASET = load_dataset(DATASET_PATH)
WITHOUT_FULL_SCORE = {
    "transformers_kristiansand",
    "substations_se3",
    "ac_neighbours_bergen",
    "dc_neighbours_feda",
    "line_voltages_rana",
    "total_capacity_no3",
    "hydro_capacity_no5",
    "dc_link_no4_fi",
    "longest_lines_no4",
    "search_steins",
    "production_limfjord",
    "production_markbygden",
    "flow_stockholm",
    "notes_hasle",
    "notes_transformer_rating",
    "notes_ramping",
    "notes_icing",
}


@pytest.fixture(scope="module")
def responses(agent):
    return {
        question["id"]: response_to(agent, question["question_text"])
        for template in DATASET
        for question in template["questions"]
    }


def response_to(agent, question):
    handler = GraphRAGEvalCallbackHandler()
    with suppress(GraphRecursionError):
        agent.invoke({"messages": [("user", question)]}, config={"callbacks": [handler]})
    return handler.response()


@pytest.mark.parametrize("scoring", ["last_group", "all_groups"])
def test_questions_without_a_slip_score_1(responses, scoring):
    results = run_evaluation(DATASET, responses, {"steps": {"scoring": scoring}})
    assert [result["question_id"] for result in results if result["status"] == "error"] == ["longest_dc_lines"]
    scores = {result["question_id"]: result["steps_score"] for result in results if result["status"] == "success"}
    assert {question for question, score in scores.items() if score < 1} == WITHOUT_FULL_SCORE


@pytest.mark.parametrize(
    ("question_id", "reason"),
    [
        ("production_limfjord", "granularity is '1h' instead of '15m'"),
        ("production_markbygden", "start is '3h-ago' instead of '3d-ago'"),
        ("flow_stockholm", "start is '2025-05-31T00:00:00Z' instead of '2025-11-11T00:00:00Z'; end is"),
        ("line_voltages_rana", "2 of 4 rows are missing"),
        ("search_steins", "another JSON value"),
    ],
)
def test_diagnosis_names_the_slip(responses, question_id, reason):
    [result] = [each for each in run_evaluation(DATASET, responses) if each["question_id"] == question_id]
    assert reason in str(result["steps_diagnosis"])
