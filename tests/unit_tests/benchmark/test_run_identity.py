"""Whether a folder's run can go on, and what is told where it cannot."""

from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.benchmark.run_identity import capture_warnings, changed_questions, refuse_changes
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
def test_mended_reference_or_other_scoring_is_no_change(change: dict[str, Any]) -> None:
    refuse_changes(RUN, {**RUN, **change}, Path("runs/a"))


def test_other_agent_is_refused_with_both_names() -> None:
    text = refusal({**RUN, "agent": "agent.py:other"})
    assert text.startswith("runs/a: the folder holds a run that differs from this one")
    assert "the agent was agent.py:graph and is agent.py:other" in text
    assert "--force (force=True)" in text
    assert "--overwrite (overwrite=True)" in text


def test_other_config_of_the_agent_is_refused() -> None:
    now = {key: RUN[key] for key in RUN if key != "agent_config"}
    assert "the agent's config was {'recursion_limit': 5} and is none" in refusal(now)
    assert "the agent's config was none and is {'recursion_limit': 5}" in refusal(RUN, now)


CAPTURE: dict[str, Any] = {
    "step_names": {},
    "retrieval_documents": False,
    "max_output_chars": None,
    "redact": None,
    "keep_artifacts": True,
}


def test_other_options_of_the_capture_are_refused_with_both_values() -> None:
    now = {**RUN, "capture": {**CAPTURE, "retrieval_documents": ["search_docs"], "max_output_chars": 9}}
    text = refusal(now, {**RUN, "capture": CAPTURE})
    assert 'capture.retrieval_documents was false and is ["search_docs"]; capture.max_output_chars was none and' in text
    assert "and is 9." in text


@pytest.mark.parametrize("before", [{}, {"capture": None}, {"capture": CAPTURE}])
def test_run_that_does_not_tell_its_capture_had_the_defaults(before: dict[str, Any]) -> None:
    refuse_changes({**RUN, **before}, {**RUN, "capture": CAPTURE}, Path("runs/a"))
    assert "capture.keep_artifacts was true and is false" in refusal(
        {**RUN, "capture": {**CAPTURE, "keep_artifacts": False}}, {**RUN, **before}
    )


def test_answers_that_were_recorded_otherwise_are_told_where_they_are_kept() -> None:
    now = {**RUN, "capture": {**CAPTURE, "max_output_chars": 9}}
    assert capture_warnings({**RUN, "capture": CAPTURE}, now) == [
        "answers of earlier sessions are kept as they were recorded: capture.max_output_chars was none and is 9"
    ]
    assert capture_warnings(now, now) == []


def test_folder_of_recorded_responses_has_no_agent() -> None:
    assert "the agent was none and is agent.py:graph" in refusal(RUN, {**RUN, "agent": None})


@pytest.mark.parametrize(
    ("questions", "change"),
    [
        ({"q1": "ccc", "q2": "bbb"}, "1 question with another text: q1"),
        ({"q1": "aaa", "q2": "bbb", "q3": "x", "q4": "y"}, "2 questions added: q3, q4"),
        ({"q2": "bbb"}, "1 question left out: q1"),
        ({}, "2 questions left out: q1, q2"),
    ],
)
def test_other_questions_are_refused_by_their_ids(questions: dict[str, str], change: str) -> None:
    assert change in refusal({**RUN, "questions": questions})


def test_all_changes_are_told_at_once_and_long_lists_are_cut() -> None:
    text = refusal({**RUN, "agent": "b", "questions": {f"n{number}": "x" for number in range(1007)}})
    assert "the agent was" in text
    assert "1,007 questions added: n0, n1, n2, n3, n4 and 1,002 more; 2 questions left out: q1, q2" in text


def test_changed_questions_are_those_of_both_with_another_text() -> None:
    now = {"questions": {"q1": "ccc", "q2": "bbb", "q3": "x"}}
    assert changed_questions(RUN, now) == {"q1"}


@pytest.mark.parametrize("earlier", [{}, {"questions": None}])
def test_record_without_questions_knows_none(earlier: dict[str, Any]) -> None:
    assert changed_questions(earlier, RUN) == frozenset()
