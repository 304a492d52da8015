"""Undecided steps and truncated outputs in the report of a run, in a real browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("axe_playwright_python", reason="the group `full` is not installed")

from playwright.sync_api import Browser, expect
from support.browsing import OpenedPage
from support.uncertain_steps import results_of

from graphrag_eval_lc import write_report

pytestmark = pytest.mark.full

OUTPUTS = {"t_right": "ok", "t_doubt": "?", "t_cut": "o<cut>", "t_wrong": "no"}


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[OpenedPage]:
    results: Any = results_of(**OUTPUTS)
    page = OpenedPage(browser, write_report(results, tmp_path / "report.html"), address="status=all&sort=given")
    yield page
    complaints = list(page.complaints)
    page.close()
    assert complaints == []


def test_undecided_and_near_steps_have_different_marks(opened: OpenedPage) -> None:
    marks = {}
    for key in OUTPUTS:
        row = opened.page.locator("table.list tr.question").filter(has=opened.page.get_by_text(key, exact=True))
        row.locator(".question-button").click()
        mark = opened.page.locator(".detail .step-head .status")
        expect(mark).to_have_count(1)
        color = mark.evaluate("node => getComputedStyle(node).color + getComputedStyle(node).fontStyle")
        marks[key] = (mark.inner_text(), color)
        row.locator(".question-button").click()
        expect(mark).to_have_count(0)
    texts = {key: text for key, (text, _) in marks.items()}
    assert texts == {"t_right": "✓ matched", "t_doubt": "? undecided", "t_cut": "? undecided", "t_wrong": "✗ differs"}
    assert marks["t_doubt"][1] == marks["t_cut"][1] != marks["t_wrong"][1]


def test_undecided_steps_are_a_group_with_its_questions(opened: OpenedPage) -> None:
    row = opened.page.locator("table.errors tr").filter(has_text="not known whether it fits")
    expect(row).to_contain_text("an undecided step, which counts 0")
    row.locator("button.show-set").click()
    keys = opened.page.locator("table.list tr.question .question-id")
    expect(keys).to_have_text(["t_doubt", "t_cut"])


def test_search_finds_undecided_questions(opened: OpenedPage) -> None:
    opened.page.get_by_role("searchbox").fill("undecided")
    expect(opened.page.locator("table.list tr.question .question-id")).to_have_text(["t_doubt", "t_cut"])


def test_upper_bound_is_next_to_the_score(opened: OpenedPage) -> None:
    expect(opened.page.locator("table.scores tbody tr")).to_have_count(5)
    expect(opened.page.locator("table.scores td.strong").first).to_have_text("0.250 0.750 if all undecided fit")
    expect(opened.page.get_by_text("if all undecided fit")).to_have_count(1)
    expect(opened.page.locator("#templates td.metric")).to_contain_text("0.750 if undecided fit")
    expect(opened.page.locator(".notice")).to_contain_text("steps_score is between 0.250 and 0.750")


def test_page_is_accessible(opened: OpenedPage) -> None:
    opened.open_everything()
    assert opened.serious_violations() == []
