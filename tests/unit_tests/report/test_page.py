import base64
import gzip
import hashlib
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise
from typing import Any

import pytest

from graphrag_eval_lc.aggregation.question_values import ScoreMean
from graphrag_eval_lc.errors import MissingExtraError
from graphrag_eval_lc.report.page import _environment, render_report
from graphrag_eval_lc.texts import shown_name
from graphrag_eval_lc.view import RunView, run_view
from graphrag_eval_lc.view.failures import FailureGroup
from graphrag_eval_lc.view.run_view import Changes, GateLine, Headline, TemplateLine
from graphrag_eval_lc.view.scores import Extreme, ScoreLine, SpentLine, TemplateScore

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&\u202e"
SOURCES = list(files("graphrag_eval_lc.report").joinpath("templates").iterdir())
VOID = {"meta", "link", "input", "img", "br", "wbr"}


def chunk(details: dict[str, Any]) -> str:
    return base64.b64encode(gzip.compress(json.dumps(details).encode())).decode()


def index_row(key: str, text: str = "Which substations?") -> dict[str, Any]:
    row = {"k": key, "q": text, "t": "templ", "s": "error", "m": {"steps_score": 1.0}, "tok": 9, "sec": 0.5}
    return {**row, "usd": None, "tools": [0], "c": 0, "r": text, "g": 0, "e": text, "a": text}


def report_context(text: str = "text", **changes: Any) -> dict[str, Any]:
    """Return a context in which every untrusted string contains ``text``."""
    stage = {"name": text, "entered": 5, "passed": 2, "passed_over": 1, "not_judged": 1, "fell_out": [text]}
    return {
        "title": text,
        "generated": "2026-01-02T03:04:05+00:00",
        "version": "0.2.0",
        "what_ran": [{"name": text, "value": text, "href": f"javascript:{text}"}],
        "warnings": [text],
        "view": view_of(text),
        "funnel": {
            "stages": [stage],
            "questions": 5,
            "outside": 1,
        },
        "matrix": {
            "right_right": [text],
            "right_wrong": [],
            "wrong_right": [text],
            "wrong_wrong": [],
            "left_out": 3,
            "threshold_text": text,
        },
        "errors": [{"where": "question", "kind": text, "count": 1, "example": text, "questions": [text]}],
        "capture_warnings": [{"kind": text, "example": text, "count": 1, "questions": [text]}],
        "tools": [text],
        "groups": [text],
        "run": {"title": text},
        "again": text,
        "dataset": text,
        "prefixes": {"p": text},
        "turned": {},
        "samples_word": "questions",
        "index_json": json.dumps([index_row(text, text)]),
        "chunks": [chunk({text: {"key": text}})],
        **changes,
    }


def view_of(text: str = "text", **changes: Any) -> RunView:
    """Return a view in which every untrusted string is ``text``."""
    means: dict[str, Any] = {"mean": 0.5, "mean_answered": 0.75, "upper": None, "questions": 5, "answered": 4}
    means |= {"range": (0.0, 1.0), "bins": (1, 0, 0, 0, 0, 0, 0, 0, 0, 3)}
    interval: dict[str, Any] = {"low": 0.2, "high": 0.8, "interval_note": text}
    score = ScoreLine(
        **means, **interval, metric=text, is_part=False, mean_of_templates=ScoreMean(0.5, 0.75), without=2
    )
    headline = Headline(
        questions=5,
        samples=5,
        repeats=1,
        templates=1,
        states={"right": 4, "error": 1},
        main=score,
        cost=0.5,
        is_cost_whole=True,
        tokens=9.0,
        changes=Changes(text, (text,), ()),
    )
    template = TemplateLine(
        template_id=text,
        questions=5,
        samples=5,
        errors=1,
        right=4,
        is_answered=True,
        scores={text: TemplateScore(**means)},
        spent={"total_tokens": 9.0, "elapsed_sec": 0.5},
        failed_calls=0,
        empty_results=0,
        missing=None,
    )
    spent = SpentLine(
        metric=text, name=text, unit="seconds", total=75.0, mean=15.0, median=14.0, p95=30.0, samples=5, note=text
    )
    view = RunView(
        headline=headline,
        gates=(GateLine("failed", text),),
        groups=(FailureGroup(text, text, 1, text, text, (text,)),),
        failures=(),
        scores=(score, replace(score, questions=1)),
        templates=(template,),
        spent=(spent,),
        spent_note=text,
        totals={},
        chances=((text, 0.25),),
        chances_note=text,
        slowest=(Extreme(text, text, 30.0, "seconds", 1),),
        most_expensive=(Extreme(text, text, 9, "tokens", 0),),
        notes=(),
        grading_note=text,
        judge_note=text,
        score_note=text,
        is_mostly_unanswered=False,
    )
    return replace(view, **changes)


