"""Misspelt keys and wrong types that `validate` reports, and keys that it accepts."""

from typing import Any

import pytest

from graphrag_eval_lc import run_evaluation, validate_dataset
from graphrag_eval_lc.dataset.findings import KEYS, near_key
from graphrag_eval_lc.errors import DatasetError

STEP = {"name": "add", "output": "3"}
ACTUAL = {"name": "add", "args": {}, "id": "c", "status": "success", "output": "3"}


def dataset(step: Any = STEP, question: Any = None, template: Any = None) -> list[Any]:
    record = {"id": "q", "question_text": "Why?", "reference_steps": [[step]], **(question or {})}
    return [{"template_id": "t", "questions": [record], **(template or {})}]


def found(*arguments: Any) -> list[tuple[str, str, str | None]]:
    return [(each.severity, each.what, each.hint) for each in validate_dataset(*arguments)]


NEAR = {
    "template": "quesitons>questions",
    "question": "refrence_steps>reference_steps reference_step>reference_steps referenceSteps>reference_steps "
    "question_txt>question_text reference-answer>reference_answer",
    "reference_step": "requried_columns>required_columns igonre_duplicates>ignore_duplicates ouput>output "
    "Output>output ouput_media_type>output_media_type orderd>ordered arg>args",
    "response": "actual_stpes>actual_steps actual_anwser>actual_answer",
    "actual_step": "stauts>status",
}
OTHER = {
    "template": "description name outputs filters parameters paraphrases",
    "question": "question_type notes draft parameter_bindings difficulty x",
    "reference_step": "output_type notes matches order columns tool rows",
    "response": f"errors llm_calls tags repeat started_at stats {'x' * 5_000}",
    "actual_step": "error artifact parent_id attempts start",
}


@pytest.mark.parametrize("kind", sorted(KEYS.keys() & NEAR))
def test_misspelt_key_is_distinguished_from_a_custom_key(kind: str) -> None:
    for key, expected in (pair.split(">") for pair in NEAR[kind].split()):
        assert near_key(key, KEYS[kind]) == expected
    assert {key for key in OTHER[kind].split() if near_key(key, KEYS[kind])} == set()


def test_misspelt_keys_are_found_in_every_record_with_their_lines(tmp_path: Any) -> None:
    path, responses = tmp_path / "qa.yaml", tmp_path / "responses.jsonl"
    path.write_text(
        "- template_id: t\n"
        "  questions:\n"
        "  - id: q1\n"
        "    question_text: Why?\n"
        "    refrence_steps: []\n"
        "  - id: q2\n"
        "    question_text: How?\n"
        "    reference_steps:\n"
        "    - - name: add\n"
        "        output: '3'\n"
        "        requried_columns: [a]\n"
        "- template_id: u\n"
        "  quesitons: []\n"
    )
    responses.write_text(
        '{"question_id": "q1", "actual_stpes": []}\n'
        '{"question_id": "q2", "actual_steps": [{"name": "add", "ouput": "3"}]}\n'
    )
    assert [(each.severity, each.line, each.what) for each in validate_dataset(path, responses)] == [
        ("error", 5, "the key refrence_steps is read by nothing, and reference_steps is missing"),
        ("error", 11, "the key requried_columns is read by nothing, and required_columns is missing"),
        ("error", 13, "the key quesitons is read by nothing, and questions is missing"),
        ("error", 1, "the key actual_stpes is read by nothing, and actual_steps is missing"),
        ("error", 2, "the key ouput is read by nothing, and output is missing"),
    ]


@pytest.mark.parametrize(
    ("key", "value", "hint"),
    [
        ("ordered", "false", "Write ordered: false, without quotes."),
        ("ordered", 1, "Write ordered: true, without quotes."),
        ("ignore_duplicates", "no", "Write ignore_duplicates: false, without quotes."),
        ("strict", 1, "Write strict: true, without quotes."),
        ("strict", "yes", "Write strict: true, without quotes."),
    ],
)
def test_flag_given_as_string_or_number_is_reported(key: str, value: Any, hint: str) -> None:
    ((severity, what, actual_hint),) = found(dataset({**STEP, key: value}))
    assert (severity, actual_hint) == ("error", hint)
    assert what.startswith(f"{key} is ")
    assert what.endswith(", which is not true or false")


@pytest.mark.parametrize("key", ["ordered", "ignore_duplicates", "strict"])
def test_invalid_flag_is_rejected(key: str) -> None:
    wrong = dataset({**STEP, key: "maybe"})
    assert [what for _, what, _ in found(wrong)] == ["'maybe' is not allowed here"]
    with pytest.raises(DatasetError, match=f"key .*{key}: 'maybe' is not allowed here"):
        run_evaluation(wrong, {})


