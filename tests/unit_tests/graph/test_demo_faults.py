"""The report explains the mistakes planted in the demo: a table of cases."""

from pathlib import Path

import pytest
import yaml

pytest.importorskip("rdflib")
pytest.importorskip("pyoxigraph")
pytest.importorskip("langgraph")

from graphrag_eval_lc import BenchmarkRun, run_benchmark
from graphrag_eval_lc.demo import DATASET_PATH, VOCABULARY_PATH
from graphrag_eval_lc.demo.agent import create_demo_agent

FAULTS = yaml.safe_load((Path(__file__).parent / "vectors/demo_faults.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def run() -> BenchmarkRun:
    config = {"graph": {"vocabulary": str(VOCABULARY_PATH)}}
    return run_benchmark(create_demo_agent(), DATASET_PATH, config=config, progress="off")


def test_all_wrong_questions_are_in_the_table(run: BenchmarkRun) -> None:
    wrong = {key for group in run.view().groups for key in group.keys}
    assert wrong == {fault["question"] for fault in FAULTS}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault["question"])
def test_planted_fault_is_explained(run: BenchmarkRun, fault: dict[str, str]) -> None:
    (kind,) = (group.kind for group in run.view().groups if fault["question"] in group.keys)
    assert kind == fault["kind"]
    (result,) = (each for each in run.results if each["question_id"] == fault["question"])
    diagnoses = [each for group in result["steps_diagnosis"] for each in group]
    reasons = [
        each.get("query", {}).get("sentence", "") if fault.get("query") else each["reason"] for each in diagnoses
    ]
    assert any(fault["says"] in reason for reason in reasons), reasons
