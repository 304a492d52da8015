import copy
import warnings
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from support.judged_runs import REQUESTS, config_of, judged_dataset, judged_responses
from support.openai_stub import OpenAIStub

from graphrag_eval_lc import arun_evaluation, compute_aggregates, run_evaluation, score_responses
from graphrag_eval_lc.errors import ConfigError, DatasetError, GraphRAGEvalWarning, OptionError, ResponsesError
from graphrag_eval_lc.records import NO_RESPONSE

QUESTION: dict[str, Any] = {
    "id": "q1",
    "question_text": "Where is OSLO?",
    "reference_answer": "In NO1.",
    "reference_steps": [[{"name": "lookup", "args": {"name": "OSLO"}, "output": "urn:oslo"}]],
    "parameter_bindings": {"substation": "OSLO"},
}
DATASET: list[Any] = [{"template_id": "where", "questions": [QUESTION]}]
STEP: dict[str, Any] = {"name": "lookup", "args": {}, "id": "call_1", "status": "success", "output": "urn:oslo"}
RESPONSE: dict[str, Any] = {
    "question_id": "q1",
    "actual_answer": "NO1",
    "actual_steps": [STEP],
    "input_tokens": 10,
    "output_tokens": 2,
    "total_tokens": 12,
    "elapsed_sec": 0.5,
    "llm_calls": [{"model": "m"}],
}


def result_of(response: Any, config: Any = None) -> dict[str, Any]:
    return dict(run_evaluation(DATASET, {"q1": response}, config)[0])


def test_result_has_graphrag_evals_keys_in_order_followed_by_others() -> None:
    assert list(result_of(RESPONSE)) == [
        "template_id",
        "question_id",
        "question_text",
        "reference_answer",
        "reference_steps",
        "actual_answer",
        "actual_steps",
        "status",
        "steps_score",
        "input_tokens",
        "output_tokens",
        "total_tokens",
        "elapsed_sec",
        "steps_recall",
        "steps_precision",
        "steps_f1",
        "steps_order",
        "steps_diagnosis",
        "steps_counts",
        "parameter_bindings",
        "llm_calls",
    ]


def test_match_is_written_to_a_copy_of_the_reference_step() -> None:
    result = result_of(RESPONSE)
    assert result["steps_score"] == 1.0
    assert result["reference_steps"][0][0]["matches"] == "call_1"
    assert result["steps_diagnosis"] == [
        [{"score": 1.0, "outcome": "match", "matched": True, "reason": "the same text", "nearest": "call_1"}]
    ]


def test_unneeded_steps_are_counted_but_do_not_lower_the_score() -> None:
    failed = STEP | {"id": "call_0", "status": "error", "error": "timeout"}
    other = {"name": "search", "args": {}, "id": "call_2", "status": "success", "output": "nothing"}
    result = result_of(RESPONSE | {"actual_steps": [failed, STEP, STEP, other]})
    assert result["steps_score"] == 1.0
    assert result["steps_counts"] == {"extra": 2, "repeated": 2, "failed": 1, "undecided": 0, "outputs_cut": 0}


def test_tools_are_mapped_to_step_names_by_the_config() -> None:
    renamed = RESPONSE | {"actual_steps": [STEP | {"name": "find_place"}]}
    result = result_of(renamed, {"steps": {"names": {"find_place": "lookup"}}})
    assert result["steps_score"] == 1.0
    assert result["actual_steps"][0]["name"] == "find_place"
    assert result_of(renamed)["steps_score"] == 0.0


def test_arguments_are_not_modified() -> None:
    dataset, response = copy.deepcopy(DATASET), copy.deepcopy(RESPONSE)
    run_evaluation(dataset, [response])
    assert (dataset, response) == (DATASET, RESPONSE)


def test_question_without_a_response_is_an_error_and_scores_0() -> None:
    result = run_evaluation(DATASET, {})[0]
    assert (result["status"], result["error"], result["steps_score"]) == ("error", NO_RESPONSE, 0.0)
    assert result["actual_steps"] == []
    assert "input_tokens" not in result


@pytest.mark.parametrize(
    ("response", "error"),
    [
        ({"error": "boom"}, "boom"),
        ({"status": "error"}, "the agent failed without a message"),
        ({"error": ""}, "the agent failed without a message"),
        ({"actual_steps": "none"}, "the response cannot be used: actual_steps: Input should be a valid list"),
        ({"actual_steps": [{"name": 3}]}, "the response cannot be used: actual_steps.0.name"),
        ({"elapsed_sec": float("nan")}, "the response cannot be used: elapsed_sec"),
        ("NO1", "the response cannot be used"),
    ],
)
def test_failed_or_unusable_response_is_an_error(response: Any, error: str) -> None:
    result = result_of(response)
    assert result["status"] == "error"
    assert result["error"].startswith(error)


