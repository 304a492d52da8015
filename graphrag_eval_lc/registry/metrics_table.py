"""The table of all metrics, as README has it: made from their declarations."""

from collections.abc import Iterable, Iterator

from graphrag_eval_lc.metrics.measures import MEASURES
from graphrag_eval_lc.registry.metric_spec import MetricSpec
from graphrag_eval_lc.registry.metrics import BUILT_IN, MAIN_METRIC, RETRIEVAL_IDS

BEGIN = "<!-- made from the registry by `make metrics-table` -->"
END = "<!-- end of what is made -->"
_KINDS = ("score", "spent", "count")
_UNITS = {"usd": "USD", "count": "counts"}

# A metric with the functions that give it, and the other cells of its row.
_Metric = tuple[str, tuple[str, ...]]
_Others = tuple[str, str, str]


def metrics_table() -> str:
    """Return the table in Markdown: metrics that need the same, have the same range and the same source in one row."""
    rows: dict[_Others, list[_Metric]] = {}
    for spec in sorted(BUILT_IN, key=_place):
        for metric, others in _cells(spec):
            rows.setdefault(others, []).append(metric)
    lines = ["| metric | needs | range | source |", "|---|---|---|---|"]
    lines += [f"| {_names(metrics)} | {' | '.join(others)} |" for others, metrics in rows.items()]
    return "".join(f"{line}\n" for line in lines)


def with_metrics_table(text: str) -> str:
    """Return a text with the table anew between its two markers.

    Raises:
        ValueError: It does not have each of them once.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in after:
        raise ValueError(f"the text has not each of {BEGIN} and {END} once")
    return f"{before}{BEGIN}\n{metrics_table()}{END}{after}"


def _place(spec: MetricSpec) -> tuple[int, bool, bool]:
    """Order scores before what was spent and counted; first the main one, then those that need no judge."""
    return _KINDS.index(spec.kind), spec.key != MAIN_METRIC, spec.judge is not None


def _cells(spec: MetricSpec) -> Iterator[tuple[_Metric, _Others]]:
    if spec.key == RETRIEVAL_IDS:
        for measure in MEASURES.values():
            metric = f"{spec.key}{measure.key}", measure.functions
            yield metric, (f"{spec.requires}{measure.needs}", measure.values, measure.source)
        return
    for member in spec.members or ("",):
        yield (f"{spec.key}{member}", spec.functions), (spec.requires, _range_text(spec), spec.source)


def _names(metrics: Iterable[_Metric]) -> str:
    """Return names, and after them their functions, each once."""
    known = list(metrics)
    functions = dict.fromkeys(function for _, functions in known for function in functions)
    names = ", ".join(f"`{name}`" for name, _ in known)
    return f"{names} ({', '.join(f'`{function}`' for function in functions)})" if functions else names


def _range_text(spec: MetricSpec) -> str:
    """Return a range in words, with its unit.

    Example:
        >>> _range_text(MetricSpec(key="f1")), _range_text(MetricSpec(key="wait", unit="seconds", range=(0.0, None)))
        ('0 to 1', 'from 0, seconds')
    """
    low, high = (None if end is None else f"{end:g}".replace("-", "−") for end in spec.range)
    if low is not None and high is not None:
        text = f"{low} to {high}"
    else:
        text = f"from {low}" if low is not None else "any" if high is None else f"up to {high}"
    if spec.usual_range is not None and spec.usual_range != spec.range:
        text += f", nearly always {spec.usual_range[0]:g} to {spec.usual_range[1]:g}"
    return text if spec.unit == "score" else f"{text}, {_UNITS.get(spec.unit, spec.unit)}"
