"""A report of some of a run's questions."""

from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import report_html, score_responses, score_run, write_report
from graphrag_eval_lc.dataset.selection import Selection
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.report.reported_run import reported_run
from graphrag_eval_lc.report.run_report import report_data

DATASET: list[Any] = [
    {"template_id": each, "questions": [{"id": f"{each}{number}", "question_text": "?"} for number in (1, 2)]}
    for each in ("lines", "nodes")
]
RESPONSES: list[Any] = [{"question_id": "lines1", "actual_answer": "x"}, {"question_id": "nodes2", "error": "away"}]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return the folder of a run with two templates, of which two questions have a response."""
    score_responses(DATASET, RESPONSES, output_dir=tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("selection", "numbers", "description"),
    [
        ({"template_ids": ["nodes"]}, (2, 0, 2), '2 of its 4 questions (template_ids: ["nodes"])'),
        ({"question_ids": ["lines1"]}, (1, 1, 0), '1 of its 4 questions (question_ids: ["lines1"])'),
        ({"answered_only": True}, (2, 1, 1), "2 of its 4 questions (answered_only: true)"),
    ],
)
def test_partial_report_covers_only_the_selection_and_says_so_first(
    run: Path, selection: dict[str, Any], numbers: tuple[int, ...], description: str
) -> None:
    data = report_data(reported_run(run, Selection(**selection)))
    headline = data["view"].headline
    errors = headline.states.get("error", 0)
    assert (headline.samples, headline.samples - errors, errors) == numbers
    assert data["warnings"][0] == f"This report is of a part of the run: {description}. All numbers are of these alone."
    assert "This report is of a part of the run" in report_html(run, **selection)
    assert "This report is of a part of the run" not in report_html(run)


def test_partial_report_does_not_replace_the_full_one(run: Path, tmp_path: Path) -> None:
    whole = write_report(run)
    before = whole.read_bytes()
    with pytest.raises(OptionError, match=r"does not take the place of that of the whole run. Choose another file"):
        write_report(run, template_ids=["nodes"])
    assert write_report(run, tmp_path / "part.html", template_ids=["nodes"]).name == "part.html"
    assert whole.read_bytes() == before


def test_run_in_memory_can_have_a_partial_report() -> None:
    run = score_responses(DATASET, RESPONSES)
    page = report_html(run, question_ids=["nodes2"])
    assert "1 of its 4 questions" in page


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({"template_ids": ["node"]}, "unknown template node. Did you mean nodes?"),
        ({"question_ids": ["7"]}, "unknown question 7. The run has: lines1, lines2, nodes1, nodes2."),
        ({"template_ids": ["lines"], "question_ids": ["nodes1"]}, "the run has none of the selected questions"),
    ],
)
def test_unknown_ids_are_one_error(run: Path, selection: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        report_html(run, **selection)


def test_page_shows_the_selection_of_a_partially_scored_run(tmp_path: Path) -> None:
    score_responses(DATASET, RESPONSES, output_dir=tmp_path / "run", answered_only=True)
    facts = {fact["name"]: fact["value"] for fact in reported_run(tmp_path / "run").what_ran({})}
    assert facts["Selection"] == "answered_only: true"
    score_run(tmp_path / "run", dataset=DATASET, template_ids=["lines"])
    facts = {fact["name"]: fact["value"] for fact in reported_run(tmp_path / "run").what_ran({})}
    assert facts["Selection of the scoring"] == 'template_ids: ["lines"]'
