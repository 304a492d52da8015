"""The report of a run as it grows, in a real browser."""

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("axe_playwright_python", reason="the group `full` is not installed")

from playwright.sync_api import Browser, Page, expect

from graphrag_eval_lc import report_html, run_benchmark
from graphrag_eval_lc.report.live_report import LiveReport

pytestmark = pytest.mark.full

QUESTIONS = [f"q{number}" for number in range(6)]
DATASET: list[Any] = [
    {
        "template_id": "t",
        "questions": [
            {"id": name, "question_text": f"Question {name}?", "reference_steps": [[{"name": "find", "output": name}]]}
            for name in QUESTIONS
        ],
    }
]
FIXED = {"progress": "off", "report": False, "max_concurrency": 1}


class Run:
    """A run whose questions finish when the test says so. All of them fail."""

    def __init__(self, folder: Path) -> None:
        self._may_end = threading.Semaphore(0)
        self._folder = folder
        self.live = LiveReport(folder)
        self._thread = threading.Thread(target=self._run)
        self.is_closed = threading.Event()

    def _agent(self, question: str) -> str:
        self._may_end.acquire()
        return "found"

    def _run(self) -> None:
        with self.live:
            run_benchmark(self._agent, DATASET, output_dir=self._folder, on_event=self.live, **FIXED)
        self.is_closed.set()

    def start(self) -> None:
        self._thread.start()

    def end_some(self, number: int) -> None:
        for _ in range(number):
            self._may_end.release()

    def end_all(self) -> None:
        self.end_some(len(QUESTIONS))
        self._thread.join(30)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    started = Run(tmp_path / "run")
    started.start()
    yield started
    started.end_all()


@pytest.fixture
def open_live(browser: Browser) -> Iterator[Callable[[Run], Page]]:
    pages: list[Page] = []
    complaints: list[str] = []

    def open_run(run: Run) -> Page:
        page = browser.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.goto(run.live.address)
        pages.append(page)
        return page

    yield open_run
    for page in pages:
        page.close()
    assert complaints == []


def rows(page: Page) -> Any:
    return page.locator("table.list tr.question")


def test_report_grows_with_the_run_and_keeps_open_details_and_input(run: Run, open_live: Callable[[Run], Page]) -> None:
    run.end_some(1)
    page = open_live(run)
    expect(page.locator(".live")).to_have_text("1 of 6 scored")
    expect(rows(page)).to_have_count(1)
    page.get_by_role("button", name=re.compile("Question q0")).click()
    note = page.get_by_label("Note", exact=True)
    note.fill("looks odd")
    note.focus()
    run.end_some(2)
    expect(rows(page)).to_have_count(3)
    expect(page.locator(".headline")).to_contain_text("0 of 3 right")
    expect(note).to_have_value("looks odd")
    expect(note).to_be_focused()
    page.get_by_role("searchbox").fill("q1")
    expect(rows(page)).to_have_count(1)
    run.end_some(1)
    expect(page.locator(".live")).to_have_text("4 of 6 scored")
    expect(page.get_by_role("searchbox")).to_have_value("q1")
    expect(rows(page)).to_have_count(1)
    run.end_all()
    expect(page.locator(".live")).to_have_text("The run has ended: 6 of 6 scored")
    page.get_by_role("searchbox").fill("")
    expect(rows(page)).to_have_count(6)
    page.get_by_role("button", name=re.compile("Question q5")).click()  # the previous page's data are complete
    expect(page.locator(".detail").last.get_by_role("heading", name="Answer", exact=True)).to_be_visible()
    page.locator("#why button.show-set").click()
    expect(rows(page)).to_have_count(6)


def test_closing_the_page_does_not_affect_the_run_or_its_report(
    run: Run, open_live: Callable[[Run], Page], tmp_path: Path
) -> None:
    run.end_some(2)
    page = open_live(run)
    expect(page.locator(".live")).to_have_text("2 of 6 scored")
    page.close()
    run.end_all()
    assert run.is_closed.wait(10)
    other = run_benchmark(lambda question: "found", DATASET, output_dir=tmp_path / "other" / "run", **FIXED)
    assert other.output_dir is not None

    def without_times(html: str) -> str:
        for changing in (
            r'<script type="text/plain".*?</script>',
            r'<section id="what-ran".*?</section>|<table class="extremes">.*?</table>',
            r"\d{4}-\d\d-\d\dT[\d:.+Z]+|20\d{6}T\d{6}Z-\w+",
            r"/[^\"\s]*/run",
            r'"sec":[\d.e-]+|data-value="[\d.e-]+"|[\d.,]+\s(?:ms|s|min)\b',
        ):
            html = re.sub(changing, "…", html, flags=re.DOTALL)
        return html

    files = [without_times(report_html(folder)) for folder in (tmp_path / "run", other.output_dir)]
    assert "EventSource" not in files[0]
    assert "connect-src 'none'" in files[0]
    assert files[0] == files[1]


def test_report_requires_the_token(run: Run) -> None:
    run.end_some(1)
    address = run.live.address
    base, token = re.fullmatch(r"(http://127\.0\.0\.1:\d+)/([\w-]{32})/", address).groups()  # type: ignore[union-attr]
    assert httpx.get(address).status_code == 200
    for path in ("/", "/events", f"/{token[:-1]}/", f"/{token}x/", f"/{token}/results.jsonl", f"/{token}/../"):
        assert httpx.get(base + path).status_code == 404, path
    assert httpx.get(address, headers={"Host": "evil.example:80"}).status_code == 404
    answer = httpx.get(address)
    assert answer.headers["Cache-Control"] == "no-store"
    assert "connect-src 'self'" in answer.text


def test_run_without_a_page_ends_immediately(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    run.start()
    run.end_all()
    assert run.is_closed.wait(3)
    with pytest.raises(httpx.ConnectError):
        httpx.get(run.live.address)
