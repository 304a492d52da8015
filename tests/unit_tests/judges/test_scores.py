from dataclasses import FrozenInstanceError

import pytest

from graphrag_eval_lc.judges import JudgeScore


def test_score_cannot_be_changed() -> None:
    score = JudgeScore(1.0, None, None)
    with pytest.raises(FrozenInstanceError):
        score.value = 0.0  # type: ignore[misc]


def test_details_are_empty_by_default() -> None:
    assert JudgeScore(None, "not applicable", 0.0).details == {}
