"""The page of a comparison in a real browser: its contents, and that no text in it has an effect."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

pytest.importorskip("axe_playwright_python", reason="the group `full` is not installed")

from playwright.sync_api import Browser, Locator, expect
from support.browsing import LAPTOP, PHONE, OpenedPage
from support.demo_runs import demo_run
from support.hostile_runs import hostile_run

from graphrag_eval_lc import compare_runs, write_report
from graphrag_eval_lc.compare import RunComparison
from graphrag_eval_lc.report.comparison_page import write_comparison

pytestmark = pytest.mark.full

Open = Callable[..., "ComparisonPage"]


class ComparisonPage(OpenedPage):
    """A comparison and its elements."""

    @property
    def rows(self) -> Locator:
        """The questions in the list."""
        return self.page.locator("table.list tr.question")

    def keys(self) -> list[str]:
        """Return the keys of the visible questions."""
        return self.rows.locator(".question-id > bdi:first-child").all_inner_texts()

    def changes(self) -> set[str]:
        """Return the changes of the visible questions."""
        return {text.split(" ", 1)[1].partition("\n")[0] for text in self.rows.locator("td.turn").all_inner_texts()}

    def open_questions(self) -> None:
        """Open all visible questions and their steps, once they are unpacked."""
        for _ in range(2):
            self.open_everything()
            expect(self.page.get_by_text("Unpacking …")).to_have_count(0)


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> RunComparison:
    folder = tmp_path_factory.mktemp("runs")
    runs = [demo_run(folder / f"{mistakes}", mistakes=mistakes, report=mistakes > 0) for mistakes in (8, 19, 0)]
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
    write_report(better)
    write_comparison(compare_runs(worse, better), folder / "comparison.html")
    return folder / "comparison.html"


@pytest.fixture
def open_page(browser: Browser, page_path: Path) -> Iterator[Open]:
    """Open the demo's comparison. The test fails if the page reports a complaint."""
    opened: list[ComparisonPage] = []

    def open_path(path: Path = page_path, **options: Any) -> ComparisonPage:
        opened.append(ComparisonPage(browser, path, **options))
        return opened[-1]

    yield open_path
    complaints = [complaint for page in opened for complaint in page.complaints]
    for page in opened:
        page.close()
    assert complaints == []


def test_each_comparison_has_its_verdict(comparison: RunComparison, open_page: Open) -> None:
    text = " ".join(open_page().page.locator("main").inner_text().split())
    for pair in comparison.pairs:
        metric = pair.metric("steps_score")
        assert metric is not None
        assert metric.sentence in text
    assert all(run.label in text for run in comparison.runs)
    assert all(warning in text for warning in comparison.warnings)


# --- the list --------------------------------------------------------------------------------------------------------


def test_questions_of_the_first_run_are_listed_with_flips_first(comparison: RunComparison, open_page: Open) -> None:
    opened = open_page()
    pair = comparison.pairs[0]
    flipped = [flip.question_id for flip in pair.flips]
    assert opened.keys()[: len(flipped)] == flipped
    assert sorted(opened.keys()) == sorted(question.question_id for question in pair.questions)


def test_flipped_question_shows_answers_and_steps_side_by_side(comparison: RunComparison, open_page: Open) -> None:
    opened = open_page()
    flip = comparison.pairs[0].flips[0]
    opened.rows.first.locator(".question-button").click()
    detail = opened.page.locator(".detail")
    expect(detail.get_by_role("heading", name="Steps side by side")).to_be_visible()
    opened.open_everything(".detail")
    text = detail.inner_text()
    for side in (flip.a, flip.b):
        assert side.answer is not None
        assert side.answer in text
    steps = [step for pair in flip.steps for step in (pair.a, pair.b) if step is not None]
    assert detail.locator("pre[aria-label^=Output]").count() == sum(bool(step.output) for step in steps)
    assert detail.locator("pre:not([aria-label^=Output])").count() >= sum(bool(step.args) for step in steps)
    assert all(step.name in text for step in steps)
    assert detail.locator(".steps > li").count() == len(flip.steps)


def test_first_different_call_is_open_on_both_sides_with_the_difference_marked(
    comparison: RunComparison, open_page: Open
) -> None:
    opened = open_page()
    flip = comparison.pairs[0].flips[0]
    opened.rows.first.locator(".question-button").click()
    steps = opened.page.locator(".detail .steps > li")
    expect(steps).to_have_count(len(flip.steps))
    differs = next(place for place, pair in enumerate(flip.steps) if not pair.is_same)
    is_open = steps.locator(".step-head").evaluate_all("all => all.map(each => each.ariaExpanded)")
    assert is_open == ["true" if place == differs else "false" for place in range(len(flip.steps))]
    assert steps.nth(differs).locator(".side").count() == 2
    expect(steps.nth(differs).locator("mark").first).to_be_visible()
    opened.rows.first.locator(".question-button").click()
    expect(opened.page.locator(".detail")).to_have_count(0)


