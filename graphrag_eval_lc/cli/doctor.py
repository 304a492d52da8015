"""The command ``doctor``: checks what a run needs; or lists plugins, or finds secrets in the files of runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from graphrag_eval_lc import matching
from graphrag_eval_lc.cli.options import load_named_plugins, with_options
from graphrag_eval_lc.cli.printing import EXIT_FINDINGS, output_console, print_json, say
from graphrag_eval_lc.cli.project import Config
from graphrag_eval_lc.config import load_config
from graphrag_eval_lc.console import data_text
from graphrag_eval_lc.onboarding.doctor import Examination
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
from graphrag_eval_lc.run_store.secret_scan import Scan, scan_secrets
from graphrag_eval_lc.texts import counted

_WIDTH = 9


@with_options()
def doctor(
    agent: str | None = None,
    dataset: Path | None = None,
    output: Path | None = None,
    config: Config = None,
    agent_key_env: str | None = None,
    input_fn: str | None = None,
    ask: bool = False,
    ask_models: bool = False,
    as_json: bool = False,
    shows_plugins: bool = False,
    show_all: bool = False,
    plugins: list[str] | None = None,
    secrets: Path | None = None,
    mask: bool = False,
) -> None:
    """Check what a run needs: versions, config, agent, dataset, gates, models.

    Missing options are read from `graphrag_eval.yaml`, which `init` writes. It costs nothing, unless you add `--ask` or
    `--ask-models`. Exits with 1 if it finds errors, or secrets, even if they are masked now.

    For example:

    `graphrag-eval-lc doctor --agent my_agent.py:agent --dataset questions.yaml`

    Options:
        show_all --all: With --plugins: also list what the package itself registers.
        shows_plugins --plugins: Instead list the plugins and what they add: those of installed packages (entry points
            of the group graphrag_eval_lc, unless GRAPHRAG_EVAL_LC_NO_PLUGINS is set), those of --plugin, and those of
            the config.
        as_json --json: Print JSON instead of text.
        --agent -a SPEC: The agent, as for run.
        --dataset -d FILE: The reference dataset.
        --output -o DIR: The folder that runs are written to.
        --agent-key-env NAME: The environment variable with the key of the agent's server.
        --input-fn SPEC: A function that makes the agent's input from a question.
        --ask: Ask the agent the first question of the dataset, which may cost.
        --ask-models: Send each model of the judges one tiny request.
        --secrets PATH: Instead find keys, tokens and passwords in this run, folder of runs or file.
        --mask: With --secrets: replace the secrets in the files by ***, which cannot be undone.
    """
    if secrets is not None:
        find_secrets(secrets, mask=mask, as_json=as_json)
        return
    load_named_plugins(plugins)
    if shows_plugins:
        print_plugins(config, show_all=show_all)
        return
    examination = Examination(
        agent=agent,
        dataset=dataset,
        config=config,
        output=output,
        agent_key_env=agent_key_env,
        input_fn=input_fn,
        asks_agent=ask,
        asks_models=ask_models,
    )
    levels: list[str] = []
    rows: list[dict[str, Any]] = []
    for check in examination.checks():
        levels.append(check.level)
        if as_json:
            rows.append({"area": check.area, "level": check.level, "what": check.what, "hint": check.hint})
            continue
        say(f"{check.level:{_WIDTH}} {check.area:{_WIDTH}} {check.what}", keeps_lines=False)
        if check.hint:
            say(f"{'':{_WIDTH}} {'':{_WIDTH}} {check.hint}", keeps_lines=False)
    errors, warnings = levels.count("error"), levels.count("warning")
    if as_json:
        print_json({"checks": rows, "errors": errors, "warnings": warnings})
    else:
        found = [counted(number, word) for number, word in ((errors, "error"), (warnings, "warning")) if number]
        say(f"\n{' and '.join(found) or 'No problems found'}.")
    if errors:
        raise typer.Exit(EXIT_FINDINGS)


_OWN = "graphrag-eval-lc"


def print_plugins(config: Path | None, *, show_all: bool) -> None:
    """Print the loaded plugins, including those of the config, and what each adds."""
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
    """Yield title, columns and rows of each table, that of plugins first.

    ``sources`` maps the names of everything registered to the plugin that registered it.
    """
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


def find_secrets(path: Path, *, mask: bool, as_json: bool) -> None:
    """Print the secrets in a file, the folder of a run or a folder of runs."""
    found = scan_secrets(path, mask=mask)
    if as_json:
        secrets = [
            {"file": str(each.path), "line": each.line, "question_id": each.question_id}
            | {"kind": each.kind, "hint": each.hint}
            for each in found.secrets
        ]
        unread = {str(path): why for path, why in found.unread.items()}
        print_json({"files": found.files, "secrets": secrets, "masked": list(map(str, found.masked)), "unread": unread})
    else:
        _print_scan(found)
    if found.secrets:
        raise typer.Exit(EXIT_FINDINGS)


def _print_scan(found: Scan) -> None:
    if found.secrets:
        table = Table(show_edge=False)
        for heading in ("File", "Line", "Question", "Kind", "Shape"):
            table.add_column(heading, justify="right" if heading == "Line" else "left", overflow="fold")
        for each in found.secrets:
            cells = (_shown(each.path, found), f"{each.line:,}", each.question_id or "", each.kind, each.hint)
            table.add_row(*map(data_text, cells))
        output_console().print(table)
    for path, why in found.unread.items():
        say(f"Not searched: {_shown(path, found)}: {why}.", keeps_lines=False)
    files = counted(found.files, "file")
    if not found.secrets:
        say(f"No secret was found in {files}.")
        return
    secrets = counted(len(found.secrets), "secret")
    if found.masked:
        say(f"Masked: {secrets} in {len(found.masked)} of {files}.")
        say(
            "Revoke these keys and passwords anyway: anyone who read the files has them, and so have copies, backups "
            "and uploads. Judges send new requests for texts that changed."
        )
    else:
        say(f"Found: {secrets} in {files}. Mask them with --mask, and revoke them.")


def _shown(path: Path, found: Scan) -> str:
    return str(path.relative_to(found.path)) if path != found.path else str(path)
