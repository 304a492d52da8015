"""What a run may spend: the next question is taken to cost as much as the dearest so far."""

import pytest

from graphrag_eval_lc.cost_limit import CostLimit
from graphrag_eval_lc.evaluation.limits import Budget, Fit


def test_without_limits_everything_fits() -> None:
    budget = Budget(None, None)
    budget.spend(10**9, 10**9)
    budget.spend(None, None)
    assert budget.fit(100) is Fit.GO
    assert budget.seconds_left is None


# --- tokens ----------------------------------------------------------------------------------------------------------


def test_first_question_goes_alone_since_nothing_is_known() -> None:
    budget = Budget(100, None)
    assert budget.fit(0) is Fit.GO
    assert budget.fit(1) is Fit.WAIT


def test_those_in_flight_are_taken_to_cost_as_much_too() -> None:
    budget = Budget(100, None)
    budget.spend(20, 1.0)
    assert [budget.fit(in_flight) for in_flight in range(5)] == [Fit.GO] * 4 + [Fit.WAIT]


def test_run_ends_before_the_budget_is_passed() -> None:
    budget = Budget(100, None)
    budget.spend(1, 1.0)
    budget.spend(40, 1.0)
    budget.spend(19, 1.0)
    assert budget.fit(0) is Fit.GO
    budget.spend(1, 1.0)
    assert budget.reason is None
    assert budget.fit(0) is Fit.END
    assert budget.reason == "max_tokens"
    assert "the budget of 100 tokens: 61 are spent, and the dearest took 40" in budget.message


def test_budget_that_is_just_met_is_not_passed() -> None:
    budget = Budget(100, None)
    budget.spend(50, 1.0)
    assert budget.fit(0) is Fit.GO


def test_questions_without_tokens_leave_the_budget_as_it_is() -> None:
    budget = Budget(10, None)
    budget.spend(0, 1.0)
    assert budget.fit(7) is Fit.WAIT  # nothing is known of those that cost something
    assert budget.fit(0) is Fit.GO


@pytest.mark.parametrize("spent", [(None,), (5, None), (None, 5)])
def test_budget_that_cannot_be_kept_ends_the_run(spent: tuple[int | None, ...]) -> None:
    budget = Budget(100, None)
    for tokens in spent:
        budget.spend(tokens, 1.0)
    assert budget.fit(0) is Fit.END
    assert (budget.reason, "does not report all its tokens" in budget.message) == ("max_tokens", True)


# --- money -----------------------------------------------------------------------------------------------------------


def test_first_question_goes_alone_where_money_is_limited() -> None:
    budget = Budget(None, None, CostLimit(1.0))
    assert budget.fit(0) is Fit.GO
    assert budget.fit(1) is Fit.WAIT


def test_run_ends_before_the_money_is_spent() -> None:
    budget = Budget(None, None, CostLimit(1.0))
    budget.spend(None, 1.0, 0.125)
    budget.spend(None, 1.0, 0.5)
    assert [budget.fit(in_flight) for in_flight in range(2)] == [Fit.END, Fit.WAIT]
    assert budget.reason == "max_cost"
    assert (
        budget.message == "another question may pass the budget of $1.00: $0.62 are spent, and the dearest took $0.50"
    )


def test_judges_come_on_top_of_the_agent_once_they_are_known() -> None:
    account = CostLimit(1.0)
    budget = Budget(None, None, account, has_judges=True)
    budget.await_judges()
    budget.spend(10, 1.0, 0.25)
    assert budget.fit(0) is Fit.WAIT
    account.spend(0.125)
    budget.spend_on_judges(0.125)
    assert budget.fit(0) is Fit.GO
    assert budget.fit(1) is Fit.WAIT


def test_judges_that_are_still_to_cost_something_are_counted() -> None:
    account = CostLimit(1.0)
    budget = Budget(None, None, account, has_judges=True)
    for _ in range(3):
        budget.await_judges()
        budget.spend(10, 1.0, 0.0)
    for cost in (0.375, 0.125, 0.125):
        assert budget.fit(0) is Fit.WAIT
        account.spend(cost)
        budget.spend_on_judges(cost)
    assert budget.fit(0) is Fit.GO
    assert budget.fit(1) is Fit.WAIT


def test_question_that_no_judge_was_asked_about_says_nothing_of_the_next() -> None:
    budget = Budget(None, None, CostLimit(1.0), has_judges=True)
    budget.await_judges()
    budget.spend(10, 1.0, 0.25)
    budget.spend_on_judges(0.0)
    assert [budget.fit(in_flight) for in_flight in range(2)] == [Fit.GO, Fit.WAIT]


def test_costs_without_a_limit_on_money_do_not_matter() -> None:
    budget = Budget(100, None)
    budget.spend(1, 1.0)
    budget.await_judges()
    budget.spend_on_judges(None)
    assert budget.fit(0) is Fit.GO


@pytest.mark.parametrize("unpriced", [set(), {"mine", "a-model"}])
def test_money_that_cannot_be_counted_ends_the_run(unpriced: set[str]) -> None:
    budget = Budget(None, None, CostLimit(1.0), unpriced=unpriced)
    budget.spend(1, 1.0, None)
    assert budget.fit(0) is Fit.END
    assert budget.reason == "max_cost"
    why = (
        "no price is known for a-model, mine (prices in the config can give it)"
        if unpriced
        else "the cost of some model calls is not known"
    )
    assert budget.message == f"a budget of money cannot be kept: {why}"


def test_money_that_the_judges_requests_have_spent_and_reserved_counts() -> None:
    account = CostLimit(1.0)
    budget = Budget(None, None, account)
    budget.spend(10, 1.0, 0.25)
    account.spend(0.25)
    reservation = account.reserve(0.375)
    assert budget.fit(1) is Fit.WAIT
    reservation.settle(0.125)
    assert budget.fit(0) is Fit.GO


def test_limit_that_is_closed_ends_the_run() -> None:
    account = CostLimit(1.0)
    budget = Budget(None, None, account)
    account.close("a request does not fit")
    assert budget.fit(0) is Fit.END
    assert (budget.reason, budget.message) == ("max_cost", "a request does not fit")


def test_no_first_question_is_asked_where_all_is_spent_already() -> None:
    assert Budget(None, None, CostLimit(1.0, spent=1.0)).fit(0) is Fit.END


# --- time ------------------------------------------------------------------------------------------------------------


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_time_must_be_enough_for_the_longest_so_far() -> None:
    clock = Clock()
    budget = Budget(None, 60.0, clock=clock)
    budget.spend(None, 10.0)
    clock.now += 49
    assert budget.fit(3) is Fit.GO
    assert budget.seconds_left == 11
    clock.now += 1
    assert budget.fit(3) is Fit.END
    assert budget.reason == "max_time"
    assert budget.message == "the time of 60 s is too short for another question (10 s are left)"


def test_time_that_is_over_ends_the_run_before_anything_is_known() -> None:
    clock = Clock()
    budget = Budget(None, 60.0, clock=clock)
    assert budget.fit(0) is Fit.GO
    clock.now += 61
    assert budget.fit(0) is Fit.END
    assert budget.seconds_left == 0


def test_what_an_earlier_session_took_says_nothing_of_the_time() -> None:
    budget = Budget(1000, 60.0, clock=Clock())
    budget.spend(10, None)
    assert budget.fit(0) is Fit.GO


def test_time_has_the_last_word() -> None:
    clock = Clock()
    budget = Budget(100, 60.0, clock=clock)
    clock.now += 61
    assert budget.fit(1) is Fit.END
    assert budget.reason == "max_time"
