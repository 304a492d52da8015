"""The trend page in a real browser: its contents and links, and that no text in it has an effect."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("axe_playwright_python", reason="the group `full` is not installed")

from playwright.sync_api import Browser, expect
from support.browsing import LAPTOP, PHONE, OpenedPage
from support.demo_runs import demo_run
from support.hostile_runs import hostile_run

from graphrag_eval_lc import trend, write_report
from graphrag_eval_lc.report.runs import write_trend

pytestmark = pytest.mark.full

Open = Callable[..., OpenedPage]
WIDE = (1280, 800)


@pytest.fixture(scope="module")
def page_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of four demo runs, the last one after a change of the dataset."""
    folder = tmp_path_factory.mktemp("trend")
    for number, mistakes in enumerate((8, 19, 8, 0)):
        run = folder / "runs" / f"run {number}"
        demo_run(run, mistakes=mistakes)
        write_report(run)
        record = json.loads((run / "run.json").read_text())
        record["times"]["started"] = f"2026-01-0{number + 1}T00:00:00+00:00"
        if number == 3:
            record["dataset"]["sha256"] = "0" * 64
        (run / "run.json").write_text(json.dumps(record))
    return write_trend(trend(folder / "runs", ["steps_score", "steps_f1"]), folder / "trend.html")


@pytest.fixture(scope="module")
def hostile_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    for is_better in (False, True):
        hostile_run(folder / "runs" / f"{is_better}<b>", is_better=is_better)
    return write_trend(trend(folder / "runs"), folder / "trend.html")


@pytest.fixture
def open_page(browser: Browser, page_path: Path) -> Iterator[Open]:
    """Open the trend. The test fails if the page reports a complaint."""
    opened: list[OpenedPage] = []

    def open_path(path: Path = page_path, **options: object) -> OpenedPage:
        opened.append(OpenedPage(browser, path, **options))  # type: ignore[arg-type]
        return opened[-1]

    yield open_path
    complaints = [complaint for page in opened for complaint in page.complaints]
    for page in opened:
        page.close()
    assert complaints == []


@pytest.mark.parametrize(("size", "scheme"), [(PHONE, "light"), (WIDE, "dark"), (LAPTOP, "light")])
def test_page_is_readable_in_any_size_and_colour_scheme(open_page: Open, size: tuple[int, int], scheme: str) -> None:
    opened = open_page(size=size, color_scheme=scheme)
    assert not opened.is_wider_than_the_window()
    assert opened.serious_violations() == []
    assert (opened.lightness() > 0.5) is (scheme == "light")


def test_charts_have_a_point_for_each_run_and_mark_changes(open_page: Open) -> None:
    page = open_page().page
    chart = page.locator("#score-1 svg.trend.large")
    expect(chart.locator(".point")).to_have_count(4)
    expect(chart.locator(".interval")).to_have_count(4)
    expect(chart.locator(".mean")).to_have_count(3)
    expect(chart.locator(".changed")).to_have_count(1)
    expect(page.locator("#run-4")).to_contain_text("the dataset: its references or other keys")
    box = chart.bounding_box()
    assert box is not None
    for point in chart.locator(".point").all():
        place = point.bounding_box()
        assert place is not None
        assert box["x"] <= place["x"] + place["width"] / 2 <= box["x"] + box["width"]


def test_each_template_has_a_row(open_page: Open, page_path: Path) -> None:
    templates = trend(page_path.parent / "runs").templates("steps_score")
    rows = open_page().page.locator("#templates-1 tbody tr")
    expect(rows).to_have_count(len(templates))
    assert sorted(rows.locator("th").all_inner_texts()) == sorted(templates)


def test_everything_is_shown_without_scripts(open_page: Open) -> None:
    opened = open_page(java_script_enabled=False)
    expect(opened.page.locator("#score-2 tbody tr")).to_have_count(4)
    expect(opened.page.get_by_role("link", name="with 3").first).to_be_visible()


def test_links_lead_to_the_reports_and_comparisons(browser: Browser, page_path: Path) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(page_path.as_uri())
    page.locator("#score-1").get_by_role("link", name="run 1").click()
    expect(page.locator("h1")).to_contain_text("run 1")
    page.go_back()
    page.locator("#score-1").get_by_role("link", name="with 1", exact=True).click()
    expect(page.locator("h1")).to_have_text("Comparison of runs")
    page.get_by_role("link", name="report").first.click()
    expect(page.locator("#scores, h1").first).to_be_visible()
    context.close()


def test_texts_are_not_interpreted(open_page: Open, hostile_path: Path) -> None:
    opened = open_page(hostile_path)
    expect(opened.page.locator("#runs tbody tr")).to_have_count(2)
    assert opened.page.evaluate("document.querySelectorAll('main script, main img, main b').length") == 0


def test_page_moved_away_from_its_runs_is_complete(open_page: Open, page_path: Path, tmp_path: Path) -> None:
    moved = Path(shutil.copy(page_path, tmp_path / "moved.html"))
    expect(open_page(moved).page.locator("#score-1 tbody tr")).to_have_count(4)
