"""The report of a run in a real browser: its features, and that no text in it has an effect."""

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("axe_playwright_python", reason="the group `full` is not installed")

from playwright.sync_api import Browser, Locator, expect
from support.browsing import LAPTOP, PHONE, OpenedPage
from support.demo_runs import demo_run
from support.hostile_runs import hostile_dataset, hostile_run
from typer.testing import CliRunner

from graphrag_eval_lc import BenchmarkRun, write_report
from graphrag_eval_lc.cli.main import app
from graphrag_eval_lc.demo import DATASET_PATH
from graphrag_eval_lc.registry import MetricSpec
from graphrag_eval_lc.registry.metrics import RegisteredMetric, metrics_of_users

pytestmark = pytest.mark.full

Open = Callable[..., "ReportPage"]
ALL = "status=all&sort=given"


class ReportPage(OpenedPage):
    """A report and its elements."""

    @property
    def rows(self) -> Locator:
        """The questions in the list."""
        return self.page.locator("table.list tr.question")

    def keys(self) -> list[str]:
        """Return the keys of the visible questions."""
        return self.rows.locator(".question-id").all_inner_texts()

    def column(self, name: str) -> list[str]:
        """Return the cells of a column of the list."""
        headings = self.page.locator("table.list > thead th").all_inner_texts()
        position = [heading.strip() for heading in headings].index(name) + 1
        return self.rows.locator(f":scope > :nth-child({position})").locator("visible=true").all_inner_texts()

    def button_of(self, key: str) -> Locator:
        """Return the button that opens a question."""
        return self.rows.filter(has=self.page.get_by_text(key, exact=True)).locator(".question-button")

    def opened(self, key: str) -> Locator:
        """Open a question and return its details once they are rendered."""
        self.button_of(key).click()
        return self.detail()

    def detail(self) -> Locator:
        """Return the details of the open question once they are rendered."""
        detail = self.page.locator(".detail")
        expect(detail.get_by_role("heading", name="Answer", exact=True)).to_be_visible()
        return detail


def with_metrics(run: BenchmarkRun, **metrics: Callable[[int], float]) -> BenchmarkRun:
    """Return a run with more metrics, whose values are the positions of the answered questions."""
    micro = run.aggregates["micro"] | {name: {"mean": 0.5} for name in metrics}
    results: list[Any] = [
        {**result, **({name: value(at) for name, value in metrics.items()} if result["status"] == "success" else {})}
        for at, result in enumerate(run.results)
    ]
    return BenchmarkRun({**run.aggregates, "micro": micro}, responses=[], results=results)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> BenchmarkRun:
    return demo_run(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="module")
def report(run: BenchmarkRun) -> Path:
    return write_report(run)


@pytest.fixture(scope="module")
def hostile_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(hostile_run(tmp_path_factory.mktemp("hostile")))


@pytest.fixture
def open_report(browser: Browser, report: Path) -> Iterator[Open]:
    """Open the demo's report. The test fails if the page reports a complaint."""
    opened: list[ReportPage] = []

    def open_path(path: Path = report, address: str = ALL, **options: Any) -> ReportPage:
        opened.append(ReportPage(browser, path, address=address, **options))
        return opened[-1]

    yield open_path
    complaints = [complaint for page in opened for complaint in page.complaints]
    for page in opened:
        page.close()
    assert complaints == []


# --- failures -------------------------------------------------------------------------------------------------------


def failed_keys(run: BenchmarkRun) -> list[str]:
    """Return the keys of all questions that are not right, worst first."""
    failures = run.view().failures
    assert len(failures) == 18
    return [failure.key for failure in failures]


def test_page_starts_with_the_headline_and_failed_questions_worst_first(run: BenchmarkRun, open_report: Open) -> None:
    opened = open_report(address="")
    headline = opened.page.locator(".headline")
    expect(headline).to_have_text(str(run.view().headline))
    expect(headline).to_be_in_viewport()
    expect(opened.page.get_by_role("heading", name="Why questions failed")).to_be_in_viewport()
    assert opened.keys() == failed_keys(run)
    assert opened.page.evaluate("location.hash") == ""
    opened.page.get_by_role("button", name="Clear all filters").click()
    expect(opened.rows).to_have_count(len(run.results))
    assert opened.keys()[:18] == failed_keys(run)
    opened.page.reload()
    expect(opened.rows).to_have_count(len(run.results))


def test_each_failure_group_shows_its_questions_and_is_kept_in_the_url(run: BenchmarkRun, open_report: Open) -> None:
    opened = open_report(address="")
    for group in run.view().groups:
        opened.page.locator("#why details").evaluate_all("all => all.forEach(each => { each.open = true })")
        opened.page.locator("#why").get_by_role("button", name=f"Show the questions: {group.title}", exact=True).click()
        expect(opened.rows).to_have_count(group.count)
        assert sorted(opened.keys()) == sorted(group.keys)
        opened.page.reload()
        expect(opened.rows).to_have_count(group.count)
        expect(opened.rows.first).to_contain_text(group.title)


