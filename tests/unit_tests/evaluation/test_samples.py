"""The samples of a run: their order, and which are sent again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.evaluation.samples import planned, recorded_samples, samples_of
from graphrag_eval_lc.run_folder import Journal

TEMPLATE: Any = {"template_id": "t"}
QUESTIONS: Any = [(TEMPLATE, {"id": name, "question_text": name}) for name in ("a", "b", "c")]


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "responses.jsonl") as journal:
        journal.add({"question_id": "a", "status": "success"})
        journal.add({"question_id": "b", "status": "error", "error": "E"})
        journal.add({"question_id": "c", "status": "error", "interrupted": True})
        yield journal


def test_repeats_are_interleaved_but_results_are_grouped_by_question() -> None:
    samples = samples_of(QUESTIONS, 2)
    assert [sample.key for sample in samples] == [("a", 1), ("b", 1), ("c", 1), ("a", 2), ("b", 2), ("c", 2)]
    assert [sample.position for sample in samples] == [0, 2, 4, 1, 3, 5]


def test_without_a_journal_all_samples_are_run() -> None:
    plan = planned(samples_of(QUESTIONS, 2), None, retry_errors=True)
    assert (len(plan.to_ask), plan.done, plan.errors, plan.total) == (6, [], 0, 6)


def test_answered_and_failed_samples_are_done_but_interrupted_ones_are_not(journal: Journal) -> None:
    plan = planned(samples_of(QUESTIONS, 1), journal.summary, retry_errors=False)
    assert [sample.key for sample in plan.done] == [("a", 1), ("b", 1)]
    assert [sample.key for sample in plan.to_ask] == [("c", 1)]
    assert plan.errors == 1


def test_failed_samples_can_be_retried(journal: Journal) -> None:
    plan = planned(samples_of(QUESTIONS, 1), journal.summary, retry_errors=True)
    assert [sample.key for sample in plan.to_ask] == [("b", 1), ("c", 1)]
    assert plan.errors == 0


def test_with_more_repeats_only_missing_samples_are_run(journal: Journal) -> None:
    plan = planned(samples_of(QUESTIONS[:1], 3), journal.summary, retry_errors=False)
    assert [sample.key for sample in plan.to_ask] == [("a", 2), ("a", 3)]


def test_done_samples_follow_the_order_of_results(journal: Journal) -> None:
    for repeat in (1, 2):
        for name in "cba":
            journal.add({"question_id": name, "repeat": repeat, "status": "success"})
    plan = planned(samples_of(QUESTIONS, 2), journal.summary, retry_errors=False)
    assert [sample.key for sample in plan.done] == [(name, repeat) for name in "abc" for repeat in (1, 2)]


def test_for_scoring_only_interrupted_responses_count(journal: Journal) -> None:
    plan = planned(samples_of(QUESTIONS, 1), journal.summary, only_scores=True)
    assert [sample.key for sample in plan.done] == [("a", 1), ("b", 1), ("c", 1)]


def test_recorded_responses_set_the_repeats_of_each_question() -> None:
    samples = recorded_samples(QUESTIONS, [("c", 7), ("a", 1), ("c", 2), ("gone", 1)])
    assert [sample.key for sample in samples] == [("a", 1), ("b", 1), ("c", 2), ("c", 7)]
    assert [sample.position for sample in samples] == [0, 1, 2, 3]
