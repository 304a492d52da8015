"""What a run may spend: the next question is taken to cost as much as the dearest so far."""

import pytest

from graphrag_eval_lc.runner.budget import Budget, Verdict


def test_without_limits_everything_fits() -> None:
    budget = Budget(None, None)
    budget.spend(10**9, 10**9)
    budget.spend(None, None)
    assert budget.verdict(100) is Verdict.GO
    assert budget.seconds_left is None


# --- tokens ----------------------------------------------------------------------------------------------------------


def test_first_question_goes_alone_since_nothing_is_known() -> None:
    budget = Budget(100, None)
    assert budget.verdict(0) is Verdict.GO
    assert budget.verdict(1) is Verdict.WAIT


def test_those_in_flight_are_taken_to_cost_as_much_too() -> None:
    budget = Budget(100, None)
    budget.spend(20, 1.0)
    assert [budget.verdict(in_flight) for in_flight in range(5)] == [Verdict.GO] * 4 + [Verdict.WAIT]


def test_run_ends_before_the_budget_is_passed() -> None:
    budget = Budget(100, None)
    budget.spend(1, 1.0)
    budget.spend(40, 1.0)
    budget.spend(19, 1.0)
    assert budget.verdict(0) is Verdict.GO
    budget.spend(1, 1.0)
    assert budget.reason is None
    assert budget.verdict(0) is Verdict.END
    assert budget.reason == "max_tokens"
    assert "the budget of 100 tokens: 61 are spent, and the dearest took 40" in budget.message


def test_budget_that_is_just_met_is_not_passed() -> None:
    budget = Budget(100, None)
    budget.spend(50, 1.0)
    assert budget.verdict(0) is Verdict.GO


def test_questions_without_tokens_leave_the_budget_as_it_is() -> None:
    budget = Budget(10, None)
    budget.spend(0, 1.0)
    assert budget.verdict(7) is Verdict.GO


@pytest.mark.parametrize("spent", [(None,), (5, None), (None, 5)])
def test_budget_that_cannot_be_kept_ends_the_run(spent: tuple[int | None, ...]) -> None:
    budget = Budget(100, None)
    for tokens in spent:
        budget.spend(tokens, 1.0)
    assert budget.verdict(0) is Verdict.END
    assert (budget.reason, "does not report all its tokens" in budget.message) == ("max_tokens", True)


# --- time ------------------------------------------------------------------------------------------------------------


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_time_must_be_enough_for_the_longest_so_far() -> None:
    clock = Clock()
    budget = Budget(None, 60.0, clock)
    budget.spend(None, 10.0)
    clock.now += 49
    assert budget.verdict(3) is Verdict.GO
    assert budget.seconds_left == 11
    clock.now += 1
    assert budget.verdict(3) is Verdict.END
    assert budget.reason == "max_time"
    assert budget.message == "the time of 60 s is too short for another question (10 s are left)"


def test_time_that_is_over_ends_the_run_before_anything_is_known() -> None:
    clock = Clock()
    budget = Budget(None, 60.0, clock)
    assert budget.verdict(0) is Verdict.GO
    clock.now += 61
    assert budget.verdict(0) is Verdict.END
    assert budget.seconds_left == 0


def test_what_an_earlier_session_took_says_nothing_of_the_time() -> None:
    budget = Budget(1000, 60.0, Clock())
    budget.spend(10, None)
    assert budget.verdict(0) is Verdict.GO


def test_time_has_the_last_word() -> None:
    clock = Clock()
    budget = Budget(100, 60.0, clock)
    clock.now += 61
    assert budget.verdict(1) is Verdict.END
    assert budget.reason == "max_time"
