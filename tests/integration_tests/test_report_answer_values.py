"""In a real browser: a value in an answer opens the row it comes from, and no text in it has an effect."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("axe_playwright_python", reason="the group `full` is not installed")

from playwright.sync_api import Browser, expect
from support.browsing import OpenedPage

from graphrag_eval_lc import run_benchmark, write_report

pytestmark = pytest.mark.full

OUTPUT = '[{"zone": "NO1", "price": 107.41, "note": "<img src=x onerror=alert(1)>"}, {"zone": "NO2", "price": 98.05}]'
ANSWER = "- NO1: 107.41 EUR <script>alert(1)</script>\n- NO2: 98.50 EUR"
QUESTION = {"id": "q", "question_text": "What does power cost?"}


def agent(question: str) -> dict[str, Any]:
    from langchain_core.tools import tool

    @tool
    def sql_db_query(query: str) -> str:
        """Run a query."""
        return OUTPUT

    sql_db_query.invoke({"query": question})
    return {"answer": ANSWER}


def test_value_opens_its_row_and_the_row_links_back(browser: Browser, tmp_path: Path) -> None:
    config = {"answer_grounding": {"enabled": True}}
    dataset = [{"template_id": "t", "questions": [QUESTION]}]
    run = run_benchmark(agent, dataset, output_dir=tmp_path / "run", config=config)  # type: ignore[arg-type]
    opened = OpenedPage(browser, write_report(run), address="status=all&sort=given")
    page = opened.page
    page.locator(".question-button").click()
    value = page.get_by_role("button", name="107.41 EUR (in a row that the agent found)")
    value.click()
    row = page.locator(".value-row")
    expect(row).to_be_focused()
    expect(row.locator("mark")).to_have_text("107.41")
    expect(row).to_contain_text("<img src=x onerror=alert(1)>")
    row.get_by_role("button", name="Back to the value").click()
    expect(value).to_be_focused()
    expect(page.locator(".value.bad")).to_contain_text("98.50 EUR")
    expect(page.get_by_text("1 value of 5 in nothing that the agent found")).to_be_visible()
    assert opened.complaints == []
    opened.close()
