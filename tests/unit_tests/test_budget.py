"""The budget ends a run with the request that uses it up, and reports the reason."""

import pytest

from graphrag_eval_lc.budget import Budget, BudgetSpentError


def test_without_limits_usage_is_only_counted() -> None:
    budget = Budget()
    budget.spend(10.0**9, 10**9)
    budget.check()
    assert (budget.spent, budget.tokens, budget.limit) == (10.0**9, 10**9, None)


@pytest.mark.parametrize(
    ("budget", "limit", "message"),
    [
        (Budget(max_cost=1.0), "max_cost", "the budget of $1.00 is spent: $1.25 with requests that were in flight"),
        (
            Budget(max_tokens=4),
            "max_tokens",
            "the budget of 4 tokens is spent: 5 with requests that were in flight",
        ),
    ],
)
def test_exhausted_budget_stays_exhausted(budget: Budget, limit: str, message: str) -> None:
    budget.spend(0.5, 2)
    budget.check()
    budget.spend(0.75, 3)
    with pytest.raises(BudgetSpentError):
        budget.check()
    assert (budget.limit, budget.message) == (limit, message)


def test_whole_budget_can_be_spent() -> None:
    budget = Budget(max_tokens=10)
    budget.spend(tokens=9)
    budget.check()
    budget.spend(tokens=1)
    with pytest.raises(BudgetSpentError):
        budget.check()


def test_first_reason_is_kept() -> None:
    budget = Budget(max_cost=1.0)
    budget.end("max_cost", "no price is known")
    budget.spend(2.0)
    assert budget.message == "no price is known"
