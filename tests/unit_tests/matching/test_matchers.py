import gc
import math
import weakref

import pytest

from graphrag_eval_lc.matching import StepView, UnreadableOutput, explained
from graphrag_eval_lc.matching.rows.results import parse_sparql_results


def test_output_is_parsed_once_per_parser() -> None:
    calls: list[object] = []

    def parse(output: object) -> str:
        calls.append(output)
        return f"parsed {output}"

    view = StepView({"name": "search", "output": "x"})
    assert view.parsed(parse) == view.parsed(parse) == "parsed x"
    assert calls == ["x"]


def test_unreadable_output_is_raised_each_time() -> None:
    def reject(output: object) -> None:
        raise UnreadableOutput("no JSON")

    view = StepView({"name": "search"})
    for _ in range(2):
        with pytest.raises(UnreadableOutput, match="no JSON"):
            view.parsed(reject)


def test_error_that_cannot_be_copied_is_raised_each_time() -> None:
    class BadCellError(UnreadableOutput):
        def __init__(self, row: int, column: int) -> None:
            super().__init__(f"cell {row},{column} is no number")

    def reject(output: object) -> None:
        raise BadCellError(1, 2)

    view = StepView({"name": "search"})
    for _ in range(2):
        with pytest.raises(UnreadableOutput, match="cell 1,2 is no number"):
            view.parsed(reject)


@pytest.mark.parametrize("score", [-0.1, 1.1, math.nan, math.inf])
def test_score_outside_0_to_1_is_rejected(score: float) -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        explained(score, "")


class WeakReferenced:
    pass


def test_step_with_an_unreadable_output_is_freed_at_once() -> None:
    seen = weakref.ref(kept := WeakReferenced())
    gc.disable()  # it would hide a reference cycle
    try:
        step = StepView({"name": "sparql_query", "output": "no rows", "kept": kept})
        del kept
        for _ in range(2):
            assert not step.is_read_by(parse_sparql_results)
        del step
        assert seen() is None
    finally:
        gc.enable()
