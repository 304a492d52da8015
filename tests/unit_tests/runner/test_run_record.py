import platform
from functools import partial
from typing import Any

from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.runner.run_record import RunRecord

DATASET: list[Any] = [{"template_id": "t", "questions": [{"id": "q", "question_text": "x"}]}]


def test_digest_changes_with_the_dataset_and_not_with_its_path() -> None:
    first, second = (RunRecord.begin(None, path, DATASET, EvaluationConfig()) for path in ("a.yaml", "b.yaml"))
    other = RunRecord.begin(None, "a.yaml", [*DATASET, {"template_id": "u"}], EvaluationConfig())
    assert first.dataset["sha256"] == second.dataset["sha256"] != other.dataset["sha256"]
    assert first.run_id != second.run_id


def test_what_is_not_known_is_absent() -> None:
    record = RunRecord.begin(None, DATASET, DATASET, EvaluationConfig()).as_dict()
    assert record.keys().isdisjoint({"label", "agent", "totals"})
    assert "path" not in record["dataset"]
    assert "finished" not in record["times"]
    assert record["versions"]["python"] == platform.python_version()


def test_agent_is_named_by_its_spec_or_its_type() -> None:
    def factory() -> None: ...

    def named(agent: object) -> str | None:
        return RunRecord.begin(None, "d", DATASET, EvaluationConfig(), agent=agent).agent

    assert named("a.py:b") == "a.py:b"
    assert named(factory) == f"{__name__}:test_agent_is_named_by_its_spec_or_its_type.<locals>.factory"
    assert named(partial(int, "3", base=8)) == "builtins:int('3', base=8)"
    assert named(3) == "builtins:int"
