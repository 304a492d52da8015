"""A run in a notebook: headline, failure groups, and the worst templates and questions, however many there are."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from graphrag_eval_lc import BenchmarkRun, compute_aggregates
from graphrag_eval_lc.tables import Results
from graphrag_eval_lc.tables.notebook_html import run_html
from graphrag_eval_lc.view import run_view
from graphrag_eval_lc.view.run_view import GateLine


def result(template: str, question: str, score: float | None, **more: Any) -> dict[str, Any]:
    """Return a result; without a score it has failed."""
    failed = {"status": "error", "error": f"{question} is away", "steps_score": 0.0}
    base = {"template_id": template, "question_id": question, "question_text": f"What of {question}?"}
    return {**base, **(failed if score is None else {"status": "success", "steps_score": score}), **more}


def html_of(*results: dict[str, Any], metrics: tuple[str, ...] = (), **options: Any) -> str:
    return run_html("A run", run_view(results, metrics=metrics, **options))


def rows_of(html: str, caption: str) -> list[list[str]]:
    """Return the cells of the table with a caption, row by row."""
    table = next(part for part in html.split("<table>") if f">{caption}<" in part)
    rows = re.findall(r"<tr>(.*?)</tr>", table)
    return [[re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)] for row in rows]


def test_failures_come_first_then_the_worst_templates() -> None:
    html = html_of(result("good", "q1", 1.0), result("bad", "q2", 0.25), result("good", "q3", None))
    assert re.findall(r"bold\">([^<]*)</caption>", html) == [
        "A run (means over all questions, failed ones count as 0)",
        "Why questions failed",
        "The worst questions",
        "Templates, the worst first",
    ]
    assert rows_of(html, "The worst questions")[1:] == [
        ["q3", "What of q3?", "error", "q3 is away"],
        ["q2", "What of q2?", "0.250", ""],
    ]
    rows = rows_of(html, "Templates, the worst first")[1:]
    assert [row[:4] for row in rows] == [["bad", "1", "0", "0.250"], ["good", "2", "1", "0.500"]]


def test_facts_begin_with_the_headline_and_the_gates() -> None:
    gates = [GateLine("passed", "fine"), GateLine("failed", "tokens <5>")]
    facts = rows_of(html_of(result("t", "q1", 1.0), gates=gates), "A run")
    assert facts[:3] == [
        ["result", "1 of 1 right · steps_score 1.000"],
        ["gates", "1 of 2 passed"],
        ["gate failed", "tokens &lt;5&gt;"],
    ]


def test_without_failures_or_scores_the_tables_are_omitted() -> None:
    assert "worst questions" not in html_of(result("t", "q1", 1.0))
    assert html_of({"template_id": "t", "question_id": "q"}).count("<table>") == 1
    assert html_of().count("<table>") == 1


def many(number: int, templates: int) -> Iterator[dict[str, Any]]:
    attack = "<script>alert(1)</script>\x1b" * 1000
    for n in range(number):
        yield result(f"t{n % templates}{attack}", f"q{n}{attack}", n % 3 / 2, question_text=attack, error=None)


@pytest.mark.full
def test_html_of_ten_thousand_questions_is_small() -> None:
    short: Any = [
        {**each, "question_id": each["question_id"][:99], "template_id": each["template_id"][:99]}
        for each in many(10_000, 1000)
    ]
    results: Any = Results(short)
    run = BenchmarkRun(compute_aggregates(results), results=results, responses=[])
    pages = [run._repr_html_(), results._repr_html_()]
    assert max(map(len, pages)) < 20_000
    assert [page.count("<script") for page in pages] == [0, 0]
    assert "and 988 better templates" in pages[0]
    assert "more that are not right" in pages[0]


def test_long_ids_and_texts_are_truncated() -> None:
    assert len(html_of(*many(50, 20))) < 25_000


def test_only_the_first_means_are_shown_if_there_are_many() -> None:
    own_scores = {f"tone_{n:02}": 0.5 for n in range(30)}
    rows = rows_of(html_of(result("t", "q", 1.0, **own_scores), metrics=tuple(own_scores)), "A run")
    means = [row for row in rows if row[0].startswith(("mean", "more"))]
    assert (len(means), means[0], means[-1]) == (
        13,
        ["mean steps_score", "1.000"],
        ["more", "19 means in the aggregates"],
    )
