"""A comparison in a notebook: metrics, flipped questions, and a bounded size."""

from collections.abc import Callable
from typing import Any

from graphrag_eval_lc import compare_runs

Scored = Callable[..., list[dict[str, Any]]]

ATTACK = "</td><script>alert(1)</script>\x1b[2J"


def test_flipped_questions_are_listed_with_their_reasons(scored: Scored) -> None:
    html = compare_runs(scored(1.0, 0.0, 1.0), scored(1.0, 1.0, None))._repr_html_()
    assert "B: 1 broken, 1 fixed" in html
    assert "broken: away" in html
    assert "fixed" in html
    assert "What about 2?" in html


def test_without_flips_there_is_no_table(scored: Scored) -> None:
    assert "broken" not in compare_runs(scored(1.0, 0.0), scored(1.0, 0.0))._repr_html_()


def test_column_of_a_single_other_run_has_its_letter(scored: Scored) -> None:
    one, other = scored(1.0, 0.0), scored(0.0, 1.0)
    assert ">B</th>" in compare_runs(one, other)._repr_html_()
    several = compare_runs(one, other, one)._repr_html_()
    assert ">other</th>" in several
    assert ">C: 0.500</td>" in several


def test_costs_are_not_rendered_as_formulas(scored: Scored) -> None:
    html = compare_runs(scored(1.0, cost=0.5), scored(1.0, cost=0.25), metrics=["cost"])._repr_html_()
    assert "$" in html
    assert html.startswith('<div class="tex2jax_ignore mathjax_ignore">')


def test_unchanged_metrics_are_only_named_if_there_are_many(scored: Scored) -> None:
    own = {f"tone_{n:02}": 0.5 for n in range(20)}
    runs = scored(1.0, 0.0, **own), scored(0.0, 0.0, **own)
    html = compare_runs(*runs, metrics=["steps_score", *own])._repr_html_()
    assert "The same: tone_00, tone_01" in html
    assert html.count("<tr>") < 8


def test_hostile_runs_of_any_number_stay_small_text(scored: Scored) -> None:
    def run(shift: int) -> list[dict[str, Any]]:
        own = {f"m{n}{ATTACK * 50}": (n + shift) % 3 / 2 for n in range(30)}
        results = scored(*[(n + shift) % 2 for n in range(30)], templates=[ATTACK * 99] * 30, **own)
        return [
            {**each, "question_id": each["question_id"] + ATTACK * 50, "question_text": ATTACK * 99} for each in results
        ]

    runs = [run(n) for n in range(12)]
    metrics = ["steps_score", *(key for key in runs[0][0] if key.startswith("m"))]
    html = compare_runs(*runs, labels=[f"{n}{ATTACK}" for n in range(12)], metrics=metrics)._repr_html_()
    assert "<script" not in html
    assert "\x1b" not in html
    assert len(html) < 100_000
    assert "and 4 runs more" in html
