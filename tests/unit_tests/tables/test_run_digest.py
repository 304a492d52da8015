"""What is most worth seeing of results: few templates and questions, however many there are, the worst first."""

from collections.abc import Iterator
from typing import Any

import pytest

from graphrag_eval_lc import BenchmarkRun, compute_aggregates
from graphrag_eval_lc.aggregation import RunValues
from graphrag_eval_lc.registry import MetricSpec, metrics
from graphrag_eval_lc.tables import Results
from graphrag_eval_lc.tables.run_digest import RunDigest


def result(template: str, question: str, score: float | None, **more: Any) -> dict[str, Any]:
    """Return a result; one without a score failed."""
    failed = {
        "status": "error",
        "error": f"{question} is away",
        "steps_score": 0.0,
        "reference_steps": [[{"name": "a"}]],
    }
    scored = {"status": "success", "steps_score": score}
    told = {"template_id": template, "question_id": question, "question_text": f"What of {question}?"}
    return {**told, **(failed if score is None else scored), **more}


def digest_of(*results: dict[str, Any], metrics: tuple[str, ...] = ()) -> RunDigest:
    return RunDigest.of(results, RunValues(metrics=metrics))


def test_templates_stand_with_the_worst_first() -> None:
    digest = digest_of(result("good", "q1", 1.0), result("bad", "q2", 0.25), result("good", "q3", None))
    assert [(line.template_id, line.questions, line.failed, line.mean) for line in digest.templates] == [
        ("bad", 1, 0, 0.25),
        ("good", 2, 1, 0.5),
    ]


def test_worst_questions_are_those_not_in_full_with_their_reasons() -> None:
    digest = digest_of(result("t", "q1", 1.0), result("t", "q2", 0.25), result("t", "q3", None))
    assert [(line.question_id, line.score, line.reason) for line in digest.worst] == [
        ("q3", 0.0, "q3 is away"),
        ("q2", 0.25, ""),
    ]


def test_questions_that_failed_are_the_first_of_the_worst() -> None:
    wrong = [result("t", f"q{number}", 0.0) for number in range(9)]
    unscored = {"template_id": "t", "question_id": "u", "status": "error", "error": "u is away"}
    digest = digest_of(*wrong, result("t", "f", None), unscored)
    assert [(line.question_id, line.score, line.reason) for line in digest.worst[:2]] == [
        ("u", None, "u is away"),
        ("f", 0.0, "f is away"),
    ]
    assert digest.number_of_worse == 11
    alone = digest_of(unscored, {"template_id": "t", "question_id": "v", "status": "success"})
    assert [line.question_id for line in alone.worst] == ["u"]
    assert "u is away" in alone.html()


def test_question_asked_again_is_told_by_the_first_reason() -> None:
    digest = digest_of(result("t", "q", 1.0, repeat=1), result("t", "q", None, repeat=2))
    assert [(line.score, line.reason) for line in digest.worst] == [(0.5, "q is away")]


def test_all_right_shows_no_worst_questions() -> None:
    digest = digest_of(result("t", "q1", 1.0))
    assert digest.worst == []
    assert "worst questions" not in digest.html()


def test_of_a_score_where_less_is_better_the_highest_is_the_worst(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = metrics.RegisteredMetric(
        MetricSpec(key="made_up", lower_is_better=True), lambda question, response: None
    )
    monkeypatch.setitem(metrics.metrics_of_users, "made_up", declared)
    results = [{"template_id": "t", "question_id": f"q{n}", "made_up": n / 4} for n in range(3)]
    digest = digest_of(*results, metrics=("made_up",))
    assert [line.question_id for line in digest.worst] == ["q2", "q1"]


def test_nothing_scored_shows_no_tables() -> None:
    assert digest_of({"template_id": "t", "question_id": "q"}).html() == ""
    assert digest_of().html() == ""


def test_secrets_in_questions_and_reasons_are_masked() -> None:
    key = "sk-proj-" + "aB3dE6gH9jK2mN5p" * 3
    html = digest_of(result("t", "q", None, error=f"401 for {key}", question_text=f"Is {key} right?")).html()
    assert key not in html
    assert "401 for" in html


def many(number: int, templates: int) -> Iterator[dict[str, Any]]:
    attack = "<script>alert(1)</script>\x1b" * 1000
    for n in range(number):
        yield result(f"t{n % templates}{attack}", f"q{n}{attack}", n % 3 / 2, question_text=attack, error=None)


@pytest.mark.full
def test_ten_thousand_questions_in_a_thousand_templates_stay_small() -> None:
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
    assert "more that did not score in full" in pages[0]


def test_ids_and_texts_of_any_length_are_cut() -> None:
    html = digest_of(*many(50, 20)).html()
    assert len(html) < 20_000


def test_many_scores_leave_out_parts_of_others() -> None:
    own = {f"tone_{n:02}": 0.5 for n in range(30)}
    rows = digest_of(result("t", "q", 1.0, **own), metrics=tuple(own)).mean_rows()
    assert len(rows) == 13
    assert rows[0] == ("mean steps_score", "1.000")
    assert rows[-1] == ("more", "19 means in the aggregates")


@pytest.mark.parametrize(
    "diagnosis", [[[{}]], [[{"matched": None, "score": 0}]], [["text"]], [None], {"a": 1}, [[None]]]
)
def test_diagnosis_that_cannot_be_read_gives_no_reason(diagnosis: Any) -> None:
    digest = digest_of(result("t", "q", 0.5, steps_diagnosis=diagnosis, reference_steps=[]))
    assert [line.reason for line in digest.worst] == [""]
    assert "0.500" in digest.html()
