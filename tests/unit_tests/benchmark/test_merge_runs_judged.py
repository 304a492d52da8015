"""Merging judged runs: verdicts are kept, and no judgement is paid for twice."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.judged_runs import agent, config_of, judged_dataset, judgement
from support.openai_stub import OpenAIStub

from graphrag_eval_lc import merge_runs, run_benchmark, score_run
from graphrag_eval_lc.judges.cache import JudgeCache

PRICES = {"gpt-4o-mini": {"input": 1.0, "output": 10.0}, "text-embedding-3-small": {"input": 1.0, "output": 0}}


def spent_in(folder: Path) -> float:
    return JudgeCache(folder / "judge_cache.jsonl").spent()


@pytest.fixture
def parts(
    tmp_path: Path, openai_stub: OpenAIStub, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[Path], dict[str, Any]]:
    """Return two judged shards of six questions, and their config."""
    monkeypatch.chdir(tmp_path)
    Path("qa.json").write_text(json.dumps(judged_dataset(6)))
    openai_stub.answer = judgement
    config = {**config_of(openai_stub), "prices": PRICES}
    folders = [Path(f"night-{number}-of-2") for number in (1, 2)]
    for number, folder in enumerate(folders, start=1):
        shard = f"{number}/2"
        run_benchmark(agent, "qa.json", output_dir=folder, config=config, max_cost=4.0, shard=shard, progress="off")
    return folders, config


def test_verdicts_and_costs_are_kept(parts: Any, openai_stub: OpenAIStub) -> None:
    folders, _ = parts
    asked = len(openai_stub.requests)
    merged = merge_runs(folders, output_dir="night")
    assert len(openai_stub.requests) == asked
    assert merged.stopped is None
    assert all("answer_correctness_reason" in result for result in merged.results)
    totals = [json.loads((folder / "run.json").read_bytes())["totals"] for folder in folders]
    judges = [key for key in totals[0] if key.endswith("cost")]
    assert judges
    for key in judges:
        assert merged.aggregates["totals"][key] == pytest.approx(sum(each[key] for each in totals))
    assert spent_in(Path("night")) == pytest.approx(sum(map(spent_in, folders)))
    again = merge_runs([*folders, "night"], output_dir="again")
    assert again.aggregates == merged.aggregates
    assert spent_in(Path("again")) == pytest.approx(spent_in(Path("night")))


@pytest.mark.full
def test_killed_shard_is_judged_by_score_without_paying_twice(parts: Any, openai_stub: OpenAIStub) -> None:
    folders, config = parts
    whole = merge_runs(folders, output_dir="whole")
    record = json.loads((folders[1] / "run.json").read_bytes())
    del record["totals"]
    (folders[1] / "run.json").write_text(json.dumps(record))
    merged = merge_runs(folders, output_dir="night")
    assert merged.stopped is not None
    assert merged.stopped["reason"] == "not scored"
    assert not Path("night/results.jsonl").exists()
    asked = len(openai_stub.requests)
    assert score_run("night", config=config).aggregates == whole.aggregates
    assert len(openai_stub.requests) == asked
