"""Which response counts if several journals have one."""

import json
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.benchmark.merge_parts import Answers


@pytest.fixture
def answers(tmp_path: Path) -> Any:
    """Write journals from lists of records, and read them as one."""

    def made(*journals: list[Any], texts: dict[str, str] | None = None) -> Answers:
        paths = [tmp_path / f"{number}.jsonl" for number in range(len(journals))]
        for path, records in zip(paths, journals, strict=True):
            path.write_text("".join(each if isinstance(each, str) else f"{json.dumps(each)}\n" for each in records))
        return Answers(dict.fromkeys(paths, texts or {}))

    return made


def answer(text: str = "yes", *, question: str = "q1", at: int = 0, **more: Any) -> dict[str, Any]:
    return {"question_id": question, "status": "success", "actual_answer": text, "started_at": f"t{at}", **more}


def failure(question: str = "q1", *, at: int = 0, **more: Any) -> dict[str, Any]:
    return {"question_id": question, "status": "error", "error": "away", "started_at": f"t{at}", **more}


def test_responses_of_all_journals_are_concatenated(answers: Any) -> None:
    known = answers([answer(question="b"), answer(question="a")], [answer(question="c", repeat=2)])
    assert [record["question_id"] for record in known] == ["b", "a", "c"]
    assert [known.journal_of(key) for key in (("a", 1), ("c", 2), ("c", 1))] == [0, 1, None]
    assert known.read(("c", 1)) is None


def test_last_record_of_a_journal_counts(answers: Any) -> None:
    known = answers([failure(), answer("later")])
    assert [record["actual_answer"] for record in known] == ["later"]
    assert not known.conflicts


def test_identical_answers_are_merged(answers: Any) -> None:
    known = answers([answer()], [answer()])
    assert len(list(known)) == 1
    assert not known.conflicts


def test_two_answers_are_a_conflict_and_the_success_counts(answers: Any) -> None:
    known = answers([failure()], [answer()], [answer("no")])
    assert known.conflicts == {("q1", 1): (0, 1)}
    assert known.read(("q1", 1)) == answer()
    assert known.journal_of(("q1", 1)) == 1


@pytest.mark.parametrize("is_first", [True, False])
def test_answer_with_the_other_as_failed_attempt_counts(answers: Any, is_first: bool) -> None:
    earlier = failure(at=1, failed_attempts=[{"error": "busy", "started_at": "t0"}])
    attempts = [{"error": "busy", "started_at": "t0"}, {"error": "away", "started_at": "t1"}]
    later = answer(at=2, failed_attempts=attempts)
    known = answers([later], [earlier]) if is_first else answers([earlier], [later])
    assert known.read(("q1", 1)) == later
    assert not known.conflicts
    assert known.journal_of(("q1", 1)) == (0 if is_first else 1)


@pytest.mark.parametrize("is_first", [True, False])
def test_answer_replaces_an_interrupted_one(answers: Any, is_first: bool) -> None:
    cut = failure(at=1, interrupted=True)
    known = answers([answer(at=2)], [cut]) if is_first else answers([cut], [answer(at=2)])
    assert (list(known), known.is_answered(("q1", 1)), known.conflicts) == ([answer(at=2)], True, {})
    assert not answers([cut], [cut]).is_answered(("q1", 1))


def test_response_to_another_question_text_is_ignored(answers: Any) -> None:
    old, new = answer(question_text="1 + 1?"), answer(question_text="1 + 2?")
    assert answers([new, old], texts={"q1": "1 + 2?"}).summary(("q1", 1)) is None
    assert answers([old], [new], texts={"q1": "1 + 2?"}).is_answered(("q1", 1))


def test_journals_are_not_changed_and_unreadable_lines_are_reported(answers: Any, tmp_path: Path) -> None:
    torn = '{"question_id": "c", "st'
    known = answers([json.dumps(answer(question="a")) + "\n", torn], [answer()])
    assert [record["question_id"] for record in known] == ["a", "q1"]
    (sentence,) = known.journals[0].unreadable
    assert sentence.startswith(f"Line 2 of {tmp_path / '0.jsonl'} (24 bytes) was cut off")
    assert (tmp_path / "0.jsonl").read_text().endswith(torn)
    assert not list(Answers({tmp_path / "absent.jsonl": {}}))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.jsonl", "1.jsonl"]