@pytest.mark.parametrize("key", ["input_tokens", "output_tokens", "total_tokens", "elapsed_sec"])
def test_boolean_is_not_accepted_as_a_number(key: str) -> None:
    response = {"question_id": "q", key: True}
    (problem,) = validate_dataset(dataset(STEP), [response])
    assert (problem.what, problem.hint) == ("True is not allowed here", "Give a number, not true or false.")
    (result,) = run_evaluation(dataset(STEP), [response])
    assert (result["status"], key in result) == ("error", False)
    assert f"{key}: Give a number, not true or false" in result["error"]


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"ordered": "maybe"}, "'maybe' is not allowed here"),
        ({"tolerance": "x"}, "'x' is not allowed here"),
        ({"required_columns": "name"}, "a list is needed here, not str"),
        ({"name": ["add"]}, "['add'] is not a text"),
        ({"args": "x"}, "a mapping of keys to values is needed here, not str"),
        ({"output_media_type": ["text/plain"]}, "['text/plain'] is not a text"),
        ({"output": 5}, "the output is the number 5, and texts are compared"),
        ({"output": True}, "the output is true, and texts are compared"),
        ({"output": ["a"]}, "the output is a list, and texts are compared"),
    ],
)
def test_wrong_type_in_a_reference_step_is_one_finding(changes: dict[str, Any], what: str) -> None:
    assert [(severity, text) for severity, text, _ in found(dataset({**STEP, **changes}))] == [("error", what)]


@pytest.mark.parametrize("question", [{"id": ["q"]}, {"id": 1.5}, {"question_text": 7}])
def test_ids_and_question_texts_must_be_strings(question: dict[str, Any]) -> None:
    ((severity, what, _),) = found(dataset(question=question))
    assert (severity, what.endswith("is not a text")) == ("error", True)


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (["many"], "[0].value: 'many' is not allowed here"),
        ([3, {"value": 3, "unit": 7}], "[1].unit: 7 is not a text"),
        ([{"value": 3, "unt": "kV"}], "[0].unt: the key unt is read by nothing, and unit is missing"),
    ],
)
def test_mistake_in_a_reference_number_is_reported_at_its_key(value: list[Any], what: str) -> None:
    (problem,) = validate_dataset(dataset(question={"reference_numbers": value}))
    assert f"reference_numbers{what}" in str(problem)


def test_numeric_answer_is_a_warning() -> None:
    hint = "Put it in quotes: '42'."
    assert found(dataset(question={"reference_answer": 42})) == [
        ("warning", "reference_answer is the number 42, not a text", hint)
    ]
    response = {"question_id": "q", "actual_steps": [ACTUAL], "actual_answer": 42}
    assert found(dataset(), [response]) == [("warning", "actual_answer is the number 42, not a text", hint)]
    assert found(dataset(), [{**response, "actual_answer": ["a", "b"]}]) == []


@pytest.mark.parametrize(
    ("changes", "finding"),
    [
        ({"status": "Success"}, ("warning", "the status Success is read as success", "Write success.")),
        ({"status": "ERROR"}, ("warning", "the status ERROR is read as error", "Write error.")),
        (
            {"status": "done"},
            (
                "error",
                "the status done is not success or error, so that the step counts as failed",
                "Write success or error.",
            ),
        ),
        (
            {"args": "a=1"},
            (
                "error",
                "args are 'a=1', not a mapping, so that the step counts as called without arguments",
                "Give a mapping of names to values.",
            ),
        ),
        ({"output": 3}, ("warning", "the output is the number 3, not a text", "Put it in quotes: '3'.")),
    ],
)
def test_mistake_in_an_actual_step_is_reported(changes: dict[str, Any], finding: tuple[str, str, str]) -> None:
    response = {"question_id": "q", "actual_steps": [{**ACTUAL, **changes}]}
    assert found(dataset(), [response]) == [finding]


@pytest.mark.parametrize(
    ("status", "what"),
    [
        ("Error", "the status Error is read as error"),
        ("done", "the status done is not success or error, and is not read"),
    ],
)
def test_status_of_a_response_is_a_warning(status: str, what: str) -> None:
    response = {"question_id": "q", "actual_steps": [ACTUAL], "status": status}
    assert [(severity, text) for severity, text, _ in found(dataset(), [response])] == [("warning", what)]


@pytest.mark.parametrize("junk", [None, 3, "x", [], [[]], {"a": []}, float("nan"), pytest.param(10**4000, id="huge")])
def test_validation_never_raises_whatever_a_value_is(junk: Any) -> None:
    for key in (*KEYS["reference_step"], "reads"):
        validate_dataset(dataset({**STEP, key: junk}))
    for key in KEYS["question"]:
        validate_dataset(dataset(question={key: junk}))
    for key in KEYS["response"]:
        validate_dataset(dataset(), [{"question_id": "q", key: junk}])
    for key in KEYS["actual_step"]:
        validate_dataset(dataset(), [{"question_id": "q", "actual_steps": [{**ACTUAL, key: junk}]}])


@pytest.mark.parametrize(("key", "value"), [("total_tokens", "2"), ("elapsed_sec", "1.5")])
def test_number_given_as_a_string_is_an_error(key: str, value: str) -> None:
    response = {"question_id": "q", "actual_steps": [ACTUAL], key: value}
    what = f"{key} is '{value}', a text, so that it is not counted"
    assert found(dataset(), [response]) == [("error", what, "Write the number without quotes.")]
    assert found(dataset(), [{**response, key: None}]) == []
