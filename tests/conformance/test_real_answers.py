"""Recorded answers of real agents, checked against rows and references: the figures of docs/how-to/answers.md."""

from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import load_dataset, load_responses, run_evaluation

CONFIG: dict[str, Any] = {
    "answer_grounding": {"enabled": True},
    "answer_checks": {"infer": "required_columns"},
    "graph": {"explain": False},
}
# In all other answers, every value is in the rows of the steps. Checked by hand: these agents had not found the values.
UNGROUNDED = {
    "substations": set[str](),
    "timeseries": {"question_2b577dbeb7d8284f17092cbf67c9a11e", "question_c18ba423e25a573ad88f0616d24105ff"},
}


@pytest.mark.parametrize(
    ("run", "answers", "with_values", "checked", "exact"),
    [("substations", 190, 176, 164, 137), ("timeseries", 60, 52, 0, 0)],
)
def test_answers_are_checked_against_their_rows(
    conformance_dir: Path, run: str, answers: int, with_values: int, checked: int, exact: int
) -> None:
    folder = conformance_dir / "real_runs" / run
    results: list[dict[str, Any]] = [
        dict(result)
        for result in run_evaluation(
            load_dataset(folder / "reference.yaml"), load_responses(folder / "responses.jsonl"), CONFIG
        )
    ]
    assert len(results) == answers
    grounded = {each["question_id"]: each["answer_grounded"] for each in results if "answer_grounded" in each}
    in_rows = [each.get("answer_lines_in_one_row") for each in results]
    assert {question for question, share in grounded.items() if share != 1} == UNGROUNDED[run]
    assert len(grounded) == with_values
    assert [share for share in in_rows if share not in (None, 1)] == []
    verdicts = [each["answer_exact"] for each in results if "answer_exact" in each]
    assert (len(verdicts), sum(verdicts)) == (checked, exact)
