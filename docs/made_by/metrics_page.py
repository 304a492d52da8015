"""The page on all metrics, generated from their declarations and from ``metric_facts``."""

from collections.abc import Iterator
from typing import NamedTuple

from graphrag_eval_lc.metrics.measures import MEASURES
from graphrag_eval_lc.registry import MetricSpec
from graphrag_eval_lc.registry.metrics import BUILT_IN, MAIN_METRIC, RETRIEVAL_IDS, RETRIEVAL_TEXT
from made_by.metric_facts import FACTS, PREPARED

_HEAD = """\
# Metrics

Every metric with its formula, range, requirements and source: first scores, then what was spent (tokens, time, cost),
then counts. A metric that could not be measured is absent, never 0. The aggregates have its mean, median, minimum and
maximum per template, over all questions (micro) and over templates (macro).
"""
_OTHERS = """
## Other numbers

| What | Needs | Range | Source |
|---|---|---|---|
| precision, recall, F1 and grade of rows (`compare_sparql_results`) | two query results | 0 to 1 | this project |
| custom evaluations | a model and your instructions, or a function | yours | graphrag-eval; agentevals (call shape) |
| `…_cost` of judges and custom evaluations | models with a known price | from 0, USD | as `agent_cost` |
| `pass@k`, `pass^k` | `--repeats` | 0 to 1 | Chen et al. 2021; τ-bench (Yao et al. 2024) |
| standard errors by template (`clustered_standard_error`) | `--repeats` | from 0 | Miller 2024 |
| `cohens_kappa` with its interval, `wilson_interval` | labels of people | −1 to 1; 0 to 1 | Cohen 1960; Wilson 1927 |
"""


def metrics_page() -> str:
    """Return the page in Markdown: a section for each metric."""
    return _HEAD + "\n".join(_lines()) + "\n" + _OTHERS + "\n" + "\n".join(_preparation()) + "\n"


def metric_keys() -> list[str]:
    """Return the keys of all metrics; families have one key per member."""
    return [member.key for spec in BUILT_IN for member in _members(spec)]


class Member(NamedTuple):
    """A single metric, or a member of a family."""

    key: str
    needs: str
    source: str
    functions: tuple[str, ...]


# Functions in Python whose names differ from those of the measures.
_FUNCTIONS = {"recall_capped": "recall_at_k"}
_TEXT_FUNCTIONS = ("text_context_precision", "text_context_recall")


def _lines() -> Iterator[str]:
    titles = {"score": "Scores", "spent": "What was spent", "count": "Counts"}
    for kind, title in titles.items():
        yield ""
        yield f"## {title}"
        specs = [spec for spec in BUILT_IN if spec.kind == kind]
        for spec in sorted(specs, key=lambda each: (each.key != MAIN_METRIC, each.judge is not None)):
            for member in _members(spec):
                yield from _metric(member, spec)


def _members(spec: MetricSpec) -> Iterator[Member]:
    """Yield a metric, or each member of a family."""
    if spec.key == RETRIEVAL_IDS:
        for measure in MEASURES.values():
            needs = f"{spec.requires}{measure.needs}"
            yield Member(f"{spec.key}{measure.key}", needs, measure.source, (_FUNCTIONS.get(measure.key, measure.key),))
        return
    for member in spec.members or ("",):
        functions = _TEXT_FUNCTIONS if spec.key == RETRIEVAL_TEXT else ()
        yield Member(f"{spec.key}{member}", spec.requires, spec.source, functions)


def _metric(member: Member, spec: MetricSpec) -> Iterator[str]:
    facts = FACTS[member.key]
    yield ""
    yield f"### {member.key}"
    yield ""
    if not spec.is_family:
        yield _sentence(spec.title)
        yield ""
    yield f"- **Formula:** {facts.formula}."
    yield f"- **Range:** {_range_text(spec)}; {'less' if spec.lower_is_better else 'more'} is better."
    if member.needs:
        yield f"- **Needs:** {member.needs}."
    yield f"- **Source:** {member.source}."
    if member.functions:
        names = " and ".join(f"`{name}`" for name in member.functions)
        yield f"- **In Python:** {names} of `graphrag_eval_lc.metrics`."
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
    yield "## Set-up of the examples"
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
