"""The command ``plugins``: which metrics, step kinds, evaluators, judges and exporters are known, and from where."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_eval_lc.cli.options import Plugins, load_named_plugins, output_console, say
from graphrag_eval_lc.cli.project import Config

if TYPE_CHECKING:
    from graphrag_eval_lc.registry.metric_spec import MetricSpec
    from graphrag_eval_lc.registry.plugins import Plugin
    from graphrag_eval_lc.registry.step_kinds import MatcherKey

_OWN = "graphrag-eval-lc"


def plugins(
    plugins: Plugins = None,
    config: Config = None,
    show_all: Annotated[bool, typer.Option("--all", help="Show what the package itself has, too.")] = False,
) -> None:
    """Show what plugins add: metrics, step kinds, evaluators and exporters, and from which version of what each comes.

    These are the plugins of installed packages (entry points of the group `graphrag_eval_lc`, unless
    `GRAPHRAG_EVAL_LC_NO_PLUGINS` is set), those of `--plugin`, and those that the config names.

    Exit code 0: all could be loaded; 2: one could not.

    For example:

    `graphrag-eval-lc plugins`

    `graphrag-eval-lc plugins --plugin my_package.metrics --plugin checks.py --config config.yaml`

    `graphrag-eval-lc plugins --all`
    """
    # Imported here so that --help does not wait for pydantic.
    from graphrag_eval_lc.config import load_config
    from graphrag_eval_lc.registry.plugins import known_plugins, plugin_of, registered_now

    load_named_plugins(plugins)
    load_config(config, has_llm=True, has_embeddings=True)
    console = output_console()
    sources = {name: plugin_of(name, function) for name, function in registered_now().items()}
    known = known_plugins()
    _show(console, "Plugins", ("plugin", "from", "version", "gives"), (_plugin_row(each, sources) for each in known))
    names = {name: source.name for name, source in sources.items()}
    for title, columns, rows in _tables(names, show_all):
        _show(console, title, columns, rows)
    if not known:
        say("There are no plugins." + ("" if show_all else " What the package itself has: --all."))


def _tables(sources: Mapping[str, str], show_all: bool) -> Iterator[tuple[str, Sequence[str], Iterable[Sequence[str]]]]:
    """Yield the title, the columns and the rows of each table, those of plugins first; ``sources`` are by name."""
    from graphrag_eval_lc.matching import BUILT_IN as BUILT_IN_KINDS
    from graphrag_eval_lc.registry.custom_metrics import registered_evaluators
    from graphrag_eval_lc.registry.exporters import exporters
    from graphrag_eval_lc.registry.metrics import BUILT_IN, JUDGES, registered_metrics
    from graphrag_eval_lc.registry.step_kinds import custom_step_kinds, registered_name

    metrics = [_metric_row(metric.spec, sources[f"metric {key}"]) for key, metric in registered_metrics().items()]
    metrics += [_metric_row(spec, _OWN) for spec in BUILT_IN if show_all]
    yield "Metrics", ("metric", "title", "unit", "better", "plugin"), metrics
    kinds = [(key, kind, sources[registered_name(key)]) for key, kind in custom_step_kinds().items()]
    kinds += [(key, kind, _OWN) for kind in BUILT_IN_KINDS for key in kind.serves if show_all]
    rows = [(_served(key), kind.title, kind.reads, source) for key, kind, source in kinds]
    yield "Step kinds", ("reference steps", "title", "compares", "plugin"), rows
    evaluators = [(name, sources[f"evaluator {name}"]) for name in registered_evaluators()]
    yield "Evaluators", ("evaluator", "plugin"), evaluators
    known = [(each, sources.get(f"exporter {name}", _OWN)) for name, each in exporters().items()]
    written = [(each.name, each.title, each.file_name, source) for each, source in known if show_all or source != _OWN]
    yield "Exporters", ("exporter", "title", "writes", "plugin"), written
    judges = [(judge.key, ", ".join(spec.key for spec in judge.metrics), _OWN) for judge in JUDGES if show_all]
    yield "Judges", ("judge", "metrics", "plugin"), judges


def _show(console: Any, title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; nothing where it has no rows."""
    from rich.table import Table

    from graphrag_eval_lc.console import data_text

    table = Table(*columns, title=title, title_justify="left")
    for row in rows:
        table.add_row(*map(data_text, row))
    if table.row_count:
        console.print(table)


def _metric_row(spec: "MetricSpec", plugin: str) -> tuple[str, ...]:
    key = f"{spec.key}…" if spec.is_family else spec.key
    return key, spec.title, spec.unit, "less" if spec.lower_is_better else "more", plugin


def _served(key: "MatcherKey") -> str:
    """Return the reference steps that a kind compares, such as ``sparql_query with text/csv``."""
    name, media_type = key
    return " with ".join(part for part in (name or ("any" if media_type is None else None), media_type) if part)


def _plugin_row(plugin: "Plugin", sources: Mapping[str, "Plugin"]) -> tuple[str, ...]:
    from graphrag_eval_lc.registry.plugin_records import plugin_record

    record = plugin_record(plugin, [name for name, source in sources.items() if source == plugin])
    way = f"{plugin.via} {plugin.entry_point.name}" if plugin.entry_point is not None else plugin.via
    version = [str(record[key]) for key in ("distribution", "version") if key in record]
    version += [f"sha256 {record['sha256'][:12]}"] if "sha256" in record else []
    return plugin.name, way, " ".join(version) or "not known", ", ".join(record["gives"]) or "nothing"
