"""The page on all metrics, made from their declarations and from ``metric_facts``."""

from collections.abc import Iterator

from graphrag_eval_lc.metrics.measures import MEASURES
from graphrag_eval_lc.registry import MetricSpec
from graphrag_eval_lc.registry.metrics import BUILT_IN, MAIN_METRIC, RETRIEVAL_IDS
from made_by.metric_facts import FACTS, PREPARED

_HEAD = """\
# Metrics

Scores first, then what was spent, then counts. A metric that could not be measured is absent, never 0. In aggregates
each has its mean, median, minimum and maximum per template, over all questions (micro) and over templates (macro).
"""
_OTHERS = """
## What is no metric of a question, or not of this package

| what | needs | range | source |
|---|---|---|---|
| precision, recall, F1 and grade of rows (`compare_sparql_results`) | two query results | 0 to 1 | this project |
| custom evaluations | a model and your instructions, or a function | yours | graphrag-eval; agentevals (call shape) |
| `…_cost` of judges and custom evaluations | models with a known price | from 0, USD | as `agent_cost` |
| `pass@k`, `pass^k` | `--repeats` | 0 to 1 | Chen et al. 2021; τ-bench (Yao et al. 2024) |
| standard errors by template (`clustered_standard_error`) | `--repeats` | from 0 | Miller 2024 |
| `cohens_kappa` with its interval, `wilson_interval` | labels of people | −1 to 1; 0 to 1 | Cohen 1960; Wilson 1927 |
"""


def metrics_page() -> str:
    """Return the page in Markdown: a part for each metric."""
    return _HEAD + "\n".join(_lines()) + "\n" + _OTHERS + "\n" + "\n".join(_preparation()) + "\n"


def metric_keys() -> list[str]:
    """Return the keys of all metrics, with those of families for each of their members."""
    return [key for spec in BUILT_IN for key, _, _ in _members(spec)]


def _lines() -> Iterator[str]:
    titles = {"score": "Scores", "spent": "What was spent", "count": "Counts"}
    for kind, title in titles.items():
        yield ""
        yield f"## {title}"
        specs = [spec for spec in BUILT_IN if spec.kind == kind]
        for spec in sorted(specs, key=lambda each: (each.key != MAIN_METRIC, each.judge is not None)):
            for key, needs, source in _members(spec):
                yield from _metric(key, spec, needs, source)


def _members(spec: MetricSpec) -> Iterator[tuple[str, str, str]]:
    """Yield the keys of a metric or of a family's members, each with what it needs and its source."""
    if spec.key == RETRIEVAL_IDS:
        for measure in MEASURES.values():
            yield f"{spec.key}{measure.key}", f"{spec.requires}{measure.needs}", measure.source
        return
    for member in spec.members or ("",):
        yield f"{spec.key}{member}", spec.requires, spec.source


def _metric(key: str, spec: MetricSpec, needs: str, source: str) -> Iterator[str]:
    facts = FACTS[key]
    yield ""
    yield f"### {key}"
    yield ""
    if not spec.is_family:
        yield _sentence(spec.title)
        yield ""
    yield f"- **Formula:** {facts.formula}."
    yield f"- **Range:** {_range_text(spec)}; {'less' if spec.lower_is_better else 'more'} is better."
    if needs:
        yield f"- **Needs:** {needs}."
    yield f"- **Source:** {source}."
    if facts.code:
        yield ""
        yield "```python"
        yield f">>> {facts.code}"
        yield facts.value
        yield "```"


def _sentence(title: str) -> str:
    first, space, rest = title.partition(" ")
    return f"{f'`{first}`' if '_' in first else first.capitalize()}{space}{rest}."


def _preparation() -> Iterator[str]:
    yield "## What stands before the examples"
    yield ""
    yield "```python"
    yield PREPARED.rstrip()
    yield "```"


def _range_text(spec: MetricSpec) -> str:
    low, high = ("" if end is None else f"{end:g}".replace("-", "−") for end in spec.range)
    text = f"{low} to {high}" if high else f"from {low}"
    if spec.usual_range is not None:
        text += f", nearly always {spec.usual_range[0]:g} to {spec.usual_range[1]:g}"
    units = {"usd": "USD", "count": "counts"}
    return text if spec.unit == "score" else f"{text}, {units.get(spec.unit, spec.unit)}"
