"""A run in shards: each runs its questions into its own folder, which describes the whole run."""

import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from support.scored_runs import record_in

from graphrag_eval_lc import run_benchmark, score_run
from graphrag_eval_lc.benchmark.run_benchmark import plan_benchmark
from graphrag_eval_lc.benchmark.run_options import CheckedOptions
from graphrag_eval_lc.errors import RunFolderError

QUESTIONS = [{"id": f"q{number}", "question_text": f"{number}?"} for number in range(12)]
DATASET: list[Any] = [{"template_id": "t", "questions": QUESTIONS}]


def answer(question: str) -> str:
    return "fine"


def asked(dataset: list[Any] = DATASET, **options: Any) -> list[tuple[str, int]]:
    return [sample.key for sample in plan_benchmark(answer, dataset, **options).to_ask]


def test_every_sample_is_in_one_shard() -> None:
    parts = [asked(shard=f"{number}/5", repeats=2) for number in range(1, 6)]
    assert sorted(chain(*parts)) == sorted(asked(repeats=2))
    assert any(
        {repeat for key, repeat in part if key == "q0"} == {1} for part in parts
    )  # repeats are in other shards, too


def test_shard_does_not_depend_on_order_or_other_questions() -> None:
    fewer: list[Any] = [{"template_id": "t", "questions": QUESTIONS[:6][::-1]}]
    all_of_them, some = asked(shard="2/3"), asked(fewer, shard="2/3")
    assert some
    assert set(some) == {key for key in all_of_them if key in asked(fewer)}


def test_record_has_the_questions_and_limits_of_the_whole_run(tmp_path: Path) -> None:
    for number in (1, 2):
        options: dict[str, Any] = {"shard": f"{number}/2", "max_tokens": 1_001, "requests_per_minute": 6e4}
        run_benchmark(answer, DATASET, output_dir=tmp_path / str(number), progress="off", **options)
    first, second = (record_in(tmp_path / number) for number in ("1", "2"))
    assert (first["shard"], second["shard"]) == ({"number": 1, "of": 2}, {"number": 2, "of": 2})
    assert list(first["questions"]) == [question["id"] for question in QUESTIONS]
    assert first["limits"]["max_tokens"] == 1_001
    assert first["limits"]["requests_per_minute"] == 6e4
    assert first["run_id"] != second["run_id"]


def test_shard_has_its_share_of_the_limits() -> None:
    limits: dict[str, Any] = {"requests_per_minute": 80, "max_tokens": 10, "max_cost": 2.0, "max_failures": 9}
    part = CheckedOptions(**{"shard": "1/8", "max_time": 60, "max_concurrency": 7, **limits}).in_shard()
    assert (part.requests_per_minute, part.max_tokens, part.max_cost) == (10, 2, 0.25)
    assert str(part.failure_limit) == "2"
    assert (part.max_time, part.max_concurrency) == (60, 7)
    whole = CheckedOptions(**limits)
    assert whole.in_shard() is whole


@pytest.mark.full
def test_another_shard_in_the_folder_is_rejected_even_with_force(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run_benchmark(answer, DATASET, output_dir=folder, shard="1/2", progress="off")
    for shard, force, part in (
        ("2/2", False, "shard 1/2 of a run, and shard 2/2 was to be asked"),
        ("1/3", True, "shard 1/2 of a run, and shard 1/3 was to be asked"),
        (None, True, "shard 1/2 of a run, and the whole run was to be asked"),
    ):
        with pytest.raises(RunFolderError, match=part):
            run_benchmark(answer, DATASET, output_dir=folder, shard=shard, force=force, progress="off")
    run_benchmark(answer, DATASET, output_dir=tmp_path / "whole", progress="off")
    with pytest.raises(RunFolderError, match="holds a whole run, and shard 1/2 was"):
        run_benchmark(answer, DATASET, output_dir=tmp_path / "whole", shard="1/2", progress="off")


@pytest.mark.full
def test_shard_is_resumed_and_rescored_alone(tmp_path: Path) -> None:
    (tmp_path / "qa.json").write_text(json.dumps(DATASET))
    calls: list[str] = []

    def recording(question: str) -> str:
        calls.append(question)
        return "fine"

    options: dict[str, Any] = {"output_dir": tmp_path / "run", "shard": "1/2", "progress": "off"}
    first = run_benchmark(recording, tmp_path / "qa.json", **options)
    again = run_benchmark(recording, tmp_path / "qa.json", **options)
    assert len(calls) == len(again.results) == len(first.results) > 0
    scored = score_run(tmp_path / "run")
    assert scored.warnings == []
    assert [result["question_id"] for result in scored.results] == [each["question_id"] for each in first.results]