def test_failure_category_shows_the_questions_of_all_its_groups(run: BenchmarkRun, open_report: Open) -> None:
    opened = open_report(address="")
    part = run.view().parts[0]
    opened.page.get_by_role("button", name=f"Show {part.count} questions: {part.title}", exact=True).click()
    expect(opened.rows).to_have_count(part.count)
    assert sorted(opened.keys()) == sorted(key for group in part.groups for key in group.keys)


def test_browser_history_leads_back_to_the_groups_and_all_failures(open_report: Open) -> None:
    opened = open_report(address="")
    button = opened.page.locator("#why .show-set").last
    button.click()
    expect(opened.rows).to_have_count(1)
    opened.page.go_back()
    expect(opened.page.get_by_role("status").first).to_have_text("18 of 48 questions")
    expect(button).to_be_in_viewport()
    opened.page.go_forward()
    expect(opened.rows).to_have_count(1)


def test_status_filters_questions(open_report: Open) -> None:
    opened = open_report(address="")
    for status, count in {"right": 30, "partly": 4, "wrong": 13, "error": 1}.items():
        opened.page.evaluate(f"location.hash = '#status={status}'")
        expect(opened.rows).to_have_count(count)


def test_failed_question_shows_the_expectation_and_opens_at_its_wrong_step(
    open_report: Open,
) -> None:
    opened = open_report(address="")
    row = opened.rows.filter(has=opened.page.get_by_text("transformers_kristiansand", exact=True))
    for text in (
        "Wrong property: cim:PowerTransformerEnd.ratedU for cim:PowerTransformerEnd.ratedS",
        "KRISTIANSAND has 3 power",
        "KRISTIANSAND has 6",
        "1 of 3 rows",
    ):
        expect(row).to_contain_text(text)
    detail = opened.opened("transformers_kristiansand")
    expect(detail.locator(".step-head[aria-expanded=true]")).to_have_count(1)
    sides = detail.locator(".step .side")
    assert sides.nth(0).locator("mark").all_inner_texts() == ["cim:PowerTransformerEnd.ratedS"]
    assert sides.nth(1).locator("mark").all_inner_texts() == ["cim:PowerTransformerEnd.ratedU"]
    right = open_report(address="status=right").opened("transformers_stavanger")
    expect(right.locator(".step-head[aria-expanded=true]")).to_have_count(0)


def test_keys_navigate_the_filtered_list(run: BenchmarkRun, open_report: Open) -> None:
    opened = open_report(address="")
    worst = failed_keys(run)
    expanded = opened.page.locator(".question-button[aria-expanded=true] .question-id")
    for key, at in (("j", 0), ("ArrowRight", 1), ("j", 2), ("k", 1), ("ArrowLeft", 0), ("k", 0)):
        opened.page.keyboard.press(key)
        expect(expanded).to_have_text([worst[at]])
        opened.detail()
    search = opened.page.get_by_role("searchbox")
    search.fill("jk")
    search.press("j")
    expect(search).to_have_value("jkj")


def test_url_names_the_last_opened_question(open_report: Open) -> None:
    opened = open_report(address="status=wrong&q=search_steins")
    opened.detail()
    for key in ("j", "j", "k"):
        opened.page.keyboard.press(key)
    current = opened.page.locator(".question-button[aria-expanded=true] .question-id").inner_text()
    assert current != "search_steins"
    assert opened.page.evaluate("location.hash") == f"#status=wrong&q={current}"
    opened.page.reload()
    opened.detail()
    expect(opened.rows).to_have_count(13)
    expect(opened.button_of(current)).to_be_focused()
    opened.button_of(current).click()
    assert opened.page.evaluate("location.hash") == "#status=wrong"


def test_search_shows_the_number_of_hidden_right_questions(open_report: Open) -> None:
    opened = open_report(address="")
    more = opened.page.get_by_role("button", name="more among the right ones: show")
    expect(more).to_have_count(0)
    opened.page.get_by_role("searchbox").fill("transformers")
    hidden = int(more.inner_text().split()[0])
    shown = opened.rows.count()
    more.click()
    expect(opened.rows).to_have_count(shown + hidden)
    assert hidden >= 4
    expect(more).to_have_count(0)


def test_search_in_a_field(open_report: Open) -> None:
    opened = open_report(address="")
    for words, key in {
        "id:kristiansand": "transformers_kristiansand",
        "tool:autocomplete why:iri": "substations_se3",
        "why:property": "transformers_kristiansand",
        "status:error": "longest_dc_lines",
        "expected:skogssater": "substations_se3",
        "reason:granularity question:limfjord": "production_limfjord",
        "answer:found template:bidding": "substations_se3",
    }.items():
        opened.page.get_by_role("searchbox").fill(words)
        expect(opened.rows.locator(".question-id")).to_have_text([key])
    opened.page.get_by_role("searchbox").fill("nofield:limfjord")
    expect(opened.rows).to_have_count(0)