def test_unchanged_question_cannot_be_opened(comparison: RunComparison, open_page: Open) -> None:
    opened = open_page()
    assert opened.rows.locator(".question-button").count() == len(comparison.pairs[0].flips)
    assert opened.rows.last.locator(".question-button").count() == 0
    assert opened.rows.last.locator("td.turn").inner_text() == "= same"


def test_filters_select_questions_and_are_kept_in_the_url(comparison: RunComparison, open_page: Open) -> None:
    opened = open_page()
    search = opened.page.get_by_role("search")
    flips = {flip.question_id: flip for flip in comparison.pairs[0].flips}
    questions = comparison.pairs[0].questions
    template = next(iter(flips.values())).template_id

    def check(left: set[str]) -> None:
        assert 0 < len(left) < len(questions)
        expect(opened.rows).to_have_count(len(left))
        assert set(opened.keys()) == left
        opened.page.reload()
        expect(opened.rows).to_have_count(len(left))
        opened.page.get_by_role("button", name="Clear all filters").click()
        expect(opened.rows).to_have_count(len(questions))

    search.get_by_label("Change").select_option("broken")
    check({name for name, flip in flips.items() if flip.direction == "broken"})
    search.get_by_label("Change").select_option("all that changed")
    check(set(flips))
    search.get_by_label("Change").select_option("same")
    check({question.question_id for question in questions} - set(flips))
    search.get_by_label("Template").select_option(template)
    check({question.question_id for question in questions if question.template_id == template})
    one = questions[5].question_id
    search.get_by_label("Search text, id").fill(one.upper())
    check({question.question_id for question in questions if one in question.question_id})
    search.get_by_label("Search text, id").fill(next(iter(flips.values())).question_text)
    check({name for name, flip in flips.items() if flip.question_text == next(iter(flips.values())).question_text})


def test_headings_sort_the_list_in_both_directions(open_page: Open) -> None:
    opened = open_page()
    for order, is_first_worst in (("descending", False), ("ascending", True)):
        opened.page.locator("table.list > thead").get_by_role("button", name="Difference").click()
        expect(opened.page.locator("table.list th[aria-sort]")).to_have_attribute("aria-sort", order)
        texts = opened.rows.locator("td:nth-child(5)").all_inner_texts()
        values = [float(text.replace("−", "-")) for text in texts]
        assert values == sorted(values, reverse=not is_first_worst)
        assert len(set(values)) > 1


def test_another_run_has_separate_rows_and_details(comparison: RunComparison, open_page: Open) -> None:
    opened = open_page()
    opened.rows.first.locator(".question-button").click()
    opened.page.get_by_label("Run beside A").select_option("C")
    flips = [flip.question_id for flip in comparison.pairs[1].flips]
    assert opened.keys()[: len(flips)] == flips
    assert opened.page.locator(".detail").count() == 0
    opened.rows.first.locator(".question-button").click()
    expect(opened.page.locator(".detail .sides h4").last).to_contain_text("C")
    expect(opened.page.locator("table.list > thead")).to_contain_text("C")


def test_change_and_template_buttons_show_their_questions(comparison: RunComparison, open_page: Open) -> None:
    opened = open_page()
    for pair in comparison.pairs:
        for direction in sorted({flip.direction for flip in pair.flips}):
            section = opened.page.locator(f"#flips-{pair.run.letter}")
            section.locator("li", has_text=direction).get_by_role("button").click()
            expect(opened.rows).to_have_count(sum(flip.direction == direction for flip in pair.flips))
            assert opened.changes() == {direction}
        row = opened.page.locator(f"#templates-{pair.run.letter} tbody tr").first
        template = row.locator("th").inner_text()
        row.get_by_role("button").click()
        expect(opened.rows).to_have_count(sum(question.template_id == template for question in pair.questions))


def test_templates_are_sorted_by_their_headings(open_page: Open) -> None:
    table = open_page().page.locator("#templates-B table")
    worst = table.locator("tbody th").first.inner_text()
    table.get_by_role("button", name="Broken").click()
    lost = [int(text.strip("✗ ")) for text in table.locator("tbody td:nth-child(6)").all_inner_texts()]
    assert lost == sorted(lost, reverse=True)
    assert len(set(lost)) > 1
    table.get_by_role("button", name="Difference").click()
    table.get_by_role("button", name="Difference").click()
    assert table.locator("tbody th").first.inner_text() == worst