def html_of(context: Mapping[str, Any]) -> str:
    return "".join(render_report(context))


class Page(HTMLParser):
    """Collects a page's elements and the texts of its scripts, and checks that every element is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "wbr":  # without <wbr>, whose number depends on the name
            self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)

    def attributes(self, name: str) -> list[str]:
        return [value for _, attributes in self.elements if (value := attributes.get(name)) is not None]

    def data(self, name: str) -> Any:
        return json.loads(next(text for attributes, text in self.scripts if attributes.get("id") == name))

    def policy(self) -> str:
        meta = next(each for _, each in self.elements if each.get("http-equiv") == "Content-Security-Policy")
        return meta["content"] or ""


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(html_of(report_context()))


def test_every_element_is_closed(page: Page) -> None:
    assert page.open == []


def test_ids_are_unique(page: Page) -> None:
    ids = page.attributes("id")
    assert len(ids) == len(set(ids))


def test_links_within_the_page_have_a_target(page: Page) -> None:
    targets = [href[1:] for href in page.attributes("href") if href.startswith("#") and "=" not in href]
    assert set(targets) <= set(page.attributes("id"))


def test_heading_levels_are_not_skipped(page: Page) -> None:
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_content_security_policy_allows_only_the_pages_scripts(page: Page) -> None:
    running = [text for attributes, text in page.scripts if "type" not in attributes]
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in running]
    assert re.findall(r"'sha256-([^']+)'", page.policy()) == digests
    assert page.policy().startswith("default-src 'none';")


def test_page_loads_nothing_from_elsewhere(page: Page) -> None:
    assert page.attributes("src") == []
    assert [attributes["href"] for tag, attributes in page.elements if tag == "link"] == ["data:,"]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_sources_contain_no_urls_and_never_parse_text_as_markup(path: Any) -> None:
    source = path.read_text(encoding="utf-8")
    assert not re.search(r"https?://(?!\"|')", source)
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|@import", source
    )


def test_markup_in_texts_is_escaped() -> None:
    harmless, hostile = Page(html_of(report_context())), Page(html_of(report_context(HOSTILE)))
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in harmless.elements]
    assert [sorted(each) for _, each in hostile.elements] == [sorted(each) for _, each in harmless.elements]
    assert hostile.open == []


def test_data_reach_the_scripts_unchanged() -> None:
    page = Page(html_of(report_context(HOSTILE)))
    assert page.data("index") == [index_row(HOSTILE, HOSTILE)]
    assert page.data("lists")["templates"] == [shown_name(HOSTILE)]
    assert page.data("sets")["funnel-0"]["keys"] == [HOSTILE]


def test_chunks_are_embedded_unchanged() -> None:
    packed = chunk({"q1": {"key": "q1"}})
    page = Page(html_of(report_context(chunks=[packed])))
    assert [text for attributes, text in page.scripts if attributes.get("id") == "chunk-0"] == [packed]


def test_bidi_control_characters_are_shown() -> None:
    html = html_of(report_context(HOSTILE, index_json="[]", chunks=[]))
    assert "⟨U+202E⟩" in html


def test_only_web_addresses_become_links() -> None:
    def hrefs(href: str) -> list[str]:
        ran = [{"name": "Build", "value": "7", "href": href}]
        return Page(html_of(report_context(what_ran=ran))).attributes("href")

    assert "https://ci.example/7" in hrefs("https://ci.example/7")
    assert "javascript:alert(1)" not in hrefs("javascript:alert(1)")


def test_link_to_a_question_is_percent_encoded() -> None:
    html = html_of(report_context(view=view_of(slowest=(Extreme("a b#2&c", "", 1.0, "seconds", 0),))))
    assert 'href="#q=a%20b%232%26c"' in html


def test_each_set_that_a_button_names_exists(page: Page) -> None:
    sets = page.data("sets")
    assert set(page.attributes("data-set")) <= set(sets)
    assert sets["matrix-wrong_right"] == {"label": "Steps wrong, answer right", "keys": ["text"]}


def test_empty_sections_are_omitted() -> None:
    empty: dict[str, Any] = {key: [] for key in ("errors", "capture_warnings", "warnings", "groups", "chunks")}
    nothing = dict.fromkeys(("gates", "groups", "scores", "spent", "chances", "templates", "slowest"), ())
    view = run_view([])
    assert all(getattr(view, name) == value for name, value in nothing.items())
    html = html_of(report_context(index_json="[]", view=view, **empty, **dict.fromkeys(("funnel", "matrix"))))
    assert "Why" not in html[html.index("<body>") : html.index("<script", html.index("<body>"))]
    assert "Failure funnel" not in html
    assert "No errors." in html
    assert "None" not in html


def test_score_is_drawn_within_its_range() -> None:
    score = replace(view_of().scores[0], mean=3.0, low=2.0, high=4.0, range=(1.0, 5.0))
    html = html_of(report_context(view=view_of(scores=(score,))))
    assert '<rect class="fill" x="0" y="5" width="50.0"' in html
    assert '<rect class="interval" x="25.0" y="3" width="50.0"' in html
    assert '<div class="axis-ends"><span>1</span><span>5</span></div>' in html


def test_failures_come_before_questions_and_these_before_scores(page: Page) -> None:
    sections = [each["id"] for tag, each in page.elements if tag == "section"]
    assert sections == ["why", "questions", "scores", "templates", "failures", "errors", "what-ran"]
    html = html_of(report_context())
    assert "<strong>4 of 5 right, 1 error</strong> · <bdi>text 0.500 (0.20–0.80)</bdi> · $0.50 · 9 tokens" in html
    assert "<bdi>1 broken, 0 fixed since text</bdi>" in html


def test_scores_of_few_questions_are_collapsed_by_family() -> None:
    main, other = view_of().scores
    family = tuple(replace(other, metric=f"retrieval_ids_{name}", is_part=True) for name in ("mrr", "ndcg", "map"))
    html = html_of(report_context(view=view_of(scores=(main, *family))))
    (summary,) = re.findall(r"<summary>(.*?)</summary>", html)
    assert summary == "<bdi>retrieval_ids_…</bdi> <small>3 scores, 1 of 5 questions</small>"
    assert html.index("retrieval_<wbr>ids_<wbr>mrr") > html.index("<summary>")


def test_scripts_know_the_range_of_each_score(page: Page) -> None:
    assert page.data("lists")["ranges"] == {"text": [0.0, 1.0]}
    assert "axis-ends" not in [each.get("class") for _, each in page.elements]


def test_long_names_may_be_broken_after_their_underscores() -> None:
    html = html_of(report_context("answer_relevance"))
    assert html.count("<bdi>answer_<wbr>relevance</bdi>") >= 4  # a tile, in scores, and twice in templates


def test_samples_excluded_from_means_are_reported() -> None:
    html = html_of(report_context(samples_word="samples"))
    assert "not measured for 2" in html
    assert "1 not judged" in html
    assert "3 samples without a score for both are left out." in html
    assert "5 samples with reference queries" in html


def test_slow_and_expensive_questions_show_their_text() -> None:
    html = html_of(report_context(view=view_of(slowest=(Extreme("q1", "Which?", 1.0, "seconds", 2),))))
    assert "<bdi>Which?</bdi>" in html
    assert "2 failed attempts" in html


def test_capture_warnings_have_a_kind_and_an_example() -> None:
    warning = {
        "kind": "output of … was cut",
        "example": "output of call_1 was cut",
        "count": 2,
        "questions": ["q1", "q2"],
    }
    page = Page(html := html_of(report_context(capture_warnings=[warning])))
    assert "output of call_1 was cut" in html
    assert page.data("sets")["warning-0"] == {"label": "Warning: output of … was cut", "keys": ["q1", "q2"]}


def test_missing_jinja2_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    _environment.cache_clear()
    with pytest.raises(MissingExtraError, match=r"graphrag-eval-lc\[report\]"):
        html_of(report_context())