def test_query_id_and_rerun_command_can_be_copied(open_report: Open, tmp_path: Path) -> None:
    opened = open_report(address="", permissions=["clipboard-read", "clipboard-write"])
    detail = opened.opened("transformers_kristiansand")
    detail.get_by_role("button", name="Copy id").click()
    expect(detail.get_by_role("status").filter(has_text="Copied.")).to_have_count(1)
    assert opened.page.evaluate("navigator.clipboard.readText()") == "transformers_kristiansand"
    detail.get_by_role("button", name="Copy query").last.click()
    assert "ratedU" in opened.page.evaluate("navigator.clipboard.readText()")
    detail.get_by_role("button", name="Copy command").click()
    program, *command = shlex.split(opened.page.evaluate("navigator.clipboard.readText()"))
    assert program == "graphrag-eval-lc"
    planned = CliRunner().invoke(app, [*command, "-o", str(tmp_path / "again"), "--dry-run"], catch_exceptions=False)
    assert "1 of 1 would be asked" in planned.stdout
    assert "First: transformers_kristiansand." in planned.stdout


# --- the list --------------------------------------------------------------------------------------------------------


def test_questions_are_listed_in_dataset_order(run: BenchmarkRun, open_report: Open) -> None:
    opened = open_report()
    assert opened.keys() == [result["question_id"] for result in run.results]
    assert opened.page.locator("h1").count() == 1


def test_headings_sort_the_list_in_both_directions(run: BenchmarkRun, open_report: Open) -> None:
    opened = open_report()
    by_time = [result["question_id"] for result in sorted(run.results, key=lambda result: -result["elapsed_sec"])]
    for order in ("descending", "ascending"):
        opened.page.locator("table.list > thead").get_by_role("button", name="Time").click()
        expect(opened.page.locator("table.list th[aria-sort]")).to_have_attribute("aria-sort", order)
        expect(opened.page.locator("table.list th[aria-sort]")).to_have_text("Time")
        assert opened.keys() == by_time
        by_time.reverse()


def test_templates_are_sorted_by_their_headings(open_report: Open) -> None:
    opened = open_report()
    table = opened.page.locator("#templates table")
    table.get_by_role("button", name="Right").first.click()
    counts = [map(int, text.split(" of ")) for text in table.locator("tbody td:nth-child(2)").all_inner_texts()]
    shares = [right / samples for right, samples in counts]
    assert shares == sorted(shares, reverse=True)
    assert len(set(shares)) > 1


def test_filters_select_questions_and_are_kept_in_the_url(run: BenchmarkRun, open_report: Open) -> None:
    opened = open_report()
    search = opened.page.get_by_role("search")

    def check(is_left: Callable[[Any], bool]) -> None:
        left = [result["question_id"] for result in run.results if is_left(result)]
        assert 0 < len(left) < len(run.results)
        expect(opened.rows).to_have_count(len(left))
        assert opened.keys() == left
        opened.page.reload()
        expect(opened.rows).to_have_count(len(left))
        opened.page.get_by_role("button", name="Clear all filters").click()
        expect(opened.rows).to_have_count(len(run.results))

    search.get_by_label("Template").select_option("transformers_in_substation")
    check(lambda result: result["template_id"] == "transformers_in_substation")
    search.get_by_label("Status").select_option("error")
    check(lambda result: result["status"] == "error")
    search.get_by_label("Score").select_option("steps_score")
    search.get_by_label("to", exact=True).fill("0.99")
    check(lambda result: result.get("steps_score", 0.0) <= 0.99)
    search.get_by_label("Used tool").select_option("now")
    check(lambda result: any(step["name"] == "now" for step in result["actual_steps"]))


def test_search_finds_words_in_texts_ids_and_errors(run: BenchmarkRun, open_report: Open) -> None:
    opened = open_report()
    box = opened.page.get_by_role("searchbox")
    box.fill("RATED stavanger")
    expect(opened.rows).to_have_count(1)
    assert opened.keys() == ["transformers_stavanger"]
    box.fill("substations_se3")
    expect(opened.rows).to_have_count(1)
    failed = next(result for result in run.results if result["status"] == "error")
    box.fill(failed["error"][:40])
    expect(opened.rows.locator(".question-id")).to_have_text([failed["question_id"]])
    box.fill("nothing like this")
    expect(opened.rows).to_have_count(0)
    box.fill("")
    expect(opened.rows).to_have_count(len(run.results))