def test_question_without_reference_steps_has_no_steps_score() -> None:
    dataset: list[Any] = [{"template_id": "t", "questions": [{"id": "q", "question_text": "x"}]}]
    result = run_evaluation(dataset, {"q": {}})[0]
    assert "steps_score" not in result
    assert result["status"] == "success"


def test_results_follow_the_datasets_order_and_unknown_responses_are_skipped() -> None:
    questions = [{"id": name, "question_text": name} for name in "cab"]
    dataset: list[Any] = [{"template_id": "t", "questions": questions}, {"template_id": "empty"}]
    responses: list[Any] = [{"question_id": name} for name in ("a", "b", "c", "z")]
    assert [result["question_id"] for result in run_evaluation(dataset, responses)] == ["c", "a", "b"]


TWO: list[Any] = [{"template_id": "where", "questions": [QUESTION, {**QUESTION, "id": "q2"}]}]
# Ordered differently from the questions and the repeats.
REPEATED: list[Any] = [
    {**RESPONSE, "question_id": "q2", "repeat": 2},
    {**RESPONSE, "question_id": "q1", "repeat": 2, "error": "away"},
    {**RESPONSE, "question_id": "q2", "actual_steps": []},
    {**RESPONSE, "question_id": "q1", "repeat": 1},
]


def test_each_repeat_has_a_result_as_in_a_run_folder() -> None:
    results = run_evaluation(TWO, REPEATED)
    caught = [(result["question_id"], result["repeat"], result["steps_score"]) for result in results]
    assert caught == [("q1", 1, 1.0), ("q1", 2, 1.0), ("q2", 1, 0.0), ("q2", 2, 1.0)]
    assert list(results) == list(score_responses(TWO, REPEATED).results)


async def test_each_repeat_is_judged() -> None:
    def repeat_seen(question: dict[str, Any], response: dict[str, Any]) -> int:
        return int(response.get("repeat", 0))

    results = await arun_evaluation(TWO, REPEATED, evaluators=[repeat_seen])
    assert [result["repeat_seen"] for result in results] == [1, 2, 0, 2]


@pytest.mark.parametrize(
    "responses",
    [
        {"q1": {**RESPONSE, "repeat": 2}, "q2": RESPONSE},
        [RESPONSE, {**RESPONSE, "actual_answer": "the last one wins"}],
    ],
)
def test_responses_by_id_or_without_repeats_have_one_result_per_question(responses: Any) -> None:
    results = run_evaluation(TWO, responses)
    assert [result["question_id"] for result in results] == ["q1", "q2"]
    assert "repeat" not in results[1]
    assert results[0]["actual_answer"] == (RESPONSE if isinstance(responses, dict) else responses[1])["actual_answer"]


@pytest.mark.parametrize("bad", ["oops", '{"foo": {"bar": 1}}'])
def test_comparison_error_is_reported_whichever_steps_are_scored(bad: str) -> None:
    rows = '{"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "uri", "value": "urn:a"}}]}}'
    media_type = "application/sparql-results+json"
    question = QUESTION | {
        "reference_steps": [[{"name": "sparql_query", "output": rows, "output_media_type": media_type}]]
    }
    steps = [STEP | {"name": "sparql_query", "output": output} for output in (bad, rows)]
    dataset: list[Any] = [{"template_id": "t", "questions": [question]}]
    marked = []
    for order in (steps, steps[::-1]):
        response: Any = {"q1": {"actual_steps": order}}
        result = run_evaluation(dataset, response)[0]
        marked.append({step["output"] for step in result["actual_steps"] if "comparison_error" in step})
    assert marked[0] == marked[1] == {bad}


async def test_async_function_and_sync_function_in_a_running_loop_agree() -> None:
    responses: dict[str, Any] = {"q1": RESPONSE}
    assert await arun_evaluation(DATASET, responses) == run_evaluation(DATASET, responses)


