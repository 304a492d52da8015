import importlib
import subprocess
import sys

import pytest

import graphrag_eval_lc
from graphrag_eval_lc import compare, matching
from graphrag_eval_lc.dataset.validation import Problem
from graphrag_eval_lc.deprecation import renamed_names
from graphrag_eval_lc.errors import DatasetError


def test_an_error_takes_and_gives_mend_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match="mend= is now called hint="):
        error = DatasetError("no text", mend="Add one.")
    assert str(error) == "no text. Add one."
    with pytest.warns(DeprecationWarning, match="DatasetError.mend is now called hint"):
        assert error.mend == error.hint == "Add one."
    with pytest.warns(DeprecationWarning, match="DatasetError.mend is now called hint"):
        error.mend = "Add two."
    assert error.hint == "Add two."


@pytest.mark.parametrize("record", [matching.Finding("no text", "Add one."), Problem("no text", "Add one.")])
def test_what_is_found_wrong_gives_mend_with_a_warning(record: matching.Finding | Problem) -> None:
    with pytest.warns(DeprecationWarning, match="mend is now called hint"):
        assert record.mend == "Add one."


OLD_NAMES = [
    ("graphrag_eval_lc", "Comparison", compare.RunComparison),
    ("graphrag_eval_lc.compare", "Comparison", compare.RunComparison),
    ("graphrag_eval_lc.compare", "TurnedQuestion", compare.Flip),
    ("graphrag_eval_lc.comparison", "Comparison", compare.RunComparison),
    ("graphrag_eval_lc.comparison", "gate_results", compare.gate_results),
]


@pytest.mark.parametrize(("module", "name", "new"), OLD_NAMES)
def test_an_old_public_name_works_with_a_warning_that_names_the_new_one(module: str, name: str, new: object) -> None:
    with pytest.warns(
        DeprecationWarning, match=rf"{module}.{name} is now called graphrag_eval_lc\.\w*\.?{new.__name__}"
    ):  # type: ignore[attr-defined]
        assert getattr(importlib.import_module(module), name) is new


@pytest.mark.full
def test_the_warning_names_the_users_line() -> None:
    code = "from graphrag_eval_lc import Comparison\nfrom graphrag_eval_lc.comparison import gate_results"
    done = subprocess.run([sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, check=True)
    assert "<string>:1: DeprecationWarning" in done.stderr
    assert "<string>:2: DeprecationWarning" in done.stderr


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'here' has no attribute 'unknown'"):
        renamed_names("here", {"old": "new"})("unknown")
    assert not hasattr(graphrag_eval_lc, "comparisons")


def test_flips_are_found_as_fixed_and_broken() -> None:
    def results(*scores: float) -> list[dict[str, object]]:
        return [
            {"template_id": "t", "question_id": f"q{place}", "status": "success", "steps_score": score}
            for place, score in enumerate(scores)
        ]

    (pair,) = compare.compare_runs(results(1.0, 0.0, 0.5), results(0.0, 1.0, 0.5)).pairs
    assert [flip.question_id for flip in pair.broken] == ["q0"]
    assert [flip.question_id for flip in pair.fixed] == ["q1"]
    with pytest.warns(DeprecationWarning, match="PairComparison.turned is now called flips"):
        assert pair.turned == pair.flips
