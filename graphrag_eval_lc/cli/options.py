"""Declares options: those that commands share, those in a command's docstring, and those from option models."""

import inspect
import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar, get_args, get_origin

import typer

from graphrag_eval_lc.benchmark.option_fields import (
    DISPLAY,
    FOLDER,
    GATES,
    MORE,
    OF_FIELD,
    PANELS,
    QUIET,
    Cli,
    cli_options,
)
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.metrics.measures import MEASURES
from graphrag_eval_lc.registry.metrics import MAIN_METRIC, aggregated_metrics
from graphrag_eval_lc.registry.plugins import load_installed_plugins, load_plugins

F = TypeVar("F", bound=Callable[..., Any])
_SCALARS = (bool, int, float, str)
_NAME = re.compile(r"``([^`]+)``")
SELECTING: Final = ("template_ids", "question_ids", "answered_only")


def option(names: str, text: str, metavar: str | None = None, panel: str | None = None, **more: Any) -> Any:
    """Declare an option for typer: its names separated by spaces, such as ``--output -o``, and what it does.

    The short help shows the first sentence. Options in a panel are rare, so only ``--help-all`` shows them.
    """
    return typer.Option(*names.split(), help=text, metavar=metavar, rich_help_panel=panel, **more)


def complete_metric(incomplete: str) -> list[str]:
    """Complete the name of a metric; those of retrieval and of plugins are unknown before a run."""
    return [spec.key for spec in aggregated_metrics("questions") if spec.key.startswith(incomplete)]


def complete_measure(incomplete: str) -> list[str]:
    """Complete the last name in a comma-separated list of measures."""
    closed, comma, last = incomplete.rpartition(",")
    return [f"{closed}{comma}{name}" for name in MEASURES if name.startswith(last)]


# Options that several commands have, by the names of their parameters, as ``with_options`` reads them.
_SHARED: Final = f"""
Options:
    config --config -c FILE: A YAML or JSON file with the configuration.
    output --output -o FILE: The file to write: JSON if its name ends in .json, otherwise YAML.
    --overwrite: Replace existing files.
    quiet --quiet -q: {QUIET.help}
    --endpoint URL: The SPARQL endpoint of the graph. Default: graph.endpoint of the config.
    --graph FILE: An RDF file instead of an endpoint: .ttl, .nt, .rdf, …, or one of these as .gz.
    --timeout SEC (min 0.1): Seconds for each query.
    --max-concurrency -j N (min 1): How many queries are run at the same time.
    --fail-under METRIC=MEAN: Exit with 1 if the mean of a score is lower, such as {MAIN_METRIC}=0.9. Failed questions
        count as 0. TEMPLATE/METRIC=MEAN counts the questions of one template; may be repeated.

{GATES}:
    --fail-over [TEMPLATE/]METRIC[.STATISTIC]=NUMBER: Exit with 1 if the mean of a lower-is-better metric is above this
        number, such as total_tokens=5000. METRIC.median, .p95, .min, .max and .sum are over samples, one for each
        repeat of a question (.sum includes failed attempts), such as elapsed_sec.p95=30. Failed questions count with
        what they used. May be repeated.

{FOLDER}:
    --no-report: Do not write report.html into the folder.

{DISPLAY}:
    as_json --json: Print one JSON document instead of the tables. Messages, progress and the agent's output go to
        standard error.
    --worst (min 0): How many of the worst questions to show.
    --summary FILE|none: Write the verdict, the scores and the worst questions as Markdown. In a GitHub job they are
        also added to the job's summary ($GITHUB_STEP_SUMMARY), unless this is none.
    --junit FILE: Write a test case for each question as JUnit XML: a failure if its score `repeats.metric` is below
        `repeats.threshold` of the config (by default steps_score and 1) in any of its repeats; an error if the agent
        failed.

{MORE}:
    --measures NAMES: Retrieval measures on document ids, instead of those in the config: {", ".join(MEASURES)}. Most of
        them accept a cut-off, such as P@5,nDCG@10. May be repeated.
    plugins --plugin MODULE: A module that registers your metrics, step kinds, matchers or evaluators when it is loaded,
        as package.module or path/to/file.py; may be repeated. Plugins of installed packages are loaded automatically.
"""
_COMPLETIONS: Final[Mapping[str, Any]] = {
    "--measures NAMES": complete_measure,
    "--metric METRIC": complete_metric,  # some commands have a closed list instead
    "--redact secrets|FUNCTION": lambda: ["secrets"],
}


