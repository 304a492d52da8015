"""Commands that take the fields of a model of options: each field with a ``Cli`` is an option of the command line."""

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import update_wrapper
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar, get_args, get_origin

import typer

from graphrag_eval_lc.benchmark.option_fields import COMMON, OF_FIELD, PANELS, Cli, cli_options

if TYPE_CHECKING:
    from graphrag_eval_lc.benchmark.score_options import ScoreRunOptions

F = TypeVar("F", bound=Callable[..., Any])
_SCALARS = (bool, int, float, str)
_NAME = re.compile(r"``([^`]+)``")
SELECTING: Final = ("template_ids", "question_ids", "answered_only")


@dataclass(frozen=True, slots=True)
class After:
    """Places a command's own option after the one of this name, where the command has it."""

    name: str


def scoring_model() -> "tuple[type[ScoreRunOptions]]":
    """Return a model with the options that select questions, for ``with_fields_of`` with ``only=SELECTING``."""
    # Imported here so that --help does not wait for pydantic.
    from graphrag_eval_lc.benchmark.score_options import ScoreRunOptions

    return (ScoreRunOptions,)


def with_fields_of(load: Callable[[], Sequence[Any]], *, only: Collection[str] | None = None) -> Callable[[F], F]:
    """Add the fields of models to a command's own parameters; their values come by name, as ``**options``.

    In each panel of the help, own parameters before the ``*`` stand before the fields, those after it after them, or
    where ``After`` says. An own parameter replaces the field of its name.

    Args:
        load: Loads the models, when the command is called or its help is shown.
        only: The fields that the command takes; None for all.
    """

    def declared(function: F) -> F:
        own = [each for each in inspect.signature(function).parameters.values() if each.kind is not each.VAR_KEYWORD]

        def completed() -> Callable[..., None]:
            def command(**values: Any) -> None:
                function(**values)

            update_wrapper(command, function)
            found = {name: each for model in load() for name, each in cli_options(model).items()}
            left = found.keys() - {each.name for each in own} if only is None else set(only)
            names = {name: option_name(name, cli) for name, (_, cli) in found.items()}
            fields = [_parameter(name, *found[name], names) for name in found if name in left]
            vars(command)["__signature__"] = inspect.Signature(_in_order(own, fields))
            return command

        vars(function).update(completed=completed, __signature__=inspect.Signature())
        return function

    return declared


def keywords(model: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a command's options as keywords of Python for a model, without those that were not given."""
    return {
        name: given[name] if cli.converts is None else cli.converts(given[name])
        for name, (_, cli) in cli_options(model).items()
        if given.get(name) is not None
    }


def option_name(name: str, cli: Cli) -> str:
    """Return the name of a field on the command line."""
    return cli.name or f"--{name.replace('_', '-')}"


def option(cli: Cli, name: str = "", *, help_text: str | None = None, least: float | None = None) -> Any:
    """Return an option as typer declares it."""
    names = [option_name(name, cli), *([cli.short] if cli.short else [])]
    text = cli.help or help_text
    return typer.Option(*names, help=text, metavar=cli.metavar, min=least, rich_help_panel=cli.panel)


def _parameter(name: str, field: Any, cli: Cli, names: Mapping[str, str]) -> inspect.Parameter:
    # The description calls other options by their names in Python.
    text = _NAME.sub(lambda found: names.get(found[1], found[1]), field.description)
    kind, default = _type_of(field, cli), field.default if cli.default is OF_FIELD else cli.default
    if default == ():
        default = None
    if isinstance(default, float) and default.is_integer():
        default = int(default)  # as --help shows it
    ge = next((mark.ge for mark in field.metadata if hasattr(mark, "ge")), None)
    info = option(cli, name, help_text=text, least=ge)
    kind = kind if default is not None else kind | None
    annotation: Any = Annotated[kind, info, COMMON] if cli.is_common else Annotated[kind, info]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _type_of(field: Any, cli: Cli) -> Any:
    if cli.type is not OF_FIELD:
        return cli.type
    kinds = get_args(field.annotation) or (field.annotation,)
    if get_origin(field.annotation) is Sequence:
        return list[str]
    if any(get_origin(kind) is PathLike for kind in kinds):
        return Path
    return next((kind for kind in kinds if kind in _SCALARS), str)  # a literal is a text


def _in_order(own: Sequence[inspect.Parameter], fields: Sequence[inspect.Parameter]) -> list[inspect.Parameter]:
    """Return the parameters of a command as its help shows them."""
    placed = [*(each for each in own if each.kind is not each.KEYWORD_ONLY), *fields]
    for each in own:
        if each.kind is each.KEYWORD_ONLY:
            anchor = next((mark.name for mark in _marks(each) if isinstance(mark, After)), None)
            names = [other.name for other in placed]
            placed.insert(names.index(anchor) + 1 if anchor in names else len(placed), each)
    by_panel = sorted(placed, key=lambda each: PANELS.index(_marks(each)[0].rich_help_panel))
    return [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in by_panel]


def _marks(parameter: inspect.Parameter) -> Any:
    return parameter.annotation.__metadata__
