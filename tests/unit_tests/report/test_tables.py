import io
from typing import Any

from rich.console import Console

from graphrag_eval_lc import compute_aggregates, run_evaluation
from graphrag_eval_lc.report.tables import print_summary, reason_of


def question(number: int) -> dict[str, Any]:
    return {
        "id": f"q{number}",
        "question_text": f"What about [bold]{number}[/bold]?",
        "reference_steps": [[{"name": "lookup", "output": "1"}]],
    }


def step(output: str) -> dict[str, Any]:
    return {"name": "lookup", "args": {}, "id": "call_1", "status": "success", "output": output}


DATASET: list[Any] = [{"template_id": "numbers", "questions": [question(number) for number in range(4)]}]
RESPONSES: list[Any] = [
    {"question_id": "q0", "actual_steps": [step("1")], "total_tokens": 1500, "elapsed_sec": 1.25},
    {"question_id": "q1", "actual_steps": [step("2")], "total_tokens": 500, "elapsed_sec": 0.75},
    {"question_id": "q2", "error": "RateLimitError: slow down"},
]


def printed(worst: int = 5) -> str:
    results: list[Any] = run_evaluation(DATASET, RESPONSES)
    console = Console(file=io.StringIO(), width=140)
    print_summary(console, results, compute_aggregates(results), worst=worst)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_templates_row_has_questions_errors_and_means() -> None:
    row = next(line for line in printed().splitlines() if line.strip().startswith("numbers"))
    assert row.split() == ["numbers", "│", "4", "│", "2", "│", "0.500", "│", "1,000", "│", "1.00", "│", "│"]


def test_worst_questions_come_errors_first_with_their_reason() -> None:
    text = printed()
    assert text.index("RateLimitError: slow down") < text.index(
        "lookup (nearest: call_1): another text: 2 instead of 1"
    )
    assert "q0" not in text
    assert "(3 of 3 that did not score in full)" in text


def test_number_of_worst_questions_is_the_callers() -> None:
    assert "(1 of 3 that did not score in full)" in printed(worst=1)
    assert "worst" not in printed(worst=0)


def test_markup_in_texts_is_shown_as_text() -> None:
    assert "[bold]1[/bold]" in printed()


def test_reason_of_a_question_in_full_is_empty() -> None:
    assert reason_of(run_evaluation(DATASET, RESPONSES)[0]) == ""
