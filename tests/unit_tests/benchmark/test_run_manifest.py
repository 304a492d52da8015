"""The contents of run.json."""

import json
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from graphrag_eval_lc.benchmark.run_manifest import (
    Record,
    agent_name,
    begun_record,
    ended,
    new_record,
    resumed,
    scored_again,
)
from graphrag_eval_lc.benchmark.run_options import CheckedOptions
from graphrag_eval_lc.config import EvaluationConfig

DATASET: list[Any] = [{"template_id": "t", "questions": [{"id": "q", "question_text": "x"}]}]
QUESTIONS: list[Any] = DATASET[0]["questions"]


def begin(source: object = DATASET, dataset: list[Any] = DATASET, **described: Any) -> Record:
    return new_record(source, dataset, dataset[0]["questions"], EvaluationConfig(), **described)


def started(agent: object = "agent.py:graph", **options: Any) -> dict[str, Any]:
    pairs: Any = [(DATASET[0], QUESTIONS[0])]
    return begun_record(agent, "qa.yaml", DATASET, pairs, CheckedOptions(**options))


# --- the run ---------------------------------------------------------------------------------------------------------


def test_digest_depends_on_the_dataset_but_not_its_path() -> None:
    first, second = (begin(path)["dataset"] for path in ("a.yaml", "b.yaml"))
    other = begin("a.yaml", [*DATASET, {"template_id": "u"}])["dataset"]
    assert first["sha256"] == second["sha256"] != other["sha256"]
    assert (first["path"], first["templates"], first["questions"]) == ("a.yaml", 1, 1)
    assert begin()["run_id"] != begin()["run_id"]


def test_earlier_sessions_keep_different_capture_options() -> None:
    earlier = started(capture={"max_output_chars": 9})
    now = begin(capture={"max_output_chars": 5})
    assert resumed(now, earlier)["times"]["sessions"][0]["capture"] == earlier["capture"]
    same = begin(capture=earlier["capture"])
    assert "capture" not in resumed(same, earlier)["times"]["sessions"][0]


def test_record_has_all_options() -> None:
    record = started(
        label="night",
        href="https://ci.example/1",
        tags=["a", "b"],
        sample=5,
        seed=1,
        template_ids=["t"],
        repeats=3,
        agent_config={"recursion_limit": 7},
        max_concurrency=4,
        max_failures="5%",
        max_tokens=10,
    )
    assert (record["label"], record["href"], record["tags"]) == ("night", "https://ci.example/1", ["a", "b"])
    assert record["selection"] == {"template_ids": ["t"], "sample": 5, "seed": 1}
    assert (record["repeats"], record["agent"], record["agent_config"]) == (3, "agent.py:graph", {"recursion_limit": 7})
    assert record["limits"] == {
        "max_concurrency": 4,
        "requests_per_minute": None,
        "timeout": 600.0,
        "max_retries": 2,
        "max_failures": "5%",
        "max_tokens": 10,
        "max_time": None,
        "max_cost": None,
    }
    assert list(record["questions"]) == ["q"]
    json.dumps(record, allow_nan=False)


# --- the agent -------------------------------------------------------------------------------------------------------


class Store:
    pass


def test_agent_name_is_its_spec_or_type() -> None:
    def factory() -> None: ...

    assert agent_name("a.py:b") == "a.py:b"
    assert agent_name(factory) == f"{__name__}:test_agent_name_is_its_spec_or_type.<locals>.factory"
    assert agent_name(partial(int, "3", base=8)) == "builtins:int('3', base=8)"
    assert agent_name(3) == "builtins:int"


def test_agent_name_is_the_same_in_each_process() -> None:
    assert agent_name(partial(int, Store())) == f"builtins:int(<{__name__}.Store object>)"
    first, second = (started(agent_config={"configurable": {"store": Store()}}) for _ in range(2))
    assert first["agent_config"] == second["agent_config"]


def test_resumed_run_keeps_its_id_and_its_sessions() -> None:
    earlier = ended(begin(label="first", tags=["a"]), 100.0, {}, {"reason": "interrupted", "left_out": 3})
    record = ended(resumed(begin(label="second"), earlier), 1.0, {})
    assert record["run_id"] == earlier["run_id"]
    assert (record["label"], record["tags"]) == ("second", ["a"])
    sessions = record["times"]["sessions"]
    assert [session.get("stopped", {}).get("reason") for session in sessions] == ["interrupted", None]
    assert record["times"]["started"] == earlier["times"]["started"]
    assert record["times"]["elapsed_sec"] == 101
    assert "stopped" not in record


# --- re-scoring ------------------------------------------------------------------------------------------------------


def test_rescoring_updates_only_its_own_keys() -> None:
    earlier = ended(begin(label="first", agent="a.py:b", judges={"generation": "x"}), 1.0, {"total_tokens": 7})
    earlier |= {"plugins": [], "of_a_later_version": 1}
    other = EvaluationConfig.model_validate({"steps": {"scoring": "all_groups"}})
    now = scored_again(new_record("b.yaml", DATASET, QUESTIONS, other), earlier)
    record = ended(now, 1.0, {"total_tokens": 8}, scorers={"matchers": [], "evaluators": []})
    changed = {key for key in record if record[key] != earlier.get(key)}
    assert changed == {"dataset", "config", "scored", "totals"}
    assert earlier.keys() - record.keys() == {"judges", "plugins"}
    assert datetime.fromisoformat(record["scored"]).utcoffset() == timedelta(0)