def test_funnel_stages_matrix_cells_and_error_kinds_show_their_questions(run: BenchmarkRun, open_report: Open) -> None:
    opened = open_report()
    buttons = opened.page.locator("#failures button.show-set, #errors button.show-set")
    assert buttons.count() >= 5
    for button in buttons.all():
        number = int(re.findall(r"\d+", button.inner_text())[0])
        button.click()
        expect(opened.rows).to_have_count(number)
        opened.page.get_by_role("button", name="remove this filter").click()
        expect(opened.rows).to_have_count(len(run.results))


def test_matrix_has_the_judged_questions(run: BenchmarkRun, open_report: Open) -> None:
    opened = open_report()
    lost = [
        result["question_id"]
        for result in run.results
        if result["status"] == "success" and result["steps_score"] == 1 and result.get("answer_f1", 1) < 1
    ]
    assert 0 < len(lost) < len(run.results)
    opened.page.locator("td.right_wrong button.show-set").click()
    expect(opened.rows).to_have_count(len(lost))
    assert opened.keys() == lost


def test_failed_question_is_marked_and_has_the_score_it_is_filtered_by(open_report: Open) -> None:
    opened = open_report()
    search = opened.page.get_by_role("search")
    search.get_by_label("to", exact=True).fill("0")
    failed = opened.page.locator("tr.question.error")
    expect(failed).to_have_count(1)
    expect(failed.locator(".question-button")).to_contain_text("✗ error")
    expect(failed.locator("td.score").first).to_have_text("✗ 0.000")


def test_scores_of_another_range_have_no_colour_and_their_own_bounds(
    run: BenchmarkRun, tmp_path: Path, open_report: Open
) -> None:
    rated = with_metrics(run, helpfulness=lambda at: 1 + at % 5)
    opened = open_report(write_report(rated, tmp_path / "report.html"))
    search = opened.page.get_by_role("search")
    search.get_by_label("Score").select_option("helpfulness")
    highest = search.get_by_label("to", exact=True)
    assert (highest.get_attribute("max"), highest.get_attribute("placeholder")) == ("5", "5")
    assert {text.strip() for text in opened.column("helpfulness")} == {"0", "1", "2", "3", "4", "5"}
    assert opened.page.locator("td.score:not(.side-column):is(.good, .warn, .bad)").count() == 0