@pytest.mark.parametrize(
    ("dataset", "responses", "config", "error"),
    [
        ({"a": 1}, {}, None, DatasetError),
        ([{"questions": []}], {}, None, DatasetError),
        (DATASET, [{"actual_answer": "x"}], None, ResponsesError),
        (DATASET, "responses.jsonl", None, ResponsesError),
        (DATASET, 5, None, ResponsesError),
        (DATASET, {}, {"step": 1}, ConfigError),
    ],
)
def test_invalid_arguments_are_rejected(dataset: Any, responses: Any, config: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        run_evaluation(dataset, responses, config)


@pytest.mark.parametrize("name", ["responses.jsonl", "responses.yaml"])
async def test_dataset_and_responses_may_be_files(name: str, tmp_path: Path) -> None:
    dataset, responses = tmp_path / "qa.yaml", tmp_path / name
    dataset.write_text("- template_id: t\n  questions:\n  - {id: 0123, question_text: Why?}\n")
    responses.write_text('{"question_id": "83", "actual_answer": "So."}\n')
    with pytest.warns(GraphRAGEvalWarning, match="YAML reads the id 0123 as 83"):
        results = run_evaluation(dataset, str(responses))
    assert [(result["question_id"], result["actual_answer"]) for result in results] == [("83", "So.")]
    with pytest.warns(GraphRAGEvalWarning, match="YAML reads the id 0123 as 83"):
        assert await arun_evaluation(str(dataset), responses) == results
    with pytest.raises(DatasetError, match="a response is to the question 0123"):
        run_evaluation(dataset, {"0123": {"question_id": "0123", "actual_answer": "So."}})


# --- judges ----------------------------------------------------------------------------------------------------------


def check_judged(results: list[Any]) -> None:
    for result in results:
        assert result["answer_f1"] == pytest.approx(2 / 3)
        assert result["answer_relevance"] > 0
        (step,) = result["actual_steps"]
        assert step["retrieval_context_f1"] == pytest.approx(2 / 3)
        assert step["retrieval_utilization"] == 1.0


def test_answers_and_contexts_are_judged(judge: OpenAIStub) -> None:
    dataset, responses = judged_dataset(3), judged_responses(3)
    before = copy.deepcopy((dataset, responses))
    check_judged(run_evaluation(dataset, responses, config_of(judge)))
    assert len(judge.requests) == 3 * REQUESTS
    assert (dataset, responses) == before


async def test_answers_are_judged_inside_a_running_loop(judge: OpenAIStub) -> None:
    check_judged(run_evaluation(judged_dataset(), judged_responses(), config_of(judge)))
    check_judged(await arun_evaluation(judged_dataset(), judged_responses(), config_of(judge)))


def test_wrong_api_key_is_a_warning_and_an_error_in_each_result(judge: OpenAIStub) -> None:
    config = config_of(judge)
    config["llm"]["generation"]["api_key"] = "wrong"
    with pytest.warns(GraphRAGEvalWarning, match="the judging was stopped: openai:gpt-4o-mini refused 3 requests in"):
        results = run_evaluation(judged_dataset(60), judged_responses(60), config)
    assert len(judge.requests) < 60
    assert all("heck the API key" in dict(result)["answer_correctness_error"] for result in results)


def test_question_without_an_answer_is_not_judged(judge: OpenAIStub) -> None:
    broken: Any = {"q0": {"actual_answer": "x", "actual_steps": 3}, "q1": {"status": "error", "error": "no"}}
    results = run_evaluation(judged_dataset(3), broken, config_of(judge))
    assert [result["status"] for result in results] == ["error"] * 3
    assert judge.requests == []


def answer_length(question: dict[str, Any], response: dict[str, Any]) -> int:
    return len(response["actual_answer"])


async def names_the_tower(question: dict[str, Any], response: dict[str, Any]) -> dict[str, Any]:
    return {"named": question["question_text"].split()[-1].strip("?") in response["actual_answer"], "why": "so"}


def has_messages(*, inputs: Any, outputs: Any, reference_outputs: Any) -> dict[str, Any]:
    return {"key": "messages", "score": len(outputs["messages"]) + len(reference_outputs["messages"])}


def raises(question: dict[str, Any], response: dict[str, Any]) -> float:
    raise KeyError("absent")


def test_functions_score_each_response() -> None:
    functions = [answer_length, names_the_tower, has_messages, raises]
    for result in map(dict, run_evaluation(judged_dataset(), judged_responses(), evaluators=functions)):
        assert (result["answer_length"], result["named"], result["why"], result["messages"]) == (15, True, "so", 8)
        assert result["raises_error"].startswith("KeyError")
        assert "raises" not in result


def test_langchain_model_can_judge_without_an_llm_section() -> None:
    answer = '{"reason": "so", "true_positives": ["a"], "false_positives": ["b"], "false_negatives": []}'
    chat = FakeListChatModel(responses=[answer])
    config = {"judges": {"metrics": ["answer_correctness"]}}
    for result in map(dict, run_evaluation(judged_dataset(), judged_responses(), config, llm=chat)):
        assert result["answer_f1"] == pytest.approx(2 / 3)
        assert "answer_correctness_cost" not in result


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"evaluators": answer_length}, "Pass a list of functions"),
        ({"evaluators": [lambda question, response: 1]}, "a lambda has no name"),
        ({"llm": 3}, "int cannot judge"),
        ({"config": {"answer_correctness": {"enabled": True}}}, "llm"),
    ],
)
def test_invalid_judges_are_rejected(arguments: dict[str, Any], complaint: str) -> None:
    with pytest.raises((ConfigError, OptionError), match=complaint):
        run_evaluation(judged_dataset(), judged_responses(), **arguments)


