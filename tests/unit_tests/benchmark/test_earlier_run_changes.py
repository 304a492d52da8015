"""Whether the run of a folder can be resumed, and which differences prevent it."""

from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.benchmark.earlier_run import refuse_changes
from graphrag_eval_lc.errors import RunFolderError

RUN: dict[str, Any] = {
    "agent": "agent.py:graph",
    "agent_config": {"recursion_limit": 5},
    "questions": {"q1": "aaa", "q2": "bbb"},
    "config": {"steps": {"scoring": "last_group"}},
    "dataset": {"sha256": "1"},
    "label": "first",
}


def refusal(now: dict[str, Any], earlier: dict[str, Any] = RUN) -> str:
    with pytest.raises(RunFolderError) as caught:
        refuse_changes(earlier, now, Path("runs/a"))
    return str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"config": {"steps": {"scoring": "all_groups"}}},
        {"dataset": {"sha256": "2"}},
        {"label": "second"},
        {"limits": {"timeout": 1}},
        {"questions": {"q2": "bbb", "q1": "aaa"}},
    ],
)
def test_fixed_reference_or_different_scoring_is_not_a_change(change: dict[str, Any]) -> None:
    refuse_changes(RUN, {**RUN, **change}, Path("runs/a"))


def test_different_agent_is_rejected_with_both_names() -> None:
    text = refusal({**RUN, "agent": "agent.py:other"})
    assert text.startswith("runs/a: the folder holds a run that differs from this one")
    assert "the agent was agent.py:graph and is agent.py:other" in text
    assert "--force (force=True)" in text
    assert "--overwrite (overwrite=True)" in text


CAPTURE: dict[str, Any] = {
    "step_names": {},
    "retrieval_documents": False,
    "max_output_chars": None,
    "redact": None,
    "keep_artifacts": True,
}


def test_different_capture_options_are_rejected_with_both_values() -> None:
    now = {**RUN, "capture": {**CAPTURE, "retrieval_documents": ["search_docs"], "max_output_chars": 9}}
    text = refusal(now, {**RUN, "capture": CAPTURE})
    assert 'capture.retrieval_documents was false and is ["search_docs"]; capture.max_output_chars was none and' in text
    assert "and is 9." in text


@pytest.mark.parametrize(
    ("questions", "change"),
    [
        ({"q1": "ccc", "q2": "bbb"}, "1 question with another text: q1"),
        ({"q1": "aaa", "q2": "bbb", "q3": "x", "q4": "y"}, "2 questions added: q3, q4"),
        ({"q2": "bbb"}, "1 question left out: q1"),
        ({}, "2 questions left out: q1, q2"),
    ],
)
def test_different_questions_are_rejected_with_their_ids(questions: dict[str, str], change: str) -> None:
    assert change in refusal({**RUN, "questions": questions})
