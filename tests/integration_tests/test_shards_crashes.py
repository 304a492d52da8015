"""Shards that are killed at any moment, resumed and merged lose nothing and repeat no saved answer."""

import json
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

# The attempt is on disk before the agent does anything else.
ANSWERING = """
def surely_note(config):
    descriptor = os.open(os.environ["ASKED_FILE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, ("/".join(config["metadata"]["attempt_id"].split("/")[2:]) + "\\n").encode())
    os.fsync(descriptor)
    os.close(descriptor)

@tool
async def look_up(number: str) -> str:
    "Look a value up."
    await asyncio.sleep(0.02)
    return f"value of {number}"

async def answer(state, config: RunnableConfig):
    surely_note(config)
    number = state["messages"][-1].content.split()[-1].strip("?")
    text = await look_up.ainvoke({"number": number})
    if int(number[1:]) % 20 == 7:
        raise ValueError(f"nothing is known of {number}")
    return {"messages": [AIMessage(text * (5_000 if int(number[1:]) % 20 == 3 else 1))]}

graph = graph_of(answer)
"""
KILLED_RUNS = int(os.environ.get("GRAPHRAG_EVAL_LC_KILLED_RUNS", "4")) // 2  # `make test-kills` uses 50
QUESTIONS = 120
FAILING = QUESTIONS // 20
OF = 3

Key = tuple[str, int]


class ShardsOnDisk:
    """The shards of a run, each in a separate process that is killed and restarted.

    Args:
        run: The run whose folder contains the shards; its output is the merged run.
    """

    def __init__(self, run: Any) -> None:
        self._run = run
        self.folders = [run.folder / f"night-{number}-of-{OF}" for number in range(1, OF + 1)]
        self._known: list[tuple[int, set[Key]]] = []
        self.kills = 0

    def start(self, number: int) -> Any:
        """Start or resume the shard with this number, counted from 0."""
        options = ("--output", str(self.folders[number]), "--shard", f"{number + 1}/{OF}", "-j", "4")
        return self._run.start(self._run.command(*options))

    def kill(self, number: int, process: Any) -> None:
        """Kill a shard and record the answers written by then, which must never be run again."""
        self.kills += self._run.kill(process)
        self._known.append((self._run.attempt_count, answered_in(self.folders[number])))

    def check_no_known_answer_was_rerun(self) -> None:
        asked = self._run.attempts()
        for position, known in self._known:
            assert not known & set(asked[position:])


def answered_in(folder: Path) -> set[Key]:
    path = folder / "responses.jsonl"
    keys: set[Key] = set()
    for line in path.read_bytes().splitlines(keepends=True) if path.exists() else ():
        if line.endswith(b"\n"):
            record = json.loads(line)
            keys |= set() if record.get("interrupted") else {(record["question_id"], record.get("repeat", 1))}
    return keys


@pytest.mark.full
@pytest.mark.parametrize("seed", range(KILLED_RUNS))
def test_repeatedly_killed_shards_merge_to_the_whole_run(run_on_disk: Any, seed: int) -> None:
    draw = random.Random(seed)
    run = run_on_disk(ANSWERING, QUESTIONS)
    shards = ShardsOnDisk(run)
    is_merged_early = seed % 2 == 1  # then the merged run is resumed instead of the shards
    for _ in range(2):
        processes = [shards.start(number) for number in range(OF)]
        for number in draw.sample(range(OF), OF):
            wanted = run.attempt_count + draw.randint(1, 25)
            run.wait(processes[number], lambda wanted=wanted: run.attempt_count >= wanted)
            time.sleep(draw.uniform(0.0, 0.02))
            shards.kill(number, processes[number])
    assert shards.kills >= 1
    if not is_merged_early:
        for process in [shards.start(number) for number in range(OF)]:
            _, stderr = process.communicate(timeout=90)
            assert process.returncode == 0, stderr
    there = [folder for folder in shards.folders if folder.exists()]  # in the order of a shell pattern
    merge = ["merge", *map(str, there), "--output", str(run.output), "--no-report"]
    answered: set[Key] = set().union(*map(answered_in, shards.folders))
    outcome = run.run(merge)
    assert outcome.returncode == (0 if len(answered) == QUESTIONS else 1), outcome.stderr
    assert answered_in(run.output) == answered
    if is_merged_early:
        assert outcome.returncode == 0 or "The run is not complete" in outcome.stderr
        position = run.attempt_count
        assert run.run(run.command("-j", "8")).returncode == 0
        assert not answered & set(run.attempts()[position:])
    shards.check_no_known_answer_was_rerun()
    run.check_complete(errors=FAILING)