def test_run_metadata_of_a_response_is_passed_through_and_affects_nothing() -> None:
    call = {"model": "m", "started_at": "2026-01-05T10:00:00Z", "first_token_sec": 0.1, "input_messages": [[0, 1]]}
    more = {
        "started_at": "2026-01-05T10:00:00Z",
        "run_id": "01a2",
        "run_ids": ["01a2", "01a3"],
        "tags": ["night"],
        "metadata": {"stage": "test"},
        "llm_calls": [call],
        "llm_messages": [{"role": "user", "content": "?"}],
        "llm_tools": [{"name": "lookup"}],
    }
    result = result_of({**RESPONSE, **more})
    assert {key: result[key] for key in more} == more
    without = {key: value for key, value in result.items() if key not in more}
    plain = {key: value for key, value in result_of(RESPONSE).items() if key not in more}
    assert without == plain
    assert compute_aggregates([result]) == compute_aggregates([result_of(RESPONSE)])


def test_judgements_of_an_earlier_evaluation_are_dropped() -> None:
    judged = {"answer_f1": 0.5, "answer_relevance": 0.5, "answer_correctness_cost": 0.1, "answer_eval_error": "old"}
    assert not judged.keys() & result_of({**RESPONSE, **judged}).keys()


def test_agents_model_calls_are_priced() -> None:
    calls = [{"model": "m", "input_tokens": 1_000_000, "output_tokens": 500_000}]
    result = result_of({**RESPONSE, "llm_calls": calls}, {"prices": {"m": {"input": 0.5, "output": 2.0}}})
    assert result["agent_cost"] == 1.5
    assert result["llm_calls"][0]["cost"] == 1.5


def test_tool_without_a_reference_step_of_its_name_is_a_warning() -> None:
    question = {"id": "q", "question_text": "1 + 2?", "reference_steps": [[{"name": "add", "output": "3"}]]}
    dataset: Any = [{"template_id": "t", "questions": [question]}]
    step = {"name": "add_up", "args": {}, "id": "c", "status": "success", "output": "3"}
    responses: Any = [{"question_id": "q", "actual_steps": [step]}]
    with pytest.warns(GraphRAGEvalWarning, match="add_up is called in 1 of 1 response") as caught:
        assert run_evaluation(dataset, responses)[0]["steps_score"] == 0.0
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config = {"steps": {"names": {"add_up": "add"}}}
        assert run_evaluation(dataset, responses, config)[0]["steps_score"] == 1.0


def test_failed_judges_and_unknown_prices_are_warnings() -> None:
    calls = [{"model": "nobody-knows-me", "input_tokens": 1, "output_tokens": 1}]
    config = {"prices": {"other": {"input": 1.0, "output": 1.0}}}
    responses = [{**response, "llm_calls": calls} for response in judged_responses()]
    with pytest.warns(GraphRAGEvalWarning) as caught:
        run_evaluation(judged_dataset(), responses, config, evaluators=[raises])
    assert [str(each.message)[:45] for each in caught] == [
        "a judge or a metric failed in 2 of 2 results;",
        "no price is known for nobody-knows-me, so cos",
    ]
    assert {each.filename for each in caught} == {__file__}


async def test_warnings_of_the_async_function_name_the_caller() -> None:
    with pytest.warns(GraphRAGEvalWarning, match="a judge or a metric failed") as caught:
        await arun_evaluation(judged_dataset(), judged_responses(), evaluators=[raises])
    assert caught[0].filename == __file__
