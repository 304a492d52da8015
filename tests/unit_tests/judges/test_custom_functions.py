import functools
import json
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from graphrag_eval_lc import run_evaluation
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.judges.custom_functions import CustomFunction, all_functions

QUESTION = {
    "id": "q1",
    "question_text": "1 + 1?",
    "level": "easy",
    "reference_answer": "2",
    "reference_steps": [[{"name": "add", "args": {"a": 1}, "output": "2"}], [{"name": "say"}]],
}
RESPONSE = {
    "question_id": "q1",
    "actual_answer": "Two.",
    "actual_steps": [{"name": "add", "id": "s1", "args": {"a": 1}, "output": "2", "status": "success"}],
}


class NumpyLike:
    def item(self) -> float:
        return 0.5


async def record_of(function: Callable[..., Any]) -> dict[str, Any]:
    return await CustomFunction(function).acall(QUESTION, RESPONSE)


@pytest.mark.parametrize("value", [0.5, 1, "good", True, None])
async def test_single_value_is_stored_under_the_functions_name(value: object) -> None:
    def grade(question: dict[str, Any], response: dict[str, Any]) -> object:
        assert (question, response) == (QUESTION, RESPONSE)
        return value

    assert await record_of(grade) == {"grade": value}


async def test_async_function_and_callable_object_are_awaited() -> None:
    async def grade(question: dict[str, Any], response: dict[str, Any]) -> float:
        return 0.25

    class Grader:
        async def __call__(self, question: dict[str, Any], response: dict[str, Any]) -> float:
            return 0.75

    assert await record_of(grade) == {"grade": 0.25}
    assert await record_of(functools.partial(grade)) == {"grade": 0.25}
    assert await record_of(Grader()) == {"Grader": 0.75}


async def test_keys_of_a_dict_are_kept() -> None:
    def grade(question: dict[str, Any], response: dict[str, Any]) -> dict[str, Any]:
        return {"length": 4, "parts": ("a", "b"), "share": NumpyLike()}

    assert await record_of(grade) == {"length": 4, "parts": ["a", "b"], "share": 0.5}


async def test_agentevals_signature_is_supported() -> None:
    def agree(*, outputs: dict[str, Any], reference_outputs: dict[str, Any], **_: Any) -> dict[str, Any]:
        score = outputs["actual_answer"] == reference_outputs["reference_answer"]
        return {"key": "agreement", "score": score, "comment": "Words, not digits.", "metadata": None}

    async def level(inputs: dict[str, Any], outputs: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"key": "level", "score": inputs["level"]}, {"key": "asked", "score": 1.0, "comment": None}]

    assert await record_of(agree) == {"agreement": False, "agreement_reason": "Words, not digits."}
    assert await record_of(level) == {"level": "easy", "asked": 1.0}


