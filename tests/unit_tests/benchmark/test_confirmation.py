"""A run compared with its baseline: changed questions are rerun before a gate fails."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from graphrag_eval_lc import run_benchmark
from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.errors import NothingToCompareError, OptionError, RunFolderError
from graphrag_eval_lc.run_folder import CONFIRMATION, iter_responses

STEP = {"name": "look", "args": {}, "output": "yes", "status": "success"}
DATASET = [
    {
        "template_id": f"t{at}",
        "questions": [
            {"id": f"q{4 * at + place}", "question_text": f"q{4 * at + place}", "reference_steps": [[STEP]]}
            for place in range(4)
        ],
    }
    for at in range(11)
]
RIGHT, WRONG, FAILED = "yes", "no", "error"


class Agent:
    """An agent that returns the predefined answers of a question in turn, and the correct one by default."""

    def __init__(self, answers: Mapping[str, Sequence[str]] = {}) -> None:
        self.answers, self.asked = answers, Counter[str]()

    def __call__(self, question: str) -> str:
        given = [*self.answers.get(question, ()), *[self.answers.get(question, [RIGHT])[-1]] * 9][self.asked[question]]
        self.asked[question] += 1
        if given == FAILED:
            raise ValueError("no such thing")
        return str(_look.invoke({"answer": given}))


@tool("look")
def _look(answer: str) -> str:
    """Look something up."""
    return answer


def run_of(folder: Path, agent: Agent, **options: Any) -> BenchmarkRun:
    return run_benchmark(agent, DATASET, output_dir=folder, progress="off", report=False, **options)


def answers(*ids: range, results: Sequence[str]) -> dict[str, Sequence[str]]:
    return {f"q{number}": results for each in ids for number in each}


# Wrong in the baseline, the run's answers, whether it passes, the number of reruns, and the output.
CASES: dict[str, tuple[range, dict[str, Sequence[str]], bool, int, str]] = {
    "the same": (range(0), {}, True, 0, "steps_score is the same"),
    "within the limit": (range(0), answers(range(2), results=[WRONG]), True, 0, "1.000 → 0.955, drop 0.045 ≤ 0.05"),
    "lost for good": (range(0), answers(range(3), results=[WRONG]), False, 3, "1.000 → 0.932, drop 0.068 > 0.05"),
    "failed for good": (range(0), answers(range(3), results=[FAILED]), False, 3, "1.000 → 0.932, drop 0.068 > 0.05"),
    "lost by chance": (
        range(0),
        answers(range(3), results=[WRONG, RIGHT]),
        True,
        3,
        "1.000 → 0.977, drop 0.023 ≤ 0.05",
    ),
    "lost and fixed": (range(40, 43), answers(range(6), results=[WRONG]), True, 0, "in 51 of 100 cases"),
    "more lost than fixed": (
        range(43, 44),
        answers(range(8), results=[WRONG]),
        False,
        9,
        "0.977 → 0.818, drop 0.159 > 0.05",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_changed_questions_are_rerun_before_the_gate_fails(tmp_path: Path, case: str) -> None:
    wrong_before, now, has_passed, asked, message = CASES[case]
    run_of(tmp_path / "main", Agent(answers(wrong_before, results=[WRONG])))
    agent = Agent(now)
    run = run_of(tmp_path / "branch", agent, baseline=tmp_path / "main", confirm=2)
    assert run.regression is not None
    assert run.regression.has_passed is has_passed, str(run.regression)
    assert message in str(run.regression)
    assert agent.asked.total() == 44 + 2 * asked
    again = tmp_path / "branch" / CONFIRMATION
    if not asked:
        assert not again.exists()
        return
    assert f"confirmed: {asked} questions run 2 more times; the run alone: " in str(run.regression)
    assert Counter(response["question_id"] for response in iter_responses(again / "responses.jsonl")) == Counter(
        {question: number - 1 for question, number in agent.asked.items() if number > 1}
    )


def test_nothing_is_rerun_twice_and_overwriting_reruns_everything(tmp_path: Path) -> None:
    run_of(tmp_path / "main", Agent())
    options: dict[str, Any] = {"baseline": tmp_path / "main", "confirm": 2}
    lost = answers(range(3), results=[WRONG])
    first = run_of(tmp_path / "branch", Agent(lost), **options)
    silent = Agent(lost)
    again = run_of(tmp_path / "branch", silent, **options)
    assert (str(again.regression), silent.asked.total()) == (str(first.regression), 0)
    more = Agent(lost)
    run_of(tmp_path / "branch", more, **{**options, "confirm": 3})
    assert more.asked == Counter({"q0": 1, "q1": 1, "q2": 1})
    fresh = Agent(lost)
    run_of(tmp_path / "branch", fresh, overwrite=True, **options)
    assert fresh.asked.total() == 50


def test_gate_fails_immediately_without_confirm(tmp_path: Path) -> None:
    run_of(tmp_path / "main", Agent())
    agent = Agent(answers(range(3), results=[WRONG, RIGHT]))
    run = run_of(tmp_path / "branch", agent, baseline=tmp_path / "main", max_drop=0.06)
    assert run.regression is not None
    assert not run.regression.has_passed
    assert agent.asked.total() == 44
    assert str(run.regression).startswith(
        f"compared with {tmp_path / 'main'} (A), B: steps_score 1.000 → 0.932, drop 0.068 > 0.06"
    )


def test_unreadable_baseline_is_rejected_before_the_agent_is_called(tmp_path: Path) -> None:
    agent = Agent()
    with pytest.raises(RunFolderError, match="the folder does not exist"):
        run_of(tmp_path / "branch", agent, baseline=tmp_path / "main")
    with pytest.raises(OptionError, match="baseline and output_dir are the same folder"):
        run_of(tmp_path / "branch", agent, baseline=tmp_path / "x" / ".." / "branch")
    with pytest.raises(OptionError, match="confirm needs baseline"):
        run_of(tmp_path / "branch", agent, confirm=2)
    with pytest.raises(OptionError, match="shard and baseline exclude each other"):
        run_of(tmp_path / "branch", agent, baseline=tmp_path, shard="1/2")
    assert agent.asked.total() == 0


def test_baseline_with_other_questions_is_rejected_first_and_with_other_texts_loses_no_run(tmp_path: Path) -> None:
    run_benchmark(Agent(), DATASET[:1], output_dir=tmp_path / "main", progress="off")
    agent = Agent()
    with pytest.raises(NothingToCompareError, match="main: the baseline has none of the questions of this run"):
        run_benchmark(agent, DATASET[1:], progress="off", baseline=tmp_path / "main")
    assert not agent.asked
    other: list[Any] = [{"template_id": "t", "questions": [{"id": "q0", "question_text": "Another?"}]}]
    run = run_benchmark(agent, other, progress="off", baseline=tmp_path / "main")
    assert run.regression is not None
    assert run.regression.state == "not checked"
    assert "under the same ids they have other texts" in str(run.regression)
    assert len(run.results) == 1


def test_reruns_count_against_the_budget(tmp_path: Path) -> None:
    usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}

    class Asking(Agent):
        def __call__(self, question: str) -> str:
            model = GenericFakeChatModel(messages=iter([AIMessage("fine", usage_metadata=usage)]))
            model.invoke(question)
            return super().__call__(question)

    run_of(tmp_path / "main", Asking())
    lost = answers(range(3), results=[WRONG])
    options: dict[str, Any] = {"baseline": tmp_path / "main", "confirm": 2, "max_concurrency": 1}
    run = run_of(tmp_path / "branch", Asking(lost), max_tokens=46 * 7, **options)
    assert run.stopped is not None
    assert (run.stopped["reason"], run.stopped["left_out"]) == ("max_tokens", 4)
    assert run.regression is not None
    assert not run.regression.has_passed
    assert str(run.regression).endswith("; not confirmed, as the run ended while 3 questions were run again")
    more = run_of(tmp_path / "branch", agent := Asking(lost), max_tokens=50 * 7, **options)
    assert more.stopped is None
    assert "confirmed: 3 questions run 2 more times" in str(more.regression)
    assert agent.asked.total() == 4
