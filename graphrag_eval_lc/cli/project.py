"""Finds the project file graphrag_eval.yaml, whose section ``run`` has the defaults of a command's options."""

import json
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from difflib import get_close_matches
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import typer

from graphrag_eval_lc.cli.printing import echo_err
from graphrag_eval_lc.config.loading import error_in_run, project_file, run_section
from graphrag_eval_lc.errors import OptionError

_OF_DOCTOR = ("agent", "dataset", "output", "agent_key_env", "input_fn")
# Which options of each command are read from the section ``run``; None: all of them.
_LOOKED_UP: Mapping[str, Collection[str] | None] = {
    "run": None,
    "validate": ("dataset",),
    "certify": ("dataset",),
    "doctor": _OF_DOCTOR,
}
_OUTPUT = "output"
_ONLY_ON_THE_COMMAND_LINE = ("config", "help", "help_all", "dry_run", "overwrite", "force")
_FOLDER_NAME = "%Y-%m-%dT%H-%M-%S"
_HELP = "A YAML or JSON file with the configuration; by default graphrag_eval.yaml in the current folder."


def _config_or_project_file(ctx: typer.Context, value: Path | None) -> Path | None:
    if ctx.resilient_parsing:  # a shell asks for completions
        return value
    path = value or project_file()
    if path is None:
        return None
    if value is None:
        echo_err(f"Using {path}.")
    command = str(ctx.command.name)
    if command in _LOOKED_UP:
        ctx.default_map = dict(_defaults(ctx, path, run_section(path), _LOOKED_UP[command]))
    return path


Config = Annotated[
    Path | None,
    # It is read before all other options, because it has their defaults.
    typer.Option(
        "--config",
        "-c",
        help=_HELP,
        metavar="FILE",
        callback=_config_or_project_file,
        is_eager=True,
        show_default=False,
    ),
]


Dataset = Annotated[
    Path | None,
    typer.Argument(
        help="The reference dataset (YAML, JSON or JSON Lines), by default the one that graphrag_eval.yaml names.",
        show_default=False,
    ),
]


def needed_for_run(config: Path | None, *, agent: str | None, dataset: Path | None) -> tuple[str, Path]:
    """Return the agent and the dataset of a run; raise an OptionError that shows how to name what is missing."""
    if agent is None and dataset is None and config is None:
        hint = (
            "To begin a project here: graphrag-eval-lc init --agent my_agent.py:agent. Or name both: graphrag-eval-lc "
            "run questions.yaml --agent my_agent.py:agent --output runs/first."
        )
        raise OptionError("found no graphrag_eval.yaml here, and agent and dataset are not named", hint=hint)
    if agent is None:
        raise _missing("agent", "--agent my_agent.py:agent", "my_agent.py:agent", config)
    return agent, needed_dataset(config, dataset)


def needed_dataset(config: Path | None, dataset: Path | None) -> Path:
    """Return the dataset of a command; raise an OptionError that shows how to name it if it is missing."""
    if dataset is None:
        raise _missing("dataset", "its file to the command", "questions.yaml", config)
    return dataset


def _missing(what: str, option: str, value: str, config: Path | None) -> OptionError:
    where = "graphrag_eval.yaml, which graphrag-eval-lc init writes" if config is None else str(config)
    return OptionError(f"no {what} is named", hint=f"Add {option}, or run: {{{what}: {value}}} to {where}.")


def new_run_folder(config: Path | None, shard: str | None = None) -> Path:
    """Return a new folder, named by the time, in the folder that ``run.output`` of a config names.

    The name also has the shard, such as ``3/16``, because other shards may begin in the same second.
    """
    parent = None if config is None else run_section(config).get(_OUTPUT)
    if parent is None:
        raise OptionError("no output folder is given", hint="Add --output DIR, or run: {output: runs} to the config.")
    of_shard = "" if shard is None else f"-{shard.replace('/', '-of-')}"
    folder = Path(str(parent)) / f"{datetime.now().strftime(_FOLDER_NAME)}{of_shard}"
    taken = (folder.with_name(f"{folder.name}-{number}") for number in count(2))
    return folder if not folder.exists() else next(each for each in taken if not each.exists())


def _defaults(
    ctx: typer.Context, path: Path, section: Mapping[str, Any], only: Collection[str] | None
) -> Iterator[tuple[str, Any]]:
    """Yield the Python name and the value of each option of a command that the section ``run`` sets."""
    options: dict[str, Any] = {
        name: option
        for option in ctx.command.get_params(ctx)
        for name in _names_of(option)
        if name not in _ONLY_ON_THE_COMMAND_LINE
    }
    for key, value in section.items():
        if (key == _OUTPUT and only is None) or (only is not None and key.replace("-", "_") not in only):
            continue
        option = options.get(str(key).replace("-", "_"))
        if option is None:
            near = get_close_matches(str(key), options, n=1, cutoff=0.5)
            hint = f"Did you mean {near[0]}?" if near else f"Its keys are options of run: {', '.join(options)}."
            raise error_in_run(path, f"unknown option {key!r:.80} of run", hint, str(key))
        if value is None:
            continue
        given = value  # in the form of the command line
        if isinstance(value, dict):
            given = json.dumps(value)
        elif option.multiple:
            given = [*map(str, value)] if isinstance(value, list) else [str(value)]
        try:
            option.process_value(ctx, given)
        except Exception as problem:  # newer versions of typer include a copy of click with its own classes
            text = getattr(problem, "message", None)
            if text is None:
                raise
            hint = text[:1].upper() + text[1:]
            raise error_in_run(path, f"{value!r:.80} is not allowed here", hint, str(key)) from None
        yield option.name, given


def _names_of(option: Any) -> list[str]:
    """Return the keys of an option in the section: its names on the command line, without leading dashes."""
    names = [name[2:].replace("-", "_") for name in option.opts if name.startswith("--")]
    return names or [option.name]
