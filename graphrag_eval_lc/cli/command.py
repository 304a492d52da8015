"""The class of all commands: loaded when called, with a short help, and without options that exclude each other."""

import re
from collections.abc import Mapping
from importlib import import_module
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand

from graphrag_eval_lc.benchmark.option_fields import EXCLUDING, NEEDING, WRITTEN, refuse_conflicts
from graphrag_eval_lc.cli.printing import say
from graphrag_eval_lc.errors import OptionError

_SHOWS_ALL: Final = "graphrag_eval_lc.help_all"
_DEFAULT: Final = "DEFAULT"
_OF_FILE: Final = "DEFAULT_MAP"  # what click calls the source of a value of the project file
# What graphrag-eval calls options of ``judge answers``.
_OTHER_NAMES: Final = {
    "--input-tsv-file-path": "--input",
    "--output-tsv-file-path": "--output",
    "--config-yaml-file-path": "--config",
}
_FIRST_SENTENCE = re.compile(r"[.;]\s")


class Command(TyperCommand):
    """A command whose function is loaded when it is called, or its own help is shown.

    ``--help`` shows the options without a panel, with the first sentence of each; ``--help-all`` shows all in full.
    """

    def load(self) -> None:
        """Load the function, and take over its options and its help."""
        module, _, name = vars(self.callback)["place"].partition(":")
        app = typer.Typer(add_completion=False)
        app.command()(getattr(import_module(f"graphrag_eval_lc.cli.{module}"), name))
        loaded: Any = typer.main.get_command(app)
        self.run, self.help = loaded.callback, loaded.help
        self.params = [*loaded.params, *_help_all(sum(map(_is_rare, loaded.params)))]

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Read the arguments."""
        self.load()
        return super().make_context(*args, **options)

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Read the options, also under graphrag-eval's names."""
        parts = (each.partition("=") for each in args)
        return super().parse_args(ctx, [f"{_OTHER_NAMES.get(name, name)}{sign}{value}" for name, sign, value in parts])

    def invoke(self, ctx: Any) -> Any:
        """Call the command, unless its options exclude each other."""
        _override_the_file(ctx)
        names = {each.name: max(each.opts, key=len) for each in self.params}
        refuse_conflicts(_given(ctx), ctx.params, command=self.name, called=lambda name: names.get(name, name))
        _refuse_same_files(ctx.params, names)
        return ctx.invoke(self.run, **ctx.params)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show the help: in short, or in full."""
        if any(map(_is_rare, self.params)) and not ctx.meta.get(_SHOWS_ALL):
            params: list[Any] = self.params
            for each in params:
                each.hidden = _is_rare(each)
                if each.help:
                    each.help = _first_sentence(each.help)
        super().format_help(ctx, formatter)


def _is_rare(option: Any) -> bool:
    return option.param_type_name == "option" and option.rich_help_panel is not None


def _help_all(rare: int) -> list[Any]:
    """Return the option ``--help-all`` of a command with rare options; of another one, none."""
    shown = f"Show every option in full, including {rare} less common ones."

    def command(
        help_all: Annotated[
            bool, typer.Option("--help-all", is_eager=True, expose_value=False, callback=_show_all, help=shown)
        ] = False,
    ) -> None: ...

    app = typer.Typer(add_completion=False)
    app.command()(command)
    loaded: Any = typer.main.get_command(app)
    return loaded.params[:1] if rare else []


def _show_all(ctx: typer.Context, is_wanted: bool) -> None:
    if is_wanted and not ctx.resilient_parsing:
        ctx.meta[_SHOWS_ALL] = True
        text = ctx.get_help()
        if text:  # without rich; with it, it is printed by now
            say(text)
        raise typer.Exit


def _first_sentence(text: str) -> str:
    """Return the text before the first full stop or semicolon, as a sentence.

    Example:
        >>> _first_sentence("The folder to write to. A run in it is resumed.")
        'The folder to write to.'
    """
    found = _FIRST_SENTENCE.search(text)
    return text if found is None else f"{text[: found.start()]}."


def _given(ctx: Any) -> dict[str, str]:
    """Return where each option comes from that is not left at its default, by its name in Python."""
    sources = {name: getattr(ctx.get_parameter_source(name), "name", _DEFAULT) for name in ctx.params}
    empty: tuple[Any, ...] = (None, (), [])
    return {
        name: source
        for name, source in sources.items()
        if source != _DEFAULT and ctx.params[name] is not False and ctx.params[name] not in empty
    }


def _override_the_file(ctx: Any) -> None:
    """Drop options of the project file that an option of the command line excludes, or that need a missing one."""
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
    option = next(each for each in ctx.command.params if each.name == name)
    ctx.params[name] = option.default
    ctx.set_parameter_source(name, type(ctx.get_parameter_source(name))[_DEFAULT])


def _refuse_same_files(values: Mapping[str, Any], names: Mapping[str, str]) -> None:
    """Refuse options that would write the same file.

    Raises:
        OptionError: There are two.
    """
    # Paths are texts here with older versions of typer.
    files = {name: Path(values[name]) for name in WRITTEN if values.get(name)}
    for one, other in combinations(files, 2):
        if files[one].resolve() == files[other].resolve():
            what = f"{names[one]} and {names[other]} are the same file"
            raise OptionError(what, path=files[one], hint="Use a separate file for each.")
