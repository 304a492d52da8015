"""Terminal output for a run in which most questions have no response."""

from typing import Any

from support.report_samples import console_text

from graphrag_eval_lc import run_evaluation
from graphrag_eval_lc.report.summary import summary_tables
from graphrag_eval_lc.view import run_view


def printed(templates: int, answered: int, wrong: int = 0, worst: int = 3) -> list[str]:
    """Return the output for one question per template; the last ones are answered, some of them wrongly."""
    step = {"name": "lookup", "output": "1"}
    dataset: list[Any] = [
        {
            "template_id": f"t{n:03}",
            "questions": [{"id": f"q{n:03}", "question_text": "?", "reference_steps": [[step]]}],
        }
        for n in range(templates)
    ]
    actual = {**step, "args": {}, "id": "c", "status": "success"}
    responses: dict[str, Any] = {
        f"q{n:03}": {"actual_steps": [{**actual, "output": "2" if n >= templates - wrong else "1"}]}
        for n in range(templates - answered, templates)
    }
    results: list[Any] = run_evaluation(dataset, responses)
    return console_text(summary_tables(run_view(iter(results), most_failures=worst))).splitlines()


def test_unanswered_templates_are_one_line_with_number_and_examples() -> None:
    lines = printed(500, 3)
    assert len(lines) < 35
    assert "497 more templates without any response (497 questions); not shown: t000, t001, t002 and 494 more" in lines
    assert [line.split()[0] for line in lines if line.startswith(" t")] == ["t497", "t498", "t499"]
    micro = next(line for line in lines if "All questions" in line)
    assert micro.split("│")[1:3] == ["       500 ", "    497 "]


def test_answered_questions_come_first_among_the_worst() -> None:
    lines = printed(500, 3, wrong=2)
    assert "The worst questions (3 of 499 that are not right)" in [line.strip() for line in lines]
    assert [line.split()[0] for line in lines if line.startswith(" q")] == ["q498", "q499", "q000"]


def test_without_a_worst_question_there_is_no_table() -> None:
    lines = printed(500, 3, worst=0)
    assert not [line for line in lines if "worst questions" in line]
    assert len(lines) < 22


def test_few_unanswered_templates_have_rows() -> None:
    for templates, answered in ((12, 2), (30, 15)):
        lines = printed(templates, answered)
        assert len([line for line in lines if line.startswith(" t")]) == templates
        assert not [line for line in lines if "not shown" in line]


def test_order_of_the_worst_is_unchanged_if_most_are_answered() -> None:
    lines = printed(10, 6, wrong=2, worst=9)
    assert [line.split()[0] for line in lines if line.startswith(" q")] == [
        "q000",
        "q001",
        "q002",
        "q003",
        "q008",
        "q009",
    ]
