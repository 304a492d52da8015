"""The page on the command line, generated from the commands."""

import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, get_args

import typer

from graphrag_eval_lc.cli.main import app
from graphrag_eval_lc.cli.printing import EXIT_ERROR, EXIT_FINDINGS, EXIT_INTERRUPTED, EXIT_NOTHING, EXITS_BY_SIGNAL

BAR = "\\|"
_KINDS: dict[Any, str] = {int: "N", float: "NUMBER", Path: "PATH"}
_EXITS = {
    0: "good",
    EXIT_FINDINGS: "findings: no question was answered, the run ended early, or a gate failed",
    EXIT_ERROR: "wrong usage or input",
    EXIT_NOTHING: "nothing could be compared",
    EXIT_INTERRUPTED: "interrupted by Ctrl-C",
    **{code: f"ended by {signal}" for signal, code in EXITS_BY_SIGNAL.items()},
}


def cli_page() -> str:
    """Return the page in Markdown: a section for each command, with a table for each group of options."""
    return "\n".join(_lines()).rstrip() + "\n"


def _lines() -> Iterator[str]:
    group: Any = typer.main.get_command(app)
    context = typer.Context(group, info_name="graphrag-eval-lc")
    yield "# Command line"
    yield ""
    yield "Every command of `graphrag-eval-lc` (or `python -m graphrag_eval_lc`) with its arguments, options and exit"
    yield "codes. If the current folder has a `graphrag_eval.yaml`, it is used as `--config`; options on the command"
    yield "line override it. `--debug` shows the traceback of an error."
    yield ""
    yield "| Exit code | Meaning |"
    yield "|---:|---|"
    for code, meaning in sorted(_EXITS.items()):
        yield f"| {code} | {meaning} |"
    for name in group.list_commands(context):
        command = group.commands[name]
        for inner_name, inner in getattr(command, "commands", {}).items():
            yield from _command_lines(f"{name} {inner_name}", inner, context)
        if not command.hidden and not hasattr(command, "commands"):
            yield from _command_lines(name, command, context)


def _command_lines(name: str, command: Any, parent: Any) -> Iterator[str]:
    context = typer.Context(command, info_name=name, parent=parent)
    command.load()
    yield ""
    yield f"## {name}"
    yield ""
    parameters = [each for each in command.get_params(context) if each.name not in ("help", "help_all")]
    arguments = [each for each in parameters if each.param_type_name == "argument"]
    shown = " ".join(_argument(each) for each in arguments)
    yield "```text"
    yield f"graphrag-eval-lc {name}{' ' if shown else ''}{shown} [OPTIONS]"
    yield "```"
    yield ""
    yield from _help_lines(command.help or "")
    panels: dict[str, list[Any]] = {}
    for each in parameters:
        panels.setdefault(getattr(each, "rich_help_panel", None) or "", []).append(each)
    for panel, options in panels.items():
        yield ""
        if panel:
            yield f"**{panel}**"
            yield ""
        yield "| Option | Value | What it does |"
        yield "|---|---|---|"
        for option in options:
            yield _row(option, context)


def _help_lines(text: str) -> Iterator[str]:
    """Yield a help text with its examples as one block of commands."""
    about, _, examples = text.partition("For example:")
    yield about.strip().replace("\b", "")
    commands = re.findall(r"`(graphrag-eval-lc [^`]*)`", examples)
    if commands:
        yield ""
        yield "```text"
        yield from (f"$ {each}" for each in commands)
        yield "```"


def _argument(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return name if argument.required else f"[{name}]"


def _row(option: Any, context: Any) -> str:
    is_argument = option.param_type_name == "argument"
    names = [_argument(option)] if is_argument else [*option.opts, *option.secondary_opts]
    value = "argument" if is_argument else "" if option.is_flag else f"`{option.metavar or _kind(option)}`"
    about = " ".join((option.help or "").split())
    default = option.get_default(context)
    if default not in (None, False, (), [], "") and not callable(default):
        about += f" Default: `{getattr(default, 'value', default)}`."
    if option.multiple and "repeated" not in about:
        about += " May be repeated."
    if option.required:
        about += " Required."
    cells = (", ".join(f"`{name}`" for name in names), value, about)
    return f"| {' | '.join(cell.replace('|', BAR) for cell in cells)} |"


def _kind(option: Any) -> str:
    """Return the placeholder for a value, by its type."""
    described = getattr(option, "type_descriptor", None)  # newer versions of typer
    kind = described.annotation if described is not None else None
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "|".join(str(each.value) for each in kind)
    return _KINDS.get(get_args(kind)[0] if get_args(kind) else kind, "TEXT")
