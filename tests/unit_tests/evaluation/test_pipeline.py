"""Samples are scored as they arrive, off the event loop, and only their numbers stay in memory."""

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.evaluation.events import RunEvent
from graphrag_eval_lc.evaluation.pipeline import Pipeline, judges_of
from graphrag_eval_lc.evaluation.samples import Sample
from graphrag_eval_lc.prices import Pricing
from graphrag_eval_lc.run_folder import ResultsFile

TEMPLATE: Any = {"template_id": "t"}
STEP = {"name": "s", "args": {}, "id": "c", "status": "success", "output": "1"}


def sample(position: int, repeat: int = 1) -> Sample:
    question: Any = {
        "id": f"q{position}",
        "question_text": "?",
        "reference_steps": [[{"name": "s", "output": "1"}]],
    }
    return Sample(position, TEMPLATE, question, repeat)


def response(position: int, **keys: Any) -> Any:
    return {"question_id": f"q{position}", "status": "success", "actual_steps": [STEP], **keys}


def pipeline_of(*, repeats: int = 1, file: ResultsFile | None = None, notify: Any = lambda event: None) -> Pipeline:
    return Pipeline(EvaluationConfig(), [TEMPLATE], repeats=repeats, file=file, notify=notify, pricing=Pricing())


def test_results_are_written_in_order_and_not_kept_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    with ResultsFile(path) as file:
        pipeline = pipeline_of(file=file)
        for position in (1, 0):
            pipeline.add(sample(position), response(position))
        pipeline.finish()
    assert [json.loads(line)["question_id"] for line in path.read_text().splitlines()] == ["q0", "q1"]
    assert pipeline.kept() == []


def test_failed_judges_in_existing_results_are_a_warning() -> None:
    pipeline = pipeline_of()
    result: Any = {"template_id": "t", "question_id": "q0", "status": "success", "tone_error": "no"}
    pipeline.keep(sample(0), result)
    assert pipeline.warnings() == ["a judge or a metric failed in 1 of 1 result; the first is q0, tone_error: no"]


@pytest.mark.parametrize(
    ("outputs", "artifact", "warning"),
    [
        (
            ["1. Oslo"] * 3,
            None,
            "3 of 3 outputs of sparql_query cannot be compared (the last one is a text without results: '1. Oslo'); "
            'return JSON, or also the rows as an artifact (response_format="content_and_artifact") and '
            "`steps: {outputs: {sparql_query: {artifact: true}}}` in the config",
        ),
        (
            ["1. Oslo", "- Oslo", "Oslo?", '["Oslo"]', "[]"],
            [{"name": "Oslo"}],
            "3 of 5 outputs of sparql_query cannot be compared (the last one is a text without results: 'Oslo?'); "
            "the tool returns artifacts: perhaps `steps: {outputs: {sparql_query: {artifact: true}}}` in the config",
        ),
        (["1. Oslo", "- Oslo"], None, None),
        (["Error executing query: timeout", "{}", "Query failed: timeout"], None, None),
        (["1. Oslo"] * 3 + ["[]"] * 4, None, None),
    ],
)
def test_tools_that_return_texts_for_the_model_are_a_warning(outputs: Any, artifact: Any, warning: str | None) -> None:
    pipeline = pipeline_of()
    for position, output in enumerate(outputs):
        asked = sample(position)
        asked.question["reference_steps"] = [[{"name": "sparql_query", "output": '[{"name": "Bergen"}]'}]]
        step = {**STEP, "name": "sparql_query", "output": output, "artifact": artifact}
        pipeline.add(asked, response(position, actual_steps=[step]))
    assert pipeline.warnings() == ([] if warning is None else [warning])


def test_each_score_is_an_event() -> None:
    events: list[RunEvent] = []
    pipeline = pipeline_of(repeats=2, notify=events.append)
    paused = "the run is paused (interrupted): it waits to be resumed"
    pipeline.add(sample(0, 2), response(0))
    pipeline.add(sample(1, 1), response(1, actual_steps=[]))
    pipeline.add(sample(1, 2), response(1, actual_steps=[], capture_warnings=[paused]))
    first, second, third = (dict(event.fields) for event in events)
    assert third["reason"].endswith(f": {paused}")
    assert first == {"question_id": "q0", "repeat": 2, "status": "success", "steps_score": 1.0, "reason": None}
    assert "did not call" in second.pop("reason")
    assert second == {"question_id": "q1", "repeat": 1, "status": "success", "steps_score": 0.0}


