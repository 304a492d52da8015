"""README's table of all metrics, made from their declarations; as a script this writes it anew."""

from collections.abc import Iterator
from pathlib import Path

from graphrag_eval_lc.metrics.measures import MEASURES
from graphrag_eval_lc.registry import MetricSpec
from graphrag_eval_lc.registry.metrics import BUILT_IN, MAIN_METRIC, RETRIEVAL_IDS

README = Path(__file__).parents[1] / "README.md"
BEGIN = "<!-- made from the registry by `make metrics-table` -->"
END = "<!-- end of what is made -->"

# A metric with the functions that compute it, and the other cells of its row.
Metric = tuple[str, tuple[str, ...]]
Others = tuple[str, str, str]


def metrics_table() -> str:
    """Return the table in Markdown; metrics that need the same and have the same range and source share a row."""
    rows: dict[Others, list[Metric]] = {}
    for spec in sorted(BUILT_IN, key=_place):
        for metric, others in _cells(spec):
            rows.setdefault(others, []).append(metric)
    table = "| metric | needs | range | source |\n|---|---|---|---|\n"
    return table + "".join(f"| {_names(metrics)} | {' | '.join(others)} |\n" for others, metrics in rows.items())


def with_metrics_table(text: str) -> str:
    """Return a text with a new table between its two markers."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in after:
        raise ValueError(f"the text has not each of {BEGIN} and {END} once")
    return f"{before}{BEGIN}\n{metrics_table()}{END}{after}"


def _place(spec: MetricSpec) -> tuple[int, bool, bool]:
    """Order scores before what was spent and counted; first the main one, then those that need no judge."""
    return ("score", "spent", "count").index(spec.kind), spec.key != MAIN_METRIC, spec.judge is not None


def _cells(spec: MetricSpec) -> Iterator[tuple[Metric, Others]]:
    if spec.key == RETRIEVAL_IDS:
        for measure in MEASURES.values():
            others = f"{spec.requires}{measure.needs}", measure.values, measure.source
            yield (f"{spec.key}{measure.key}", measure.functions), others
        return
    for member in spec.members or ("",):
        yield (f"{spec.key}{member}", spec.functions), (spec.requires, _range_text(spec), spec.source)


def _names(metrics: list[Metric]) -> str:
    names = ", ".join(f"`{name}`" for name, _ in metrics)
    functions = dict.fromkeys(f"`{function}`" for _, functions in metrics for function in functions)
    return f"{names} ({', '.join(functions)})" if functions else names


def _range_text(spec: MetricSpec) -> str:
    """Return a range in words; that of this package's metrics always has a lower bound."""
    low, high = ("" if end is None else f"{end:g}".replace("-", "−") for end in spec.range)
    text = f"{low} to {high}" if high else f"from {low}"
    if spec.usual_range is not None:
        text += f", nearly always {spec.usual_range[0]:g} to {spec.usual_range[1]:g}"
    units = {"usd": "USD", "count": "counts"}
    return text if spec.unit == "score" else f"{text}, {units.get(spec.unit, spec.unit)}"


if __name__ == "__main__":
    README.write_text(with_metrics_table(README.read_text(encoding="utf-8")), encoding="utf-8")
