"""Facts about samples that other processes find: the same, in the same order, whatever happens to the processes."""

import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.report_samples import result, step, table

from graphrag_eval_lc import write_report
from graphrag_eval_lc.aggregation.sample_values import Metrics
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.registry.custom_metrics import note_recorded, recorded_only_here
from graphrag_eval_lc.report import sample_facts
from graphrag_eval_lc.report.sample_facts import Facts, SharedFacts
from graphrag_eval_lc.view.samples import seen_samples

pytestmark = pytest.mark.full

CONFIG = EvaluationConfig()
KINDS: list[Any] = [
    result(step("lookup", "x"), step("sparql_query", table("T1", "T2")), total_tokens=7),
    result(step("sparql_query", table("T1")), answer_f1=0.5, answer_correctness_cost=0.01),
    result(step("sparql_query", table("T3", "T4")), custom_metrics=["tone"], tone=0.25, tone_reason="calm"),
    result(step("sparql_query", "no table"), error="TimeoutError: away", capture_warnings=["line 7 is cut"]),
]


@pytest.fixture(autouse=True)
def _few_samples_start_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_facts, "FEWEST", 3)
    monkeypatch.setattr(sample_facts, "_MOST_IN_BATCH", 4)
    monkeypatch.setattr("loky.cpu_count", lambda: 3)  # also where there is only one


def results_of(number: int, **more: Any) -> list[dict[str, Any]]:
    return [{**KINDS[at * len(KINDS) // number], "question_id": f"q{at}", **more} for at in range(number)]


def found_by(shared: SharedFacts[int], metrics: Metrics, results: list[dict[str, Any]]) -> Iterator[tuple[int, Facts]]:
    for at, sample in enumerate(seen_samples(results, metrics)):
        yield from shared.add(sample, at)
    yield from shared.rest()


def facts_of(results: list[dict[str, Any]], *, is_shared: bool) -> tuple[list[tuple[int, Facts]], bool]:
    """Return the facts, and whether processes found some until the end."""
    metrics = Metrics(CONFIG)
    with SharedFacts[int](CONFIG, metrics, ("tone_error",), is_shared=is_shared) as shared:
        return list(found_by(shared, metrics, results)), shared._processes is not None


def test_other_processes_find_the_same_in_the_same_order() -> None:
    results = results_of(60)
    alone, has_none = facts_of(results, is_shared=False)
    shared, has_some = facts_of(results, is_shared=True)
    assert (has_none, has_some) == (False, True)
    assert [at for at, _ in shared] == list(range(60))
    assert shared == alone


def test_the_page_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = []
    for fewest in (3, 1_000):
        monkeypatch.setattr(sample_facts, "FEWEST", fewest)
        page = write_report(results_of(40), tmp_path / "report.html").read_text(encoding="utf-8")
        pages.append(re.sub(r"\d{4}-\d\d-\d\dT[\d:]+\+00:00", "", page))  # when it was written
    assert pages[0] == pages[1]


def test_the_facts_are_found_here_if_the_processes_are_killed() -> None:
    results, metrics, found = results_of(60), Metrics(CONFIG), []
    with SharedFacts[int](CONFIG, metrics, ()) as shared:
        for each in found_by(shared, metrics, results):
            found.append(each)
            if len(found) == 4 and shared._processes is not None:
                for process in list(shared._processes._processes):
                    os.kill(process, signal.SIGTERM)
        assert shared._processes is None
    assert found == facts_of(results, is_shared=False)[0]


def test_results_that_cannot_be_sent_are_read_here() -> None:
    found, has_processes = facts_of(results_of(20, metadata=threading.Lock()), is_shared=True)
    assert (len(found), has_processes) == (20, False)


def test_metrics_that_only_this_process_knows_are_read_here() -> None:
    with recorded_only_here():
        note_recorded([("tone", {"kind": "score"})])
        found, has_processes = facts_of(results_of(20), is_shared=True)
    assert (len(found), has_processes) == (20, False)