# --- off the event loop ----------------------------------------------------------------------------------------------


async def test_scoring_does_not_block_the_event_loop() -> None:
    release = threading.Event()
    pipeline = pipeline_of(notify=lambda event: release.wait(30))
    pipeline.begin(room=10)
    for position in range(5):
        await asyncio.wait_for(pipeline.aadd(sample(position), response(position)), 30)
    release.set()
    await pipeline.aclose()
    assert len(pipeline.kept()) == 5


async def test_adding_waits_if_too_many_responses_are_unscored() -> None:
    release = threading.Event()
    pipeline = pipeline_of(notify=lambda event: release.wait(30))
    pipeline.begin(room=2)

    async def add(position: int) -> None:
        await pipeline.aadd(sample(position), response(position))

    adding = [asyncio.create_task(add(position)) for position in range(8)]
    await asyncio.wait(adding, timeout=0.2)
    assert not all(task.done() for task in adding)
    release.set()
    await asyncio.wait_for(asyncio.gather(*adding), 30)
    await pipeline.aclose()


async def test_failed_scoring_is_raised_at_the_end_and_blocks_nothing() -> None:
    events: list[str] = []

    def fail(event: RunEvent) -> None:
        events.append(event.kind)
        raise OSError("the disk is full")

    pipeline = pipeline_of(notify=fail)
    pipeline.begin(room=1)
    for position in range(10):
        await asyncio.wait_for(pipeline.aadd(sample(position), response(position)), 30)
    with pytest.raises(OSError, match="the disk is full"):
        await pipeline.aclose()
    assert events == ["result_scored", "warning"]


# --- judges ----------------------------------------------------------------------------------------------------------


def judged_pipeline(function: Any, **options: Any) -> Pipeline:
    """Return a pipeline with one function as the judge and a concurrency limit of 2."""
    config = EvaluationConfig.model_validate({"judges": {"max_concurrency": 2}})
    judges = judges_of(config, evaluators=[function])
    return Pipeline(config, [TEMPLATE], repeats=1, pricing=Pricing(), judges=judges, **options)


async def grade(question: Any, response: Any) -> float:
    if question["id"] == "q1":
        raise ValueError("nothing to see")
    return 0.5


async def test_each_result_is_judged_and_failures_are_a_warning() -> None:
    pipeline = judged_pipeline(grade)
    await pipeline.aadd_all([sample(position) for position in range(3)], lambda each: response(each.position))
    assert pipeline.stopped() is None
    assert [dict(result).get("grade") for result in pipeline.kept()] == [0.5, None, 0.5]
    assert pipeline.warnings() == [
        "a judge or a metric failed in 1 of 3 results; the first is q1, grade_error: ValueError: nothing to see"
    ]


async def test_concurrent_judgements_stay_within_the_limit() -> None:
    now = most = 0
    both = asyncio.Event()

    async def count(question: Any, response: Any) -> float:
        nonlocal now, most
        now += 1
        most = max(most, now)
        if now == 2:
            both.set()
        await asyncio.wait_for(both.wait(), 30)
        await asyncio.sleep(0.001)
        now -= 1
        return 1.0

    read: list[int] = []

    def read_response(each: Sample) -> Any:
        assert len(read) - len(pipeline.kept()) <= 2
        read.append(each.position)
        return response(each.position)

    pipeline = judged_pipeline(count)
    await pipeline.aadd_all([sample(position) for position in range(20)], read_response)
    assert most == 2
    assert read == list(range(20))


async def test_result_that_cannot_be_kept_stops_the_pipeline_at_once() -> None:
    def fail(event: RunEvent) -> None:
        raise OSError("the disk is full")

    begun: list[int] = []

    def read_response(each: Sample) -> Any:
        begun.append(each.position)
        return response(each.position)

    with pytest.raises(OSError, match="the disk is full"):
        await judged_pipeline(grade, notify=fail).aadd_all([sample(position) for position in range(50)], read_response)
    assert len(begun) < 10