def test_registered_lower_is_better_score_has_its_unit_and_colours(
    run: BenchmarkRun, tmp_path: Path, open_report: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = MetricSpec(key="detour", title="way for nothing", unit="km", lower_is_better=True, range=(0.0, 4.0))
    monkeypatch.setitem(metrics_of_users, "detour", RegisteredMetric(spec, lambda question, response: None))
    opened = open_report(write_report(with_metrics(run, detour=lambda at: at % 5), tmp_path / "report.html"))
    search = opened.page.get_by_role("search")
    search.get_by_label("Score").select_option("detour")
    note = "way for nothing; less is better"
    assert search.locator("option[value=detour]").first.get_attribute("title") == note
    assert opened.page.locator("table.list > thead th", has_text="detour").get_attribute("title") == note
    shown = {text.strip() for text in opened.column("detour")}
    assert shown == {"✓ 0 km", "≈ 1.00 km", "≈ 2.00 km", "≈ 3.00 km", "✗ 4.00 km"}
    score = opened.page.locator("td.score:not(.side-column)")
    assert {text.strip() for text in score.and_(opened.page.locator(".good")).all_inner_texts()} == {"✓ 0 km"}
    # A failed question has the worst score.
    failed = [result["question_id"] for result in run.results if result["status"] == "error"]
    assert failed
    search.get_by_label("from", exact=True).fill("4")
    assert set(failed) < set(opened.keys())
    search.get_by_label("Status").select_option("error")
    assert {text.strip() for text in opened.column("detour")} == {"✗ 4.00 km"}
    opened.opened(failed[0])


def test_unknown_filter_values_are_ignored(open_report: Open) -> None:
    opened = open_report()
    opened.page.evaluate("location.hash = '#template=none&tool=none&status=odd&sort=odd&min=odd&group=none'")
    expect(opened.rows).to_have_count(18)
    assert opened.page.evaluate("location.hash") == ""


def test_question_stays_open_when_the_list_is_filtered(open_report: Open) -> None:
    opened = open_report()
    detail = opened.opened("transformers_kristiansand")
    search = opened.page.get_by_role("searchbox")
    search.fill("kristiansand")
    expect(detail).to_be_visible()
    search.fill("substations_se3")
    expect(detail).to_have_count(0)
    search.fill("")
    expect(detail).to_be_visible()
    expect(opened.button_of("transformers_kristiansand")).to_have_attribute("aria-expanded", "true")


# --- a question ------------------------------------------------------------------------------------------------------


def test_question_opens_with_its_answers_steps_and_timeline(open_report: Open) -> None:
    opened = open_report()
    detail = opened.opened("transformers_kristiansand")
    text = detail.inner_text()
    assert "KRISTIANSAND has 3 power transformers" in text
    assert "The first claim." in text
    step = detail.get_by_role("button", name="sparql_query").first
    assert "1 of 3 rows is missing" in detail.locator(".step").last.inner_text()
    opened.open_everything(".detail")
    expect(step).to_have_attribute("aria-expanded", "true")
    assert detail.locator(".row-missing, .row-extra").count() == 5
    assert "SELECT" in detail.locator(".step .side").last.inner_text()
    assert detail.locator(".timeline > li.tool").count() == 2
    opened.button_of("transformers_kristiansand").click()
    expect(opened.page.locator(".detail")).to_have_count(0)


def test_question_can_be_opened_with_the_keyboard(open_report: Open) -> None:
    opened = open_report()
    keyboard = opened.page.keyboard
    keyboard.press("Tab")
    assert opened.page.evaluate("document.activeElement.textContent") == "Skip to the content"
    opened.page.get_by_role("searchbox").focus()
    for _ in range(40):
        keyboard.press("Tab")
        if opened.page.evaluate("document.activeElement.matches('.question-button')"):
            break
    keyboard.press("Enter")
    opened.detail()
    keyboard.press("Tab")
    assert opened.page.evaluate("document.activeElement.closest('.detail') !== null")
    keyboard.press("Shift+Tab")
    keyboard.press("Space")
    expect(opened.page.locator(".detail")).to_have_count(0)


def test_link_to_a_question_opens_it_in_view_with_the_focus(open_report: Open) -> None:
    opened = open_report(question="search_steins")
    opened.detail()
    button = opened.button_of("search_steins")
    expect(button).to_be_focused()
    expect(button).to_be_in_viewport()
    opened.page.evaluate("location.hash = '#q=substations_se3'")
    expect(opened.button_of("substations_se3")).to_be_focused()
    expect(opened.button_of("substations_se3")).to_be_in_viewport()
    opened.page.evaluate("location.hash = '#q=no%20such'")
    expect(opened.page.get_by_text("no question no such")).to_be_in_viewport()


def test_links_within_the_report_open_their_question(open_report: Open) -> None:
    opened = open_report()
    opened.page.locator("table.extremes a").first.click()
    opened.detail()
    expect(opened.page.locator(".question-button[aria-expanded=true]")).to_be_focused()


def test_section_links_keep_the_filters(open_report: Open) -> None:
    opened = open_report()
    opened.page.get_by_label("Status").select_option("error")
    expect(opened.rows).to_have_count(1)
    opened.page.get_by_role("navigation").get_by_role("link", name="Templates").click()
    for _ in range(2):
        expect(opened.page.get_by_role("heading", name="Templates")).to_be_in_viewport()
        expect(opened.rows).to_have_count(1)
        assert opened.page.evaluate("location.hash") == "#templates&status=error&sort=given"
        opened.page.reload()


def test_repeats_of_a_question_have_separate_links(tmp_path: Path, open_report: Open) -> None:
    repeated = demo_run(tmp_path, repeats=2, question_ids=["substations_se3", "search_steins"])
    opened = open_report(write_report(repeated), question="search_steins #2")
    opened.detail()
    assert sorted(opened.keys()) == [
        f"{name}{repeat}" for name in ("search_steins", "substations_se3") for repeat in ("", " #2")
    ]
    expect(opened.button_of("search_steins #2")).to_be_focused()


def test_rows_are_a_table_with_all_columns_and_folded_equal_rows(open_report: Open) -> None:
    detail = open_report().opened("transformers_kristiansand")
    table = detail.locator("table.rows").first
    headings = table.locator("thead th").all_inner_texts()
    assert headings == ["transformer", "ratedS ↔ ratedU", "name (not required)"]
    assert table.locator(".row-missing td").all_inner_texts()[1:] == ["1000", "KRISTIANSAND T1"]
    expect(table.locator(".row-extra")).to_have_count(4)
    assert table.locator("mark").all_inner_texts() == ["1000", "300"]  # distinguishes two rows
    equal = table.locator(".row-equal")
    expect(equal.first).to_be_hidden()
    detail.get_by_role("button", name="Show 2 equal rows").click()
    expect(equal).to_have_count(2)
    expect(equal.first).to_be_visible()


def test_iris_are_short_and_complete_on_hover_or_copy(open_report: Open) -> None:
    opened = open_report(permissions=["clipboard-read", "clipboard-write"])
    detail = opened.opened("transformers_kristiansand")
    iri = detail.locator("table.rows .iri").first
    whole = iri.get_attribute("title")
    assert whole is not None
    assert whole.startswith("urn:uuid:")
    assert (iri.bounding_box() or {})["width"] < 200
    iri.evaluate("cell => getSelection().selectAllChildren(cell)")
    opened.page.keyboard.press("Control+c")
    assert opened.page.evaluate("navigator.clipboard.readText()").strip() == whole
    opened.open_everything(".detail")
    prefixed = detail.locator(".iri[title='https://cim.ucaiug.io/ns#Substation'] .cut")
    assert prefixed.first.get_attribute("data-sign") == "cim:"


QUERIES = (
    "PREFIX cim: <urn:cim#>\nSELECT ?x WHERE { ?x a cim:Line ; cim:name 'a b' ; cim:in 7 . FILTER(?x != ?y) } # all",
    "prefix c:<urn:cim#>\n\nselect  ?line where {\n ?line a <urn:cim#Line> . ?line c:in 7, 7; c:length 'a b' . }",
)


def test_only_semantic_differences_are_marked_in_queries(tmp_path: Path, open_report: Open) -> None:
    step = {"name": "sparql_query", "output": "7"}
    reference, actual = ({**step, "args": {"query": query}} for query in QUERIES)
    diagnosis = {"score": 0.0, "matched": False, "reason": "differs", "nearest": "c"}
    result = {
        "question_id": "q",
        "template_id": "t",
        "status": "success",
        "steps_score": 0.0,
        "reference_steps": [[reference]],
        "actual_steps": [{**actual, "output": "8", "id": "c", "status": "success"}],
        "steps_diagnosis": [[diagnosis]],
    }
    sides = open_report(write_report([result], tmp_path / "report.html")).opened("q").locator(".step .side")
    marked = ["".join(sides.nth(at).locator("mark").all_inner_texts()) for at in (0, 1)]
    assert marked == ["cim:nameFILTER?x!=?y", "7c:length"]


def test_document_searches_have_no_syntax_highlighting(open_report: Open) -> None:
    search, query = (
        open_report().opened(key).locator(".code-keyword").count() for key in ("notes_hasle", "longest_lines_no4")
    )
    assert search == 0 < query


# --- notes -----------------------------------------------------------------------------------------------------------


def test_notes_are_kept_exported_and_change_the_dataset(tmp_path: Path, open_report: Open) -> None:
    """From the report to the dataset, by keyboard only: mark a reference, and accept an output."""
    dataset = tmp_path / "qa.yaml"
    dataset.write_text(DATASET_PATH.read_text(encoding="utf-8"), encoding="utf-8")
    opened = open_report(accept_downloads=True)
    detail = opened.opened("ac_neighbours_bergen")
    saved = detail.get_by_role("status").filter(has_text="Saved in this browser.")
    expect(saved).to_have_count(0)
    detail.get_by_label("The reference is wrong").press("Space")
    expect(saved).to_have_count(1)
    detail.get_by_label("The judge is").select_option("wrong")
    detail.get_by_label("Note", exact=True).fill("BERGEN is no neighbour of itself </script>")
    detail.get_by_label("Accept this output as the reference").press("Space")
    opened.page.wait_for_timeout(300)  # Chromium saves local storage a moment later
    opened.page.reload()
    opened.page.get_by_role("button", name="Show 1 note").click()
    assert opened.keys() == ["ac_neighbours_bergen"]
    expect(opened.rows.first).to_contain_text("✎ note")
    detail = opened.detail()  # the URL names the open question
    expect(detail.get_by_label("The reference is wrong")).to_be_checked()
    expect(detail.get_by_label("Note", exact=True)).to_have_value("BERGEN is no neighbour of itself </script>")
    expect(detail.get_by_label("Accept this output as the reference")).to_be_checked()
    expect(detail.locator(".notes-line").last).to_contain_text(f"dataset notes notes.json {DATASET_PATH}")
    with opened.page.expect_download() as download:
        detail.get_by_role("button", name="Export notes").click()
    download.value.save_as(tmp_path / "notes.json")
    labels = tmp_path / "labels.csv"
    arguments = ["dataset", "notes", str(tmp_path / "notes.json"), str(dataset), "--write", "--labels", str(labels)]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert "the reference is wrong, the judge is wrong: BERGEN is no neighbour of itself" in result.stdout
    assert "the output of call_2 is accepted" in result.stdout
    assert "1 output replaced." in result.stdout
    changed = dataset.read_text(encoding="utf-8")
    assert changed.count("output_source: ") == 1
    assert CliRunner().invoke(app, ["validate", str(dataset)]).exit_code == 0
    assert "over one of the AC lines from BERGEN" in labels.read_text()

    detail.get_by_label("The reference is wrong").uncheck()
    detail.get_by_label("The judge is").select_option("")
    detail.get_by_label("Note", exact=True).fill("")
    detail.get_by_label("Accept this output as the reference").uncheck()
    for button in opened.page.get_by_role("button", name="Export notes", include_hidden=True).all():
        expect(button).to_be_hidden()


# --- appearance ------------------------------------------------------------------------------------------------------


def test_colours_follow_the_system_until_chosen(open_report: Open) -> None:
    light, dark = open_report(color_scheme="light"), open_report(color_scheme="dark")
    assert light.lightness() > 0.8
    assert dark.lightness() < 0.3
    light.page.locator("#theme").click()
    assert light.lightness() < 0.3
    light.page.wait_for_timeout(300)  # Chromium saves local storage a moment later
    light.page.reload()
    assert light.lightness() < 0.3


def test_print_shows_open_details_on_white(open_report: Open) -> None:
    opened = open_report(color_scheme="dark")
    closed = opened.page.pdf()
    detail = opened.opened("transformers_kristiansand")
    opened.page.emulate_media(media="print")
    assert opened.lightness() > 0.9
    expect(detail).to_be_visible()
    expect(opened.page.get_by_role("search")).to_be_hidden()
    pdf = opened.page.pdf()
    assert pdf.startswith(b"%PDF")
    assert len(pdf) > len(closed)


def test_list_headings_and_questions_have_enough_room(run: BenchmarkRun, tmp_path: Path, open_report: Open) -> None:
    names = ("answer_f1", "answer_relevance", "helpfulness", "politeness_of_answers")
    judged = with_metrics(run, **dict.fromkeys(names, lambda _: 0.5))
    opened = open_report(write_report(judged, tmp_path / "report.html"))
    opened.page.get_by_role("search").get_by_label("Score").select_option("politeness_of_answers")
    headings = opened.page.locator("table.list > thead th")
    too_wide = "cells => cells.filter(cell => cell.scrollWidth > cell.clientWidth).map(cell => cell.innerText)"
    for width in (390, 980, 1100, 1366, 1440):
        opened.page.set_viewport_size({"width": width, "height": 900})
        assert headings.evaluate_all(too_wide) == [], width
        assert headings.first.evaluate("cell => cell.clientWidth") >= 240, width
    opened.page.emulate_media(media="print")
    opened.page.set_viewport_size({"width": 718, "height": 1000})  # A4 between its margins
    assert not opened.is_wider_than_the_window()


def test_score_explanation_fits_on_a_phone_screen(open_report: Open) -> None:
    opened = open_report(address="", size=PHONE)
    note = opened.page.locator(".score-note")
    expect(note).to_be_in_viewport()
    expect(note).to_contain_text("partly right in between")
    is_cut = "all => all.filter(each => each.scrollWidth > each.clientWidth + 1).length"
    assert opened.page.locator("#templates .scroll, #errors .scroll").evaluate_all(is_cut) == 0
    opened.opened("transformers_kristiansand")
    assert opened.page.locator(".code").evaluate_all(is_cut.replace("Width", "Height")) == 0


def test_everything_but_the_list_is_shown_without_scripts(open_report: Open) -> None:
    page = open_report(java_script_enabled=False).page
    expect(page.locator("noscript p")).to_be_visible()
    for heading in ("Why questions failed", "Scores", "Templates", "Where questions fail", "What ran"):
        expect(page.get_by_role("heading", name=heading)).to_be_visible()
    assert page.locator("#templates tbody tr").count() == 11


@pytest.mark.parametrize(
    ("scheme", "size", "questions"),
    [
        ("light", PHONE, ("longest_dc_lines", "transformers_kristiansand")),
        ("dark", LAPTOP, ("transformers_kristiansand",)),
    ],
)
def test_page_is_accessible_and_never_scrolls_sideways(
    scheme: str, size: tuple[int, int], questions: tuple[str, ...], open_report: Open
) -> None:
    opened = open_report(color_scheme=scheme, size=size)
    for number, question in enumerate(questions, start=1):
        opened.button_of(question).click()
        expect(opened.page.locator(".detail").get_by_role("heading", name="Answer", exact=True)).to_have_count(number)
    assert not opened.is_wider_than_the_window()
    opened.open_everything(".detail")
    assert not opened.is_wider_than_the_window()
    assert opened.serious_violations() == []


# --- prompts and replies of models -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kept_run(tmp_path_factory: pytest.TempPathFactory) -> BenchmarkRun:
    """A run of two questions that recorded its messages."""
    capture: Any = {"keep_messages": True}
    return demo_run(tmp_path_factory.mktemp("kept"), mistakes=0, limit=2, capture=capture)


@pytest.fixture(scope="module")
def kept_report(kept_run: BenchmarkRun) -> Path:
    return write_report(kept_run)


def test_model_calls_open_to_their_new_messages(kept_run: BenchmarkRun, kept_report: Path, open_report: Open) -> None:
    result: Any = kept_run.results[0]
    detail = open_report(kept_report).opened(result["question_id"])
    expect(detail.get_by_text(result["run_id"])).to_be_visible()
    calls = detail.locator(".timeline > li.model")
    expect(calls).to_have_count(len(result["llm_calls"]))
    first, second = calls.nth(0), calls.nth(1)
    expect(first.locator(".message")).to_have_count(0)  # rendered only when opened

    first.locator(".event").click()
    expect(first.locator(".message").filter(has_text="user")).to_contain_text(result["question_text"])
    expect(first.locator(".message.of-model")).to_contain_text(result["actual_steps"][0]["name"])

    second.locator(".event").click()
    new = second.locator(".message:visible")
    expect(new.filter(has_text="answers call")).to_contain_text(result["actual_steps"][0]["output"][:40])
    assert new.filter(has_text=result["question_text"]).count() == 0
    second.get_by_role("button", name="known from earlier calls").click()
    assert new.filter(has_text=result["question_text"]).count() == 1


def test_model_and_tool_calls_are_one_timeline_with_usage(run: BenchmarkRun, open_report: Open) -> None:
    detail = open_report().opened("transformers_stavanger")
    result: Any = next(each for each in run.results if each["question_id"] == "transformers_stavanger")
    events = detail.locator(".timeline > li")
    kinds = events.evaluate_all("all => all.map(each => each.className)")
    assert kinds == ["model", "tool"] * len(result["actual_steps"]) + ["model"]
    tokens = [f"{call['total_tokens']:,} tokens" for call in result["llm_calls"]]
    shown = detail.locator(".timeline > li.model .event-name").all_inner_texts()
    assert all(amount in text for amount, text in zip(tokens, shown, strict=True))
    events.first.locator(".event").click()
    assert detail.locator(".message").count() == 0  # the run did not record them


def test_transcripts_are_accessible(kept_report: Path, open_report: Open) -> None:
    opened = open_report(kept_report, color_scheme="dark", size=PHONE)
    opened.rows.first.locator(".question-button").click()
    opened.detail()
    opened.open_everything(".detail")
    assert opened.serious_violations() == []
    assert not opened.is_wider_than_the_window()


# --- texts have no effect --------------------------------------------------------------------------------------------


def test_texts_are_not_interpreted_even_without_the_policy(hostile_report: Path, open_report: Open) -> None:
    opened = open_report(hostile_report, bypass_csp=True)
    page = opened.page
    number = sum(len(template["questions"]) for template in hostile_dataset())
    expect(opened.rows).to_have_count(number)
    for position in range(number):
        opened.rows.nth(position).locator(".question-button").click()
        expect(page.locator(".detail").nth(position).get_by_role("heading", name="Answer", exact=True)).to_be_visible()
    opened.open_everything(".detail")
    for button in page.locator("button.show-set").all():
        button.click()
    for button in page.locator("button.sort").all():
        button.click()
    assert page.evaluate("window.injected") is None
    assert page.locator(".injected, iframe, object, embed, base, [onload], [onerror], [onfocus], img").count() == 0
    assert page.locator("a:not([href^='#'])").count() == 0
    assert "<img class=injected src=x onerror=" in opened.rows.first.inner_text()
    assert not opened.is_wider_than_the_window()


def test_hostile_texts_are_shown_everywhere(hostile_report: Path, open_report: Open) -> None:
    opened = open_report(hostile_report, color_scheme="light", size=PHONE)
    opened.rows.nth(1).locator(".question-button").click()
    opened.detail()
    opened.open_everything(".detail")
    text = opened.page.locator("body").inner_text()
    places = (
        "template 0", "question 0.1", "text of 0.1", "reference answer of 0.1", "answer", "claim in true_positives",
        "claim in false_negatives", "reason of a judge", "reference query", "query", "variable", "cell 0", "tool",
        "argument", "item", "wrong output", "error of a step", "found", "metric", "reason of a metric", "label", "tag",
        "judge", "warning", "earlier kind", "earlier error", "kind of error", "id", "document", "agent", "node",
        "around", "error of a model", "called tool", "said", "id of a call", "system prompt", "prompt", "block",
        "message", "author", "why not valid", "refusal", "reasoning", "what a tool said", "answered", "defined tool",
        "length",
    )  # fmt: skip
    assert [place for place in places if f"{place} </script>" not in text] == []
    assert "{{ 7 * 191 }}" in text
    assert "1337" not in text
    assert opened.serious_violations() == []
    assert not opened.is_wider_than_the_window()


def test_long_outputs_are_truncated_and_control_and_bidi_characters_visible(
    hostile_report: Path, open_report: Open
) -> None:
    assert hostile_report.stat().st_size < 3_000_000
    opened = open_report(hostile_report)
    opened.rows.first.locator(".question-button").click()
    opened.detail()
    opened.open_everything(".detail")
    assert "characters left out" in opened.page.locator(".detail").inner_text()
    content = opened.page.content()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", content)
    assert "⟨U+202E⟩" in content
    assert "⟨U+D800⟩" in content
    assert "␛" in content
