from typing import Any

import pytest

from graphrag_eval_lc import compute_aggregates
from graphrag_eval_lc.tables import aggregates_table

RESULTS: list[dict[str, Any]] = [
    {"template_id": "a", "question_id": "q1", "status": "success", "steps_score": 1.0, "total_tokens": 4},
    {
        "template_id": "b",
        "question_id": "q2",
        "status": "success",
        "steps_score": 0.5,
        "actual_steps": [{"name": "add", "status": "success"}],
    },
]


def value(aggregates: dict[str, Any], **keys: str) -> float:
    (row,) = [row for row in aggregates_table(aggregates).rows if keys.items() <= row.items()]
    return float(row["value"])


def test_each_number_is_a_row() -> None:
    aggregates = compute_aggregates(RESULTS)
    assert value(aggregates, scope="template", template_id="b", metric="steps_score", statistic="mean") == 0.5
    assert value(aggregates, scope="micro", metric="steps_score", statistic="mean") == 0.75
    assert value(aggregates, scope="macro", metric="steps_score", statistic="mean") == 0.75
    assert value(aggregates, scope="micro", metric="number_of_success_samples", statistic="value") == 2
    assert value(aggregates, scope="micro", metric="steps.add", statistic="total") == 1
    assert value(aggregates, scope="totals", metric="number_of_samples", statistic="value") == 2
    assert value(aggregates, scope="totals", metric="unmeasured_samples", statistic="total_tokens") == 1


def test_repeats_are_a_scope() -> None:
    aggregates = compute_aggregates([{**result, "repeat": repeat} for result in RESULTS for repeat in (1, 2)])
    assert value(aggregates, scope="repeats", metric="pass@k", statistic="2") == 0.5
    assert value(aggregates, scope="repeats", metric="steps_score", statistic="mean") == 0.75
    assert value(aggregates, scope="repeats", metric="steps_score", statistic="standard_error") > 0


@pytest.mark.parametrize("repeats", [1, 3])
def test_all_numbers_of_the_aggregates_are_in_the_table(repeats: int) -> None:
    def numbers(section: Any) -> int:
        if isinstance(section, dict):
            return sum(map(numbers, section.values()))
        return isinstance(section, int | float)

    aggregates = compute_aggregates([{**result, "repeat": n + 1} for result in RESULTS for n in range(repeats)])
    assert len(aggregates_table(aggregates).rows) == numbers(aggregates)


def test_frame_has_five_columns_even_without_rows() -> None:
    columns = ["scope", "template_id", "metric", "statistic", "value"]
    assert list(aggregates_table(compute_aggregates([])).to_pandas().columns) == columns
    assert list(aggregates_table({}).to_pandas().columns) == columns
