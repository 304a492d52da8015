"""The tables of ``doctor --plugins``: what plugins and the package itself register."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from graphrag_eval_lc import matching
from graphrag_eval_lc.cli.printing import output_console, say
from graphrag_eval_lc.config import load_config
from graphrag_eval_lc.console import data_text
from graphrag_eval_lc.registry.custom_metrics import evaluators_of_users
from graphrag_eval_lc.registry.exporters import exporters
from graphrag_eval_lc.registry.metric_spec import MetricSpec
from graphrag_eval_lc.registry.metrics import BUILT_IN, JUDGES, metrics_of_users
from graphrag_eval_lc.registry.plugins import (
    Plugin,
    known_plugins,
    plugin_of,
    plugin_record,
    registered_name,
    registered_now,
)
from graphrag_eval_lc.registry.step_kinds import MatcherKey, custom_step_kinds

_OWN = "graphrag-eval-lc"


def print_plugins(config: Path | None, *, show_all: bool) -> None:
    """Print the plugins that are loaded, those of the config too, and what each adds.

    Args:
        config: The config; None: none.
        show_all: Whether the tables also list what the package itself registers.
    """
    load_config(config, has_llm=True, has_embeddings=True)
    console = output_console()
    sources = {name: plugin_of(name, function) for name, function in registered_now().items()}
    known = known_plugins()
    _show(console, "Plugins", ("plugin", "from", "version", "adds"), (_plugin_row(each, sources) for each in known))
    names = {name: source.name for name, source in sources.items()}
    for title, columns, rows in _tables(names, show_all):
        _show(console, title, columns, rows)
    if not known:
        say("No plugins found." + ("" if show_all else " --all shows what the package itself registers."))


def _tables(sources: Mapping[str, str], show_all: bool) -> Iterator[tuple[str, Sequence[str], Iterable[Sequence[str]]]]:
    """Yield the title, the columns and the rows of each table, those of plugins first; ``sources`` are by name."""
    metrics = [_metric_row(metric.spec, sources[f"metric {key}"]) for key, metric in metrics_of_users.items()]
    metrics += [_metric_row(spec, _OWN) for spec in BUILT_IN if show_all]
    yield "Metrics", ("metric", "title", "unit", "better", "plugin"), metrics
    kinds = [(key, kind, sources[registered_name(key)]) for key, kind in custom_step_kinds().items()]
    kinds += [(key, kind, _OWN) for kind in matching.BUILT_IN for key in kind.serves if show_all]
    rows = [(_served(key), kind.title, kind.reads, source) for key, kind, source in kinds]
    yield "Step kinds", ("reference steps", "title", "compares", "plugin"), rows
    evaluators = [(name, sources[f"evaluator {name}"]) for name in evaluators_of_users]
    yield "Evaluators", ("evaluator", "plugin"), evaluators
    known = [(each, sources.get(f"exporter {name}", _OWN)) for name, each in exporters().items()]
    written = [(each.name, each.title, each.file_name, source) for each, source in known if show_all or source != _OWN]
    yield "Exporters", ("exporter", "title", "writes", "plugin"), written
    judges = [(judge.key, ", ".join(spec.key for spec in judge.metrics), _OWN) for judge in JUDGES if show_all]
    yield "Judges", ("judge", "metrics", "plugin"), judges


def _show(console: Any, title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table, unless it has no rows."""
    table = Table(*columns, title=title, title_justify="left")
    for row in rows:
        table.add_row(*map(data_text, row))
    if table.row_count:
        console.print(table)


def _metric_row(spec: MetricSpec, plugin: str) -> tuple[str, ...]:
    key = f"{spec.key}…" if spec.is_family else spec.key
    return key, spec.title, spec.unit, "less" if spec.lower_is_better else "more", plugin


def _served(key: MatcherKey) -> str:
    """Return the reference steps that a kind compares, such as ``sparql_query with text/csv``."""
    name, media_type = key
    return " with ".join(part for part in (name or ("any" if media_type is None else None), media_type) if part)


def _plugin_row(plugin: Plugin, sources: Mapping[str, Plugin]) -> tuple[str, ...]:
    record = plugin_record(plugin, [name for name, source in sources.items() if source == plugin])
    way = f"{plugin.via} {plugin.entry_point.name}" if plugin.entry_point is not None else plugin.via
    version = [str(record[key]) for key in ("distribution", "version") if key in record]
    version += [f"sha256 {record['sha256'][:12]}"] if "sha256" in record else []
    return plugin.name, way, " ".join(version) or "not known", ", ".join(record["gives"]) or "nothing"
