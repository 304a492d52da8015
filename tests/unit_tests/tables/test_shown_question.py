"""Displaying one question in a notebook and as text."""

import re
from typing import Any

import pytest

from graphrag_eval_lc import run_benchmark, run_evaluation
from graphrag_eval_lc.errors import OptionError, RunFolderError
from graphrag_eval_lc.tables import Results
from graphrag_eval_lc.tables.results import ShownQuestion

ATTACK = "</td><script>alert(1)</script>\x1b[2J"
DATASET: list[Any] = [
    {
        "template_id": "sums",
        "questions": [
            {
                "id": "q1",
                "question_text": "1 + 1, then doubled?",
                "reference_answer": "4",
                "reference_steps": [[{"name": "add", "output": "2"}], [{"name": "double", "output": "4"}]],
            },
            {"id": "q2", "question_text": "Who?"},
        ],
    }
]
STEPS: list[dict[str, Any]] = [
    {"name": "add", "args": {"a": 1}, "id": "c1", "status": "success", "output": "2"},
    {"name": "double", "args": {"a": 2}, "id": "c2", "status": "error", "error": "ValueError: no"},
    {"name": "double", "args": {"a": 2}, "id": "c3", "status": "success", "output": "5"},
]


@pytest.fixture
def results() -> Results:
    responses: Any = {"q1": {"actual_steps": STEPS, "actual_answer": "5"}, "q2": {"error": "TimeoutError: away"}}
    return run_evaluation(DATASET, responses)


def test_text_has_question_answers_scores_references_and_steps(results: Results) -> None:
    lines = repr(results.show("q1")).splitlines()
    assert lines[:4] == ["q1 of sums: 1 + 1, then doubled?", "answer: 5", "reference answer: 4", "steps_score: 0.000"]
    assert lines[4] == "2 reference steps"
    assert lines[5].startswith("  group 1, add: ")
    assert lines[6].startswith("  group 2, double: 0, ")
    assert lines[7:] == [
        "3 steps of the agent",
        '  1. add success {"a": 1} → 2',
        '  2. double error {"a": 2} → ValueError: no',
        '  3. double success {"a": 2} → 5',
    ]


def test_failed_question_shows_its_error(results: Results) -> None:
    assert repr(results.show("q2")).splitlines() == ["q2 of sums: Who?", "error: TimeoutError: away"]
    assert "TimeoutError: away" in results.show("q2")._repr_html_()


def test_html_has_the_same_content_as_tables(results: Results) -> None:
    html = results.show("q1")._repr_html_()
    assert all(
        text in html for text in ("1 + 1, then doubled?", "The reference", "What the agent did", "ValueError: no")
    )


def test_unknown_question_is_an_error(results: Results) -> None:
    with pytest.raises(OptionError, match=r"no result for repeat 1 of the question 'q9'.*Give one of q1, q2"):
        results.show("q9")
    run = run_benchmark(lambda question: "4", DATASET, progress="off", question_ids=["q2"])
    with pytest.raises(RunFolderError, match="no result for repeat 2"):
        run.show("q2", repeat=2)


def hostile(number_of_steps: int) -> ShownQuestion:
    text = ATTACK * 10_000
    step = {"name": text, "args": {text: text}, "id": "c", "status": text, "output": text}
    diagnosis = {"score": 0.0, "reason": text}
    return ShownQuestion(
        {
            **dict.fromkeys(("question_id", "template_id", "question_text", "actual_answer", "reference_answer"), text),
            "repeat": 2,
            "actual_steps": [step] * number_of_steps,
            "reference_steps": [[{"name": text}] * number_of_steps],
            "steps_diagnosis": [[diagnosis] * number_of_steps],
        }
    )


def test_hostile_texts_are_escaped_and_bounded() -> None:
    shown = hostile(1000)
    html, text = shown._repr_html_(), repr(shown)
    assert "<script" not in html
    assert re.search("[\x00-\x09\x0b-\x1f]", html + text) is None
    assert len(html) < 80_000
    assert len(text) < 10_000
    assert html.count("and 980 more") == 2


def test_secrets_are_masked() -> None:
    key = "sk-proj-" + "aB3dE6gH9jK2mN5p" * 3
    step = {"name": "ask", "args": {"header": f"Bearer {key}"}, "id": "c", "status": "error", "error": f"401 {key}"}
    shown = ShownQuestion({"question_id": "q", "template_id": "t", "actual_answer": key, "actual_steps": [step]})
    assert key not in shown._repr_html_() + repr(shown)


@pytest.mark.parametrize("broken", [{}, {"question_id": 7, "actual_steps": 5}, {"actual_steps": ["x"]}])
def test_broken_results_are_reported(broken: dict[str, Any]) -> None:
    assert "This ShownQuestion cannot be shown" in ShownQuestion(broken)._repr_html_()
