"""Merging parts of a run: which parts belong together, what is kept, and how the merged run resumes."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.scored_runs import record_in

from graphrag_eval_lc import load_run, merge_runs, score_run
from graphrag_eval_lc.benchmark.merge_runs import plan_merge
from graphrag_eval_lc.errors import OptionError, RunFolderError

Part = Callable[..., Path]
Shards = Callable[..., list[Path]]
ALL = [f"q{number}" for number in range(12)]


def rate(question: Any, response: Any) -> float:
    return 1.0


def journal_of(folder: str) -> dict[str, dict[str, Any]]:
    lines = Path(folder, "responses.jsonl").read_text().splitlines()
    return {record["question_id"]: record for record in map(json.loads, lines)}


def write_record(folder: Path, **changes: Any) -> None:
    record = {**record_in(str(folder)), **changes}
    (folder / "run.json").write_text(json.dumps({key: value for key, value in record.items() if value is not None}))


def test_merged_run_is_a_run_like_any_other(shards: Shards, part: Part) -> None:
    folders = shards(label="night", tags=["a"], max_cost=5.0)
    merged = merge_runs(folders, output_dir="night")
    assert merged.stopped is None
    assert merged.warnings == []
    assert [result["question_id"] for result in merged.results] == ALL
    record = record_in("night")
    assert (record["label"], record["tags"], record["limits"]["max_cost"]) == ("night", ["a"], 5.0)
    assert "shard" not in record
    assert [each["shard"] for each in record["merged"]] == ["1/3", "2/3", "3/3"]
    assert [each["run_id"] for each in record["merged"]] == [record_in(str(each))["run_id"] for each in folders]
    assert len(record["times"]["sessions"]) == 3
    seconds = sum(session["elapsed_sec"] for session in record["times"]["sessions"])
    assert record["times"]["elapsed_sec"] == pytest.approx(seconds)
    responses = journal_of("night")
    part("night", max_cost=5.0)
    assert journal_of("night") == responses  # the agent is not called again
    assert record_in("night")["merged"] == record["merged"]
    assert len(record_in("night")["times"]["sessions"]) == 4
    assert len(score_run("night").results) == 12
    assert len(load_run("night").results) == 12


def test_merged_run_resumes_with_missing_questions(shards: Shards, part: Part) -> None:
    folders = shards(max_failures=30)
    some = merge_runs(folders[:2], output_dir="night")
    left = len(journal_of(str(folders[2])))
    message = f"{left} samples of 12 are not answered: shard 3/3 is missing"
    assert some.stopped == {"reason": "missing", "message": message, "left_out": left}
    assert record_in("night")["stopped"] == some.stopped
    assert [warning for warning in load_run("night").warnings if warning] == []
    part("night", max_failures=30)
    assert set(journal_of("night")) == set(ALL)
    assert "stopped" not in record_in("night")
    with pytest.raises(RunFolderError, match=f"the folder has {left} answers that no part has"):
        merge_runs(folders[:2], output_dir="night", overwrite=True)
    assert set(journal_of("night")) == set(ALL)
    assert merge_runs([*folders[:2], "night"], output_dir="all").stopped is None
    replaced = merge_runs(folders[:2], output_dir="night", overwrite=True, force=True)
    assert replaced.stopped == some.stopped


def test_order_of_folders_and_duplicates_do_not_matter(shards: Shards) -> None:
    folders = shards()
    merge_runs(folders, output_dir="a")
    merge_runs([*folders[::-1], folders[0].absolute()], output_dir="b")
    assert Path("a/responses.jsonl").read_bytes() == Path("b/responses.jsonl").read_bytes()
    assert Path("a/results.jsonl").read_bytes() == Path("b/results.jsonl").read_bytes()
    assert Path("a/aggregates.yaml").read_bytes() == Path("b/aggregates.yaml").read_bytes()


def test_runs_over_selections_are_merged(part: Part) -> None:
    part("a", template_ids=["t0"])
    part("b", template_ids=["t1"])
    part("c", question_ids=["q7", "q1"])
    whole = merge_runs(["a", "b"], output_dir="whole")
    assert whole.stopped is None
    assert "selection" not in record_in("whole")
    assert list(record_in("whole")["questions"]) == ALL
    part("whole")
    with pytest.raises(RunFolderError, match="2 samples have two different answers: q1 in a and c, q7 in b and c"):
        merge_runs(["a", "b", "c"], output_dir="three")


@pytest.mark.parametrize(
    ("options", "part_of_message"),
    [
        ({"timeout": 5.0}, "night-2-of-2 differs from night-1-of-2: limits.timeout is 5.0 and not 600.0"),
        ({"max_cost": 1.0}, "limits.max_cost is 1.0 and not none"),
        ({"config": {"steps": {"names": {"a": "b"}}}}, "config.steps.names.a is b and not none"),
        ({"capture": {"keep_messages": True}}, "capture.keep_messages is true and not false"),
        ({"repeats": 2}, "repeats is 2 and not 1"),
        ({"limit": 3}, "selection.limit is 3 and not none"),
        ({"agent_config": {"recursion_limit": 5}}, "agent_config is"),
        ({"agent": str.upper}, "agent is "),
        ({"evaluators": [rate]}, "test_merge_runs:rate and not none. Score them with one config"),
        ({"shard": "2/3"}, "it is one of 3 shards and not of 2"),
    ],
)
def test_differences_are_rejected_by_name(part: Part, options: dict[str, Any], part_of_message: str) -> None:
    part("night-1-of-2", shard="1/2")
    part("night-2-of-2", **{"shard": "2/2", **options})
    with pytest.raises(RunFolderError) as refused:
        merge_runs(["night-1-of-2", "night-2-of-2"], output_dir="night")
    assert part_of_message in str(refused.value)
    assert not Path("night").exists()


def test_force_merges_different_limits_but_not_datasets(part: Part) -> None:
    part("a", shard="1/2")
    part("b", shard="2/2", timeout=5.0)
    merged = merge_runs(["a", "b"], output_dir="night", force=True)
    assert merged.warnings == ["b differs from a: limits.timeout is 5.0 and not 600.0"]
    write_record(Path("b"), dataset={**record_in("b")["dataset"], "sha256": "0"})
    with pytest.raises(RunFolderError, match=r"dataset\.sha256 is 0 and not"):
        merge_runs(["a", "b"], output_dir="other", force=True)


def test_changed_dataset_is_rejected(shards: Shards) -> None:
    folders = shards(2)
    dataset = json.loads(Path("qa.json").read_text())
    Path("moved.json").write_text(json.dumps(dataset))
    dataset[0]["questions"][0]["reference_answer"] = "fixed"
    Path("qa.json").write_text(json.dumps(dataset))
    with pytest.raises(RunFolderError, match="the dataset is not the one of these runs any more"):
        merge_runs(folders, output_dir="night")
    assert merge_runs(folders, output_dir="night", dataset="moved.json").stopped is None
    for folder in folders:
        score_run(folder)
    assert merge_runs(folders, output_dir="fixed").stopped is None


def test_answers_to_questions_with_a_corrected_text_are_kept(shards: Shards) -> None:
    folders = shards()
    dataset = json.loads(Path("qa.json").read_text())
    for question in dataset[0]["questions"]:
        question["question_text"] += " Please."
    Path("qa.json").write_text(json.dumps(dataset))
    for folder in folders:
        score_run(folder)
    merged = merge_runs(folders, output_dir="night")
    assert merged.stopped is None
    assert journal_of("night").keys() == set(ALL)


def test_conflicting_answers_are_rejected_and_force_keeps_one(part: Part) -> None:
    part("a")
    shutil.copytree("a", "b")
    lines = Path("b/responses.jsonl").read_text()
    assert merge_runs(["a", "b"], output_dir="same").stopped is None
    Path("b/responses.jsonl").write_text(lines.replace('"5"', '"five"'))
    with pytest.raises(RunFolderError, match="1 sample has two different answers: q5 in a and b"):
        plan_merge(["a", "b"], output_dir="night")
    merged = merge_runs(["a", "b"], output_dir="night", force=True)
    assert merged.warnings == ["1 sample with two different answers, of which one was kept: q5"]
    assert journal_of("night")["q5"]["actual_answer"] == "5"


def test_retried_failure_is_not_a_conflict(part: Part) -> None:
    part("night-1-of-1", shard="1/1")
    merge_runs(["night-1-of-1"], output_dir="early")

    def fixed(question: str) -> str:
        return "fixed"

    part("night-1-of-1", fixed, shard="1/1", retry_errors=True, force=True)
    now = record_in("night-1-of-1")
    write_record(Path("early"), agent=now["agent"], agent_digests=now["agent_digests"])
    merged = merge_runs(["early", "night-1-of-1"], output_dir="night")
    assert merged.aggregates["micro"]["number_of_error_samples"] == 0
    assert journal_of("night")["q3"]["failed_attempts"][0]["error"]


def test_unfinished_shard_is_scored_and_its_missing_questions_reported(shards: Shards) -> None:
    folders = shards()
    journal = folders[1] / "responses.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]) + lines[-1][:-9])
    write_record(folders[1], totals=None)
    for name in ("results.jsonl", "aggregates.yaml"):
        (folders[1] / name).unlink()
    merged = merge_runs(folders, output_dir="night")
    assert merged.stopped is not None
    assert merged.stopped["message"] == "1 sample of 12 is not answered: shard 2/3 (1 left) did not finish"
    assert len(merged.results) == 11
    (warning,) = merged.warnings
    assert "night-2-of-3/responses.jsonl" in warning
    assert "was cut off while it was written" in warning
    assert journal.read_bytes().endswith(lines[-1][:-9])
    whole = {result["question_id"]: result for result in merge_runs(shards(1), output_dir="one").results}
    for result in merged.results:
        assert result.keys() == whole[result["question_id"]].keys()


def test_responses_without_evaluator_scores_are_left_to_score(shards: Shards) -> None:
    def length(question: Any, response: Any) -> int:
        return len(response["actual_answer"])

    folders = shards(evaluators=[length])
    scored = merge_runs(folders, output_dir="scored")
    assert scored.stopped is None
    assert dict(scored.result("q11"))["length"] == 2
    of_second = list(journal_of(str(folders[1])))
    score_run(folders[1], evaluators=[length], question_ids=of_second[:1])  # a selection counts as not scored
    selected = merge_runs(folders, output_dir="selected").stopped
    assert selected is not None
    assert selected["message"].startswith(f"{len(of_second)} responses were not scored by the parts")
    write_record(folders[1], totals=None)
    merged = merge_runs(folders, output_dir="night")
    assert merged.stopped is not None
    assert merged.stopped["reason"] == "not scored"
    assert "graphrag-eval-lc score night does it" in merged.stopped["message"]
    assert merged.results == []
    assert sorted(path.name for path in Path("night").iterdir()) == [".lock", "responses.jsonl", "run.json"]
    assert dict(score_run("night", evaluators=[length]).result("q11"))["length"] == 2


def test_failed_attempts_and_costs_are_summed_over_parts(shards: Shards, part: Part) -> None:
    tries: dict[str, int] = {}

    def busy(question: str) -> str:
        tries[question] = tries.get(question, 0) + 1
        if tries[question] == 1:
            raise ValueError("busy")
        return "yes"

    shards(agent=busy)
    folders = shards(agent=busy, retry_errors=True)
    merged = merge_runs(folders, output_dir="night")
    assert all(len(response["failed_attempts"]) == 1 for response in journal_of("night").values())
    totals = [record_in(str(folder))["totals"] for folder in folders]
    assert merged.aggregates["totals"].keys() == totals[0].keys()


def test_shard_killed_before_its_first_response_is_skipped(shards: Shards) -> None:
    folders = shards(2)
    for path in folders[1].iterdir():
        if path.name != ".lock":
            path.unlink()
    merged = merge_runs(folders, output_dir="night")
    assert merged.warnings == ["night-2-of-2 is left out, as the run there was killed before it asked anything"]
    assert "shard 2/2 is missing" in str(merged.stopped)
    with pytest.raises(RunFolderError, match="night-2-of-2: no folder holds a run"):
        merge_runs(folders[1:], output_dir="none")


def test_output_is_neither_another_run_nor_a_part(shards: Shards) -> None:
    folders = shards(2)
    with pytest.raises(RunFolderError, match="the folder is one of those that are merged"):
        merge_runs(folders, output_dir=folders[0], overwrite=True)
    merge_runs(folders[:1], output_dir="night")
    with pytest.raises(RunFolderError, match="the folder holds a run already"):
        merge_runs(folders, output_dir="night")
    assert merge_runs(folders, output_dir="night", overwrite=True).stopped is None


@pytest.mark.parametrize(
    ("runs", "what"),
    [
        ([], "no run to merge is given"),
        ("night-1-of-2", "the runs cannot be 'night-1-of-2'"),
        (["absent"], "absent: the folder does not exist"),
        (["qa.json"], "this is a file, not the folder of a run"),
        (["."], "the folder holds no run.json"),
    ],
)
def test_folders_without_a_run_are_rejected(part: Part, runs: Any, what: str) -> None:
    with pytest.raises((OptionError, RunFolderError), match=what):
        merge_runs(runs, output_dir="night")


def test_dry_run_counts_and_writes_nothing(shards: Shards) -> None:
    folders = shards()
    plan = plan_merge(folders, output_dir="night")
    assert (plan.runs, plan.samples, plan.answered, plan.errors, plan.missing) == (3, 12, 12, 2, "")
    assert "shard 1/3 is missing" in plan_merge(folders[1:], output_dir="night").missing
    assert not Path("night").exists()


def test_killed_merge_cannot_be_resumed_but_repeated(shards: Shards, part: Part) -> None:
    folders = shards(2)
    whole = merge_runs(folders, output_dir="night").aggregates
    for name in ("run.json", "results.jsonl", "aggregates.yaml"):  # run.json is written after the responses
        Path("night", name).unlink()
    with pytest.raises(RunFolderError, match=r"the folder holds responses\.jsonl but no run\.json"):
        part("night")
    with pytest.raises(RunFolderError, match=r"the folder holds no run\.json"):
        merge_runs([*folders, "night"], output_dir="other")
    assert merge_runs(folders, output_dir="night", overwrite=True).aggregates == whole
