"""The page of a comparison in a real browser: what it shows, and that no text in it can do anything."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import LAPTOP, PHONE, OpenedPage
from demo_runs import demo_run
from hostile_runs import hostile_run
from playwright.sync_api import Browser

from graphrag_eval_lc import compare_runs
from graphrag_eval_lc.compare import RunComparison
from graphrag_eval_lc.report.comparison_page import write_comparison

pytestmark = pytest.mark.full

Open = Callable[..., OpenedPage]


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> RunComparison:
    folder = tmp_path_factory.mktemp("runs")
    runs = [demo_run(folder / f"{mistakes}", mistakes=mistakes) for mistakes in (8, 19, 0)]
    return compare_runs(*runs, labels=["some", "all", "none"])


@pytest.fixture(scope="module")
def page_path(comparison: RunComparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "comparison.html"
    write_comparison(comparison, path)
    return path


@pytest.fixture(scope="module")
def hostile_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    worse, better = (hostile_run(folder / f"{is_better}", is_better=is_better) for is_better in (False, True))
    write_comparison(compare_runs(worse, better), folder / "comparison.html")
    return folder / "comparison.html"


@pytest.fixture
def open_page(browser: Browser, page_path: Path) -> Iterator[Open]:
    """Open the demo's comparison; whatever a test does with it, it must not complain."""
    opened: list[OpenedPage] = []

    def open_it(path: Path = page_path, **options: Any) -> OpenedPage:
        opened.append(OpenedPage(browser, path, **options))
        return opened[-1]

    yield open_it
    complaints = [complaint for page in opened for complaint in page.complaints]
    for page in opened:
        page.close()
    assert complaints == []


def test_says_what_came_out_of_each_comparison(comparison: RunComparison, open_page: Open) -> None:
    text = " ".join(open_page().page.locator("main").inner_text().split())
    for pair in comparison.pairs:
        metric = pair.metric("steps_score")
        assert metric is not None
        assert metric.sentence in text
    assert all(run.label in text for run in comparison.runs)
    assert all(warning in text for warning in comparison.warnings)


def test_questions_that_flipped_are_shown_with_their_steps_side_by_side(
    comparison: RunComparison, open_page: Open
) -> None:
    opened = open_page()
    opened.open_everything()
    text = opened.page.locator("main").inner_text()
    flips = [question for pair in comparison.pairs for question in pair.flips]
    assert len(flips) > 10
    for question in flips:
        assert question.question_text in text
    first = flips[0].steps[0]
    assert (first.a or first.b).name in text  # type: ignore[union-attr]


def test_colours_follow_the_system_until_they_are_chosen(open_page: Open) -> None:
    assert open_page(color_scheme="light").lightness() > 0.8
    dark = open_page(color_scheme="dark")
    assert dark.lightness() < 0.3
    dark.page.locator("#theme").click()
    assert dark.lightness() > 0.8


def test_print_is_on_white_paper(open_page: Open) -> None:
    opened = open_page(color_scheme="dark")
    opened.page.emulate_media(media="print")
    assert opened.lightness() > 0.9
    assert opened.page.pdf().startswith(b"%PDF")


@pytest.mark.parametrize("size", [PHONE, LAPTOP], ids=["phone", "laptop"])
def test_page_never_scrolls_sideways(size: tuple[int, int], open_page: Open) -> None:
    opened = open_page(size=size)
    assert not opened.is_wider_than_the_window()
    opened.open_everything()
    assert not opened.is_wider_than_the_window()


def test_without_scripts_the_metrics_are_there(comparison: RunComparison, open_page: Open) -> None:
    page = open_page(java_script_enabled=False).page
    metrics = {metric.metric for pair in comparison.pairs for metric in pair.metrics}
    text = page.locator("main").inner_text()
    assert [metric for metric in metrics if metric not in text] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(scheme: str, open_page: Open) -> None:
    for size in (LAPTOP, PHONE):
        opened = open_page(color_scheme=scheme, size=size)
        opened.open_everything()
        assert opened.serious_violations() == []


@pytest.mark.parametrize("bypass_csp", [False, True], ids=["with the policy", "without the policy"])
def test_texts_stay_texts(bypass_csp: bool, hostile_path: Path, open_page: Open) -> None:
    opened = open_page(hostile_path, bypass_csp=bypass_csp, size=PHONE)
    opened.open_everything()
    page = opened.page
    assert page.evaluate("window.injected") is None
    assert page.locator(".injected, iframe, object, embed, base, [onload], [onerror], [onfocus], img").count() == 0
    assert page.locator("a:not([href^='#'])").count() == 0
    text = page.locator("main").inner_text()
    places = ("label", "text of 0.1", "query", "error of a step", "wrong output", "metric", "answer", "kind of error")
    assert [place for place in places if f"{place} </script>" not in text] == []
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", page.content())
    assert not opened.is_wider_than_the_window()
    assert opened.serious_violations() == []
    assert hostile_path.stat().st_size < 3_000_000
