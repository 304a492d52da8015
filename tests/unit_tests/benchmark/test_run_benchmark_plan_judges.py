"""The planned judge requests are the ones that are sent later; planning sends none."""

import json
from pathlib import Path
from typing import Any

from support.judged_runs import CHAT_REQUESTS, REQUESTS, agent, config_of, judged_dataset, judged_responses
from support.openai_stub import OpenAIStub

from graphrag_eval_lc import run_benchmark, score_responses, score_run
from graphrag_eval_lc.benchmark.run_benchmark import _LIKE_THE_REFERENCE as LIKE_THE_REFERENCE
from graphrag_eval_lc.benchmark.run_benchmark import plan_benchmark
from graphrag_eval_lc.benchmark.score_responses import plan_score_run, plan_scoring

PRICES = {"gpt-4o-mini": {"input": 1.0, "output": 10.0}, "text-embedding-3-small": {"input": 1.0, "output": 0}}


def test_scoring_sends_the_planned_number_of_requests(judge: OpenAIStub, tmp_path: Path) -> None:
    options: dict[str, Any] = {"config": config_of(judge, prices=PRICES), "output_dir": tmp_path}
    plan = plan_scoring(judged_dataset(3), judged_responses(3), **options)
    assert plan is not None
    assert judge.requests == []
    assert list(tmp_path.iterdir()) == []
    score_responses(judged_dataset(3), judged_responses(3), **options)
    assert plan.requests == len(judge.requests) == 3 * REQUESTS
    sent = sum(len(json.dumps(request.body, ensure_ascii=False).encode()) for request in judge.chat_requests)
    assert 0 < plan.input_tokens < sent
    assert plan.output_tokens == 3 * CHAT_REQUESTS * 200
    assert plan.cost is not None
    assert plan.cost > 0


def test_cached_judgements_are_not_planned(judge: OpenAIStub, tmp_path: Path) -> None:
    config = config_of(judge, prices=PRICES)
    score_responses(judged_dataset(2), judged_responses(2), config=config, output_dir=tmp_path)
    judge.requests.clear()
    plan = plan_score_run(tmp_path, dataset=judged_dataset(3), config=config)
    assert plan is not None
    assert (plan.requests, plan.known, plan.cost) == (0, 2 * REQUESTS, 0.0)
    assert plan.sentences() == [f"The judges would ask nothing ({2 * REQUESTS} more answers are known already)."]
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    plan_score_run(tmp_path, dataset=judged_dataset(3), config=config, judge_cache=False)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert judge.requests == []
    score_run(tmp_path, dataset=judged_dataset(3), config=config)
    assert judge.requests == []


def test_plan_assumes_that_the_agent_follows_the_references(judge: OpenAIStub, tmp_path: Path) -> None:
    config = config_of(judge, prices=PRICES)
    options: dict[str, Any] = {"config": config, "output_dir": tmp_path, "progress": "off"}
    run_benchmark(agent, judged_dataset(2), limit=1, **options)
    asked = len(judge.requests)
    plan = plan_benchmark(agent, judged_dataset(2), **{**options, "output_dir": tmp_path / "new"})
    assert plan.judging is not None
    assert plan.judging.requests == 2 * asked
    assert LIKE_THE_REFERENCE in plan.judging.sentences()
    assert len(judge.requests) == asked
    assert not (tmp_path / "new").exists()


def test_nothing_is_planned_without_judges() -> None:
    assert plan_scoring(judged_dataset(1), judged_responses(1)) is None
    plan = plan_benchmark(agent, judged_dataset(1))
    assert (plan.judging, plan.agent_cost) == (None, None)