def with_options(*models: Any, only: Collection[str] | None = None) -> Callable[[F], F]:
    """Declare the options of a command: those that its docstring lists, and the fields of option models.

    A docstring lists them under ``Options:``, the rare ones under the names of their panels: ``--output -o FILE: …``,
    ``--show (min 0): …``, ``run RUN_DIR: …`` for an argument, and ``reference --dataset: …`` if the parameter has
    another name than the option. Types and defaults are those of the function's parameters. ``only`` limits the fields
    that become options. In each panel the command's own options come first. A parameter with the name of a field
    replaces the field.
    """

    def declared(function: F) -> F:
        if sys.flags.optimize > 1:
            what = "the command line declares its options in docstrings, which this Python leaves out"
            raise OptionError(what, hint="Start Python without -OO, and without PYTHONOPTIMIZE=2.")
        function.__doc__, own_options = _listed_options(inspect.getdoc(function) or "")
        listed = _listed_options(_SHARED)[1] | own_options
        parameters = inspect.signature(function, eval_str=True).parameters.values()
        own = [_documented(each, listed) for each in parameters if each.kind is not each.VAR_KEYWORD]
        assert not own_options.keys() & listed, f"no parameters for the options of {function.__name__}"
        fields = {name: each for model in models for name, each in cli_options(model).items()}
        names = {name: option_name(name, cli) for name, (_, cli) in fields.items()}
        left = fields.keys() - {each.name for each in own} if only is None else only
        found = [*own, *(_parameter(name, *fields[name], names, only is not None) for name in fields if name in left)]
        if models:
            found.sort(key=lambda each: PANELS.index(each.annotation.__metadata__[0].rich_help_panel))
        keyword = inspect.Parameter.KEYWORD_ONLY
        vars(function)["__signature__"] = inspect.Signature([each.replace(kind=keyword) for each in found])
        return function

    return declared


def _listed_options(doc: str) -> tuple[str, dict[str, Any]]:
    """Split a command's docstring into its help and its options, the latter by the names of their parameters."""
    text, _, rest = doc.partition("\nOptions:\n")
    panel: str | None = None
    entries: list[tuple[str, str | None]] = []
    for line in filter(None, rest.split("\n")):
        if not line.startswith(" "):
            panel = line.removesuffix(":")
        elif line.startswith(" " * 8):
            entries[-1] = (f"{entries[-1][0]} {line.strip()}", panel)
        else:
            entries.append((line.strip(), panel))
    listed = {}
    for entry, panel in entries:
        head, said = entry.split(": ", 1)
        bounds = {bound: json.loads(number) for bound, number in re.findall(r"(min|max) ([\d.]+)", head)}
        first, *words = re.sub(r" \(m.*\)", "", head).split()
        names = [word for word in (first, *words) if word.startswith("-")]
        metavar = " ".join(word for word in words if word not in names) or None
        more: dict[str, Any] = {"help": said, "metavar": metavar, "rich_help_panel": panel, **bounds}
        if names and (completion := _COMPLETIONS.get(f"{names[0]} {metavar}")) is not None:
            more["autocompletion"] = completion
        listed[first.lstrip("-").replace("-", "_")] = (typer.Option if names else typer.Argument)(*names, **more)
    return text.rstrip(), listed


def _documented(parameter: inspect.Parameter, listed: dict[str, Any]) -> inspect.Parameter:
    """Annotate a parameter of a command with the option in its docstring, or with the shared option of its name."""
    if get_origin(parameter.annotation) is Annotated:
        return parameter
    name = parameter.name if parameter.name in listed else parameter.name.removesuffix("s")  # --metric, repeated
    annotation: Any = Annotated[parameter.annotation, listed.pop(name)]
    return parameter.replace(annotation=annotation)


def keywords(model: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a command's options as keyword arguments for a model, without those that were not given."""
    return {
        name: given[name] if cli.converts is None else cli.converts(given[name])
        for name, (_, cli) in cli_options(model).items()
        if given.get(name) is not None
    }


def option_name(name: str, cli: Cli) -> str:
    """Return the name of a field on the command line."""
    return cli.name or f"--{name.replace('_', '-')}"


def _parameter(name: str, field: Any, cli: Cli, names: Mapping[str, str], is_common: bool) -> inspect.Parameter:
    # The field's description uses the Python names of other options.
    text = cli.help or _NAME.sub(lambda found: names.get(found[1], found[1]), field.description)
    kind, default = _type_of(field, cli), field.default if cli.default is OF_FIELD else cli.default
    if default == ():
        default = None
    if isinstance(default, float) and default.is_integer():
        default = int(default)  # as --help shows it
    least = next((mark.ge for mark in field.metadata if hasattr(mark, "ge")), None)
    panel = None if cli.is_common or is_common else cli.panel or MORE
    info = option(f"{option_name(name, cli)} {cli.short or ''}", text, cli.metavar, panel, min=least)
    annotation: Any = Annotated[kind if default is not None else kind | None, info]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _type_of(field: Any, cli: Cli) -> Any:
    if cli.type is not OF_FIELD:
        return cli.type
    kinds = get_args(field.annotation) or (field.annotation,)
    if get_origin(field.annotation) is Sequence:
        return list[str]
    if any(get_origin(kind) is PathLike for kind in kinds):
        return Path
    return next((kind for kind in kinds if kind in _SCALARS), str)  # a Literal is a string


def load_named_plugins(names: Iterable[str] | None) -> None:
    """Load the plugins of installed packages, then those of ``--plugin``."""
    load_installed_plugins()
    load_plugins(names or (), via="--plugin")


def measure_names(given: Iterable[str] | None) -> list[str] | None:
    """Return the names in ``--measures``, which may be repeated or separated by commas; None if it is not given."""
    if given is None:
        return None
    listed = comma_separated(given)
    if not listed:
        raise OptionError("--measures names no measure", hint="Write it as --measures P@5,nDCG@10, or leave it out.")
    return listed


def comma_separated(given: Iterable[str]) -> list[str]:
    """Return the values of an option that may be repeated, and may have several values separated by commas."""
    return [value.strip() for values in given for value in values.split(",") if value.strip()]
