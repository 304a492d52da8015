"""The table of aggregates: a row for each number."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from graphrag_eval_lc.frames.table import Table

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ("scope", "template_id", "metric", "statistic", "value")


def aggregates_frame(aggregates: Mapping[str, Any]) -> "pd.DataFrame":
    """Give aggregates as a frame with a row for each number; see ``aggregates_table``.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    return aggregates_table(aggregates).to_pandas()


def aggregates_table(aggregates: Mapping[str, Any]) -> Table:
    """Give aggregates as a table with a row for each number.

    Its columns are ``scope`` (template, micro, macro, totals or repeats), ``template_id`` (of the scope template
    only), ``metric``, ``statistic`` (sum, mean, …; "value" where there is but one number) and ``value``. How often
    a tool was called is the metric ``steps.TOOL``; pass@k has k as its statistic.

    Args:
        aggregates: As ``compute_aggregates`` gives them.

    Example:
        >>> aggregates_table({"macro": {"steps_score": {"mean": 0.5}}}).rows
        [{'scope': 'macro', 'metric': 'steps_score', 'statistic': 'mean', 'value': 0.5}]
    """
    rows: list[dict[str, Any]] = []
    for scope, section in aggregates.items():
        if scope == "per_template":
            for template_id, summary in section.items():
                rows += ({"scope": "template", "template_id": template_id, **row} for row in _numbers(summary))
        else:
            rows += ({"scope": scope, **row} for row in _numbers(section))
    return Table(_COLUMNS, rows)


def _numbers(summary: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for metric, value in summary.items():
        if metric == "steps":
            yield from _of_tools(value)
        elif metric == "metrics":  # of repeats
            yield from _numbers(value)
        elif isinstance(value, Mapping):
            yield from ({"metric": metric, "statistic": key, "value": number} for key, number in value.items())
        elif isinstance(value, int | float):
            yield {"metric": metric, "statistic": "value", "value": value}


def _of_tools(steps: Mapping[str, Mapping[str, int]]) -> Iterator[dict[str, Any]]:
    for statistic, counts in steps.items():
        yield from (
            {"metric": f"steps.{tool}", "statistic": statistic, "value": count} for tool, count in counts.items()
        )