def test_list_and_details_work_with_the_keyboard(open_page: Open) -> None:
    opened = open_page()
    page = opened.page
    page.get_by_label("Search text, id").focus()
    page.keyboard.type("zzz")
    expect(opened.rows).to_have_count(0)
    page.keyboard.press("Tab")  # run
    page.keyboard.press("Tab")  # change
    page.keyboard.press("Tab")  # template
    page.keyboard.press("Tab")  # order
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Clear all filters"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.name") == "text"
    opened.rows.first.locator(".question-button").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".detail h3")).to_be_visible()
    assert opened.rows.first.locator(".question-button").get_attribute("aria-expanded") == "true"


# --- addresses -------------------------------------------------------------------------------------------------------


def test_url_opens_a_question_of_its_run(comparison: RunComparison, page_path: Path, open_page: Open) -> None:
    opened = open_page()
    flip = comparison.pairs[1].flips[-1]
    opened.page.goto(f"{page_path.as_uri()}#run=C&q={flip.question_id}")
    expect(opened.page.locator(".detail .sides h4").last).to_contain_text("C")
    assert opened.page.evaluate("document.activeElement.textContent") == flip.question_text
    assert opened.page.url.endswith(f"#run=C&q={flip.question_id}")
    assert opened.page.get_by_label("Run beside A").input_value() == "C"
    opened.page.goto(f"{page_path.as_uri()}#q=nobody")
    expect(opened.page.get_by_role("status").first).to_have_text("There is no question nobody in this comparison.")


def test_rows_link_to_existing_reports(
    comparison: RunComparison, page_path: Path, browser: Browser, open_page: Open
) -> None:
    opened = open_page()
    assert opened.page.locator(".runs a").all_inner_texts() == ["Report A", "Report B"]
    links = opened.rows.first.locator("a")
    assert links.all_inner_texts() == ["Report A", "Report B"]
    for link in links.all():
        report, _, key = str(link.get_attribute("href")).partition("#q=")
        there = OpenedPage(browser, (page_path.parent / unquote(report)).resolve(), question=unquote(key))
        expect(there.page.locator(".detail h3").first).to_be_visible()
        assert comparison.pairs[0].flips[0].question_text in there.page.locator("tr.question:focus-within").inner_text()
        assert there.complaints == []
        there.close()
    opened.page.get_by_label("Run beside A").select_option("C")  # no report
    assert set(opened.rows.first.locator("a").all_inner_texts()) == {"Report A"}


# --- the page --------------------------------------------------------------------------------------------------------


def test_colours_follow_the_system_until_chosen(open_page: Open) -> None:
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


def test_metrics_are_shown_without_scripts(comparison: RunComparison, open_page: Open) -> None:
    page = open_page(java_script_enabled=False).page
    metrics = {metric.metric for pair in comparison.pairs for metric in pair.metrics}
    text = page.locator("main").inner_text()
    assert [metric for metric in metrics if metric not in text] == []
    for pair in comparison.pairs:
        for direction in {flip.direction for flip in pair.flips}:
            assert f"{sum(flip.direction == direction for flip in pair.flips)} {direction}" in text
        table = page.locator(f"#templates-{pair.run.letter} tbody tr")
        assert table.count() == pair.number_of_templates
    assert page.locator("noscript").inner_text() != ""


@pytest.mark.parametrize(("scheme", "size"), [("light", PHONE), ("dark", LAPTOP)], ids=["light", "dark"])
def test_page_is_accessible_and_never_scrolls_sideways(scheme: str, size: tuple[int, int], open_page: Open) -> None:
    opened = open_page(color_scheme=scheme, size=size)
    assert not opened.is_wider_than_the_window()
    opened.open_questions()
    assert not opened.is_wider_than_the_window()
    assert opened.serious_violations() == []


@pytest.mark.parametrize("bypass_csp", [False, True], ids=["with the policy", "without the policy"])
def test_texts_are_not_interpreted(bypass_csp: bool, hostile_path: Path, open_page: Open) -> None:
    opened = open_page(hostile_path, bypass_csp=bypass_csp, size=PHONE)
    opened.open_questions()
    page = opened.page
    assert page.evaluate("window.injected") is None
    assert page.locator(".injected, iframe, object, embed, base, [onload], [onerror], [onfocus], img").count() == 0
    links = page.locator("a:not([href^='#'])")
    assert links.count() == 7
    assert {str(link.get_attribute("href")).partition("#")[0] for link in links.all()} == {"True/report.html"}
    text = page.locator("main").inner_text()
    places = ("label", "text of 0.1", "query", "error of a step", "wrong output", "metric", "answer", "kind of error")
    assert [place for place in places if f"{place} </script>" not in text] == []
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", page.content())
    assert not opened.is_wider_than_the_window()
    assert bypass_csp or opened.serious_violations() == []
    assert hostile_path.stat().st_size < 3_000_000
