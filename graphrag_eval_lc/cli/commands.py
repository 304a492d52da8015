"""What all commands share: a short help and ``--help-all``, and options that exclude each other are refused."""

import inspect
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand

from graphrag_eval_lc.benchmark.option_fields import EXCLUDING, NEEDING, WRITTEN, Common, refuse_conflicts
from graphrag_eval_lc.cli.options import say
from graphrag_eval_lc.errors import OptionError

_SHOWS_ALL = "graphrag_eval_lc.help_all"
_DEFAULT: Final = "DEFAULT"
_OF_FILE: Final = "DEFAULT_MAP"  # what click calls the source of a value of the project file
_MOST_EXAMPLES = 2
_FIRST_SENTENCE = re.compile(r"[.;]\s")


def _show_all(ctx: typer.Context, is_wanted: bool) -> None:
    if is_wanted and not ctx.resilient_parsing:
        ctx.meta[_SHOWS_ALL] = True
        text = ctx.get_help()
        if text:  # without rich; with it, it is printed by now
            say(text)
        raise typer.Exit


HelpAll = Annotated[
    bool,
    typer.Option(
        "--help-all", is_eager=True, expose_value=False, callback=_show_all, help="Show all options, each in full."
    ),
]


class Command(TyperCommand):
    """A command: where options are marked ``COMMON``, its help has these alone, and ``--help-all`` all of them."""

    @property
    def _declaring(self) -> Any:
        """The command whose function declares the options."""
        return self

    @cached_property
    def _common(self) -> Mapping[str, Common]:
        """The marks of the options, by their names; empty where all options are shown."""
        parameters = inspect.signature(self._declaring.callback).parameters.values()
        marks = {each.name: getattr(each.annotation, "__metadata__", ()) for each in parameters}
        found = {name: mark for name, those in marks.items() for mark in those if isinstance(mark, Common)}
        return found if any(self._is_rare(each, found) for each in self._declaring.params) else {}

    @staticmethod
    def _is_rare(option: Any, common: Mapping[str, Common]) -> bool:
        is_option = option.param_type_name == "option" and not option.required
        return is_option and option.name not in (*common, "help", "help_all")

    @cached_property
    def _help_all(self) -> Any:
        def command(help_all: HelpAll = False) -> None: ...

        app = typer.Typer(add_completion=False)
        app.command()(command)
        option: Any = typer.main.get_command(app).params[0]
        option.hidden = not self._common
        return option

    def get_params(self, ctx: Any) -> Any:
        """Return the options, ``--help-all`` beside ``--help``."""
        options = super().get_params(ctx) if self._declaring is self else self._declaring.get_params(ctx)
        return [*options, self._help_all]

    def invoke(self, ctx: Any) -> Any:
        """Call the command, unless its options exclude each other."""
        _override_the_file(ctx)
        _refuse_conflicts(ctx)
        return super().invoke(ctx) if self._declaring is self else self._declaring.invoke(ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show the help: in short, or in full."""
        if not self._common or ctx.meta.get(_SHOWS_ALL):
            super().format_help(ctx, formatter)
            return
        with self._shortened(ctx):
            super().format_help(ctx, formatter)

    @contextmanager
    def _shortened(self, ctx: Any) -> Iterator[None]:
        """Leave out what few need: other options, panels, all but the first sentence of a help and some examples."""
        options = self.get_params(ctx)
        before = [(each, dict(vars(each))) for each in (self, *options)]
        try:
            for each in options:
                mark = self._common.get(each.name)
                if isinstance(getattr(each, "help", None), str):
                    each.help = (mark and mark.brief) or _first_sentence(each.help)
                if each.param_type_name == "option":
                    each.rich_help_panel = None
                    each.hidden = each.hidden or self._is_rare(each, self._common)
            hidden = sum(self._is_rare(each, self._common) for each in options)
            self._help_all.help = f"Show all options, {hidden} more, and say more of each."
            self.help = _with_few_examples(self.help or "")
            yield
        finally:
            for each, values in before:
                vars(each).clear()
                vars(each).update(values)


class ModelCommand(Command):
    """A command of ``with_fields_of``, which loads its models only when it is called or its help is shown."""

    @cached_property
    def _declaring(self) -> Any:
        app = typer.Typer(add_completion=False)
        app.command(self.name)(vars(self.callback)["completed"]())
        return typer.main.get_command(app)


def _first_sentence(text: str) -> str:
    """Return what stands before the first full stop or semicolon, as a sentence.

    Example:
        >>> _first_sentence("The folder to write to. A run that it holds goes on.")
        'The folder to write to.'
    """
    found = _FIRST_SENTENCE.search(text)
    return text if found is None else f"{text[: found.start()]}."


def _with_few_examples(text: str) -> str:
    """Return the first paragraph of a help text and its first examples, which are paragraphs of their own."""
    first, *others = text.split("\n\n")
    examples = [each for each in others if each.lstrip().startswith("`")]
    heading = [each for each in others if each.strip() == "For example:"]
    return "\n\n".join([first, *heading, *examples[:_MOST_EXAMPLES]])


def _given(ctx: Any) -> dict[str, str]:
    """Return what each option comes from that is not left at its default, by its name in Python."""
    sources = {name: getattr(ctx.get_parameter_source(name), "name", _DEFAULT) for name in ctx.params}
    empty: tuple[Any, ...] = (None, (), [])
    return {
        name: source
        for name, source in sources.items()
        if source != _DEFAULT and ctx.params[name] is not False and ctx.params[name] not in empty
    }


def _override_the_file(ctx: Any) -> None:
    """Leave out what the project file says and an option of the command line excludes, or nothing needs yet."""
    given = _given(ctx)
    for one, other, _ in EXCLUDING:
        of_file = [name for name in (one, other) if given.get(name) == _OF_FILE]
        if one in given and other in given and len(of_file) == 1:
            _reset(ctx, of_file[0])
    left = _given(ctx)
    for need in NEEDING:
        is_alone = not any(each in left for each in need.others)
        is_needless = (need.waits and is_alone) or any(each in given and each not in left for each in need.others)
        if given.get(need.option) == _OF_FILE and is_needless:
            _reset(ctx, need.option)


def _reset(ctx: Any, name: str) -> None:
    option = next(each for each in ctx.command.get_params(ctx) if each.name == name)
    ctx.params[name] = option.default
    ctx.set_parameter_source(name, type(ctx.get_parameter_source(name))[_DEFAULT])


def _refuse_conflicts(ctx: Any) -> None:
    names = {each.name: max(each.opts, key=len) for each in ctx.command.get_params(ctx)}
    command = ctx.command.name
    refuse_conflicts(_given(ctx), ctx.params, command=command, called=lambda name: names.get(name, name))
    # Paths are texts here with older versions of typer.
    files = {name: Path(ctx.params[name]) for name in WRITTEN if ctx.params.get(name)}
    for one, other in combinations(files, 2):
        if files[one].resolve() == files[other].resolve():
            what = f"{names[one]} and {names[other]} are the same file"
            raise OptionError(what, path=files[one], hint="Give each a file of its own.")
