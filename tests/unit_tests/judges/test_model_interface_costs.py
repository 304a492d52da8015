import random

from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.judges.model_interface import UnusableAnswerError, paid_error, total_cost


def test_total_cost_is_unknown_where_one_cost_is() -> None:
    assert total_cost([0.25, 0.5]) == 0.75
    assert total_cost([0.25, None]) is None


def test_total_cost_of_no_request_is_zero() -> None:
    assert total_cost([]) == 0.0


@given(st.lists(st.floats(0, 1), max_size=20), st.randoms(use_true_random=False))
def test_total_cost_does_not_depend_on_the_order_of_answers(costs: list[float], draw: random.Random) -> None:
    other_order = draw.sample(costs, len(costs))
    assert total_cost(other_order) == total_cost(costs)


def test_error_tells_all_that_was_paid_for_in_vain() -> None:
    assert paid_error(JudgeError("refused"), [0.25]).cost == 0.25
    assert paid_error(UnusableAnswerError("cut off", cost=0.5), [0.25]).cost == 0.75
    assert paid_error(UnusableAnswerError("cut off", cost=None), [0.25]).cost is None


def test_error_with_costs_says_what_it_said() -> None:
    error = paid_error(JudgeError("refused", hint="Ask another model."), [])
    assert str(error) == "refused. Ask another model."