async def test_agentevals_sees_the_steps_as_messages() -> None:
    seen: dict[str, Any] = {}

    def look(inputs: Any, outputs: Any, reference_outputs: Any) -> float:
        seen.update(outputs=outputs["messages"], reference=reference_outputs["messages"], inputs=inputs)
        return 1.0

    await record_of(look)
    call = {"id": "s1", "type": "function", "function": {"name": "add", "arguments": json.dumps({"a": 1})}}
    assert seen["outputs"] == [
        {"role": "user", "content": "1 + 1?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "s1", "content": "2"},
        {"role": "assistant", "content": "Two."},
    ]
    assert [message["role"] for message in seen["reference"]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    assert seen["inputs"] == {"id": "q1", "question_text": "1 + 1?", "level": "easy"}


def tools_agree(*, outputs: dict[str, Any], reference_outputs: dict[str, Any]) -> bool:
    """Compare the names of the tool calls, like agentevals' ``create_trajectory_match_evaluator``."""
    actual_names, wanted = (
        [call["function"]["name"] for message in each["messages"] for call in message.get("tool_calls", ())]
        for each in (outputs, reference_outputs)
    )
    return actual_names == wanted and wanted == [step["name"] for [step] in reference_outputs["reference_steps"]]


NAMES = {"run_query": "sparql_query", "ask_graph": "sparql_query", "lookup": "autocomplete_search"}


@pytest.mark.parametrize(
    ("record_of", "reference", "agree"),
    [
        (["run_query"], ["sparql_query"], True),
        (["ask_graph", "search_notes"], ["sparql_query", "retrieval"], True),
        (["lookup", "run_query"], ["iri_discovery", "sparql_query"], True),
        (["add"], ["add"], True),
        (["sparql_query"], ["sparql_query"], True),
        (["lookup"], ["sparql_query"], False),
        ([], ["sparql_query"], False),
    ],
)
def test_agentevals_sees_the_reference_with_tool_names(record_of: list[str], reference: list[str], agree: bool) -> None:
    steps: Any = [[{"name": name, "output": "x", "args": {}, "relevant_ids": ["d"]}] for name in reference]
    question: Any = {"id": "q", "question_text": "?", "reference_steps": steps}
    response: Any = {
        "question_id": "q",
        "actual_steps": [{"name": name, "args": {}, "output": "x"} for name in record_of],
    }
    config = {"steps": {"names": NAMES}, "retrieval": {"steps": ["search_notes"]}}
    dataset: Any = [{"template_id": "t", "questions": [question]}]
    [result] = run_evaluation(dataset, [response], config, evaluators=[tools_agree])
    assert result["tools_agree"] is agree
    assert [step["name"] for [step] in result["reference_steps"]] == reference


def fails(question: Any, response: Any) -> float:
    return float(response["score"])


def exits(question: Any, response: Any) -> float:
    sys.exit("enough")


def stops_iteration(question: Any, response: Any) -> Any:
    return next(iter(()))


def returns_nan(question: Any, response: Any) -> float:
    return float("nan")


def returns_object(question: Any, response: Any) -> object:
    return object()


def returns_reserved(question: Any, response: Any) -> dict[str, float]:
    return {"steps_score": 1.0}


def returns_list(question: Any, response: Any) -> list[float]:
    return [1.0]


def leaks_secret(question: Any, response: Any) -> float:
    raise ValueError("401 for https://me:pa55word@host")


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (fails, "KeyError: 'score'"),
        (exits, "SystemExit: enough"),
        (stops_iteration, "StopIteration"),
        (returns_nan, "ValueError: Out of range float values are not JSON compliant"),
        (returns_object, "an evaluator returned object, which a result cannot hold."),
        (
            returns_reserved,
            "returns_reserved returned the key 'steps_score', which is not a text or a key of the results",
        ),
        (returns_list, "returns_list returned a list of something else than {key, score, comment}"),
        (leaks_secret, "ValueError: 401 for https://me:***@host"),
    ],
)
async def test_failure_is_recorded_in_the_result(function: Callable[..., Any], text: str) -> None:
    record = await record_of(function)
    assert list(record) == [f"{function.__name__}_error"]
    assert text in record[f"{function.__name__}_error"]


async def test_synchronous_function_runs_in_a_thread() -> None:
    threads = []

    def record_thread(question: Any, response: Any) -> bool:
        threads.append(threading.current_thread())
        return True

    await record_of(record_thread)
    assert threads != [threading.current_thread()]


async def test_function_cannot_modify_the_records() -> None:
    def clear(question: dict[str, Any], response: dict[str, Any]) -> bool:
        question.clear()
        response.clear()
        return True

    await record_of(clear)
    assert "id" in QUESTION
    assert "actual_answer" in RESPONSE


def test_functions_with_the_same_name_are_numbered() -> None:
    def make_grade() -> Callable[..., float]:
        def grade(question: Any, response: Any) -> float:
            return 1.0

        return grade

    assert [each.name for each in all_functions([make_grade(), make_grade(), make_grade()])] == [
        "grade",
        "grade_2",
        "grade_3",
    ]


def steps_score(question: Any, response: Any) -> float:
    return 1.0


@pytest.mark.parametrize("wrong", [3, lambda question, response: 1.0, steps_score])
def test_invalid_evaluator_is_rejected_at_once(wrong: Any) -> None:
    with pytest.raises(OptionError):
        CustomFunction(wrong)
