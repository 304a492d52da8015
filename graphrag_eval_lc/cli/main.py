"""The entry point of the command line: its commands, each loaded when it is called, exit codes, and errors."""

import io
import os
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from itertools import combinations
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Final, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from graphrag_eval_lc import __version__
from graphrag_eval_lc.benchmark.option_fields import EXCLUDING, NEEDING, WRITTEN, refuse_conflicts
from graphrag_eval_lc.cli.printing import EXIT_ERROR, EXIT_NOTHING, echo_err, say
from graphrag_eval_lc.console import fill_closed_output, kept_output
from graphrag_eval_lc.errors import PROJECT_ADDRESS, GraphRAGEvalError, NothingToCompareError, OptionError
from graphrag_eval_lc.texts import visible

_SHOWS_ALL: Final = "graphrag_eval_lc.help_all"
_DEFAULT: Final = "DEFAULT"
_OF_FILE: Final = "DEFAULT_MAP"  # what click calls the source of a value of the project file
# graphrag-eval's names of the options of ``judge answers``.
_OPTION_NAMES: Final = {
    "--input-tsv-file-path": "--input",
    "--output-tsv-file-path": "--output",
    "--config-yaml-file-path": "--config",
}
_FIRST_SENTENCE = re.compile(r"[.;]\s")


class Command(TyperCommand):
    """A command whose function is loaded only when it is called, or when its help is shown.

    ``--help`` shows the options without a panel, each with its first sentence. ``--help-all`` shows all in full.
    """

    def load(self) -> None:
        """Load the function, and use its options and its help."""
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
        return super().parse_args(ctx, [f"{_OPTION_NAMES.get(name, name)}{sign}{value}" for name, sign, value in parts])

    def invoke(self, ctx: Any) -> Any:
        """Call the command; refuse options that exclude each other or would write the same file."""
        _override_the_file(ctx)
        names = {each.name: max(each.opts, key=len) for each in self.params}
        refuse_conflicts(_given(ctx), ctx.params, command=self.name, called=lambda name: names.get(name, name))
        # With older versions of typer, paths are strings here.
        files = {name: Path(ctx.params[name]) for name in WRITTEN if ctx.params.get(name)}
        for one, other in combinations(files, 2):
            if files[one].resolve() == files[other].resolve():
                what = f"{names[one]} and {names[other]} are the same file"
                raise OptionError(what, path=files[one], hint="Use a separate file for each.")
        return ctx.invoke(self.run, **ctx.params)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show the short help, or the full help for ``--help-all``."""
        if any(map(_is_rare, self.params)) and not ctx.meta.get(_SHOWS_ALL):
            params: list[Any] = self.params
            for each in params:
                each.hidden = _is_rare(each)
                if each.help and (end := _FIRST_SENTENCE.search(each.help)):
                    each.help = f"{each.help[: end.start()]}."
        super().format_help(ctx, formatter)


def _is_rare(option: Any) -> bool:
    return option.param_type_name == "option" and option.rich_help_panel is not None


def _help_all(rare: int) -> list[Any]:
    """Return the option ``--help-all`` in a list if a command has rare options; otherwise an empty list."""
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
        if text:  # typer without rich returns the text; with rich it was printed already
            say(text)
        raise typer.Exit


def _given(ctx: Any) -> dict[str, str]:
    """Return the source (command line, project file, …) of each option that is not at its default, by Python name."""
    sources = {name: getattr(ctx.get_parameter_source(name), "name", _DEFAULT) for name in ctx.params}
    empty: tuple[Any, ...] = (None, (), [])
    return {
        name: source
        for name, source in sources.items()
        if source != _DEFAULT and ctx.params[name] is not False and ctx.params[name] not in empty
    }


def _override_the_file(ctx: Any) -> None:
    """Reset options of the project file that an option on the command line excludes, or that need a missing option."""
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


# The panels of --help, in the order in which users need them: for each command its module and function, and the first
# sentence of its help. The sentences are repeated here so that --help does not load the commands.
_COMMANDS: Final = {
    "Start": {
        "demo": ("run:demo", "Run the built-in agent over a Nordic power grid and show which steps fail."),
        "init": ("init:init", "Start a project: write a project file and a first dataset for your agent."),
        "doctor": ("doctor:doctor", "Check what a run needs: versions, config, agent, dataset, gates, models."),
    },
    "Run": {
        "run": ("run:run", "Run a dataset through an agent and score its responses."),
        "score": ("score:score", "Score recorded responses without calling an agent."),
        "merge": ("score:merge", "Merge shards, or runs over different questions, into one run."),
    },
    "Inspect": {
        "report": ("runs:report", "Write the HTML report of a run: scores, failures, and each question's steps."),
        "compare": ("compare:compare", "Compare runs question by question: is a difference more than chance?"),
        "runs": ("runs:runs", "List the runs in a folder, or show the trend of their scores and costs."),
        "publish": ("publish:publish", "Send the scores of a run to the traces of its questions in another tool."),
        "mcp": ("mcp:mcp", "Serve runs to coding agents over the Model Context Protocol."),
    },
    "Data": {
        "validate": ("dataset:validate", "Find everything that is wrong with a dataset, and how to fix it."),
        "dataset draft": ("dataset:draft", "Draft a reference dataset from recorded responses."),
        "dataset import": ("dataset:import_dataset", "Import a published dataset of questions and queries."),
        "dataset lint": ("graph:lint", "Find mistakes in the SPARQL queries of a dataset or a run."),
        "dataset refresh": ("graph:refresh", "Run the reference queries again, and list references that are stale."),
        "dataset notes": (
            "dataset:notes",
            "List the notes that readers made in a report, and accept outputs as references.",
        ),
        "dataset generate": ("graph:generate", "Make a dataset from templates and the values in a graph."),
        "dataset schema": ("dataset:schema", "Print the JSON Schema of a format, for editors that check files."),
        "proxy": ("graph:proxy", "Record the calls of a SPARQL endpoint, or replay them."),
        "import-traces": ("score:import_traces", "Convert traces of other tools to responses, to score them."),
        "migrate": (
            "init:migrate",
            "Migrate from graphrag-eval: convert its config, and check that you get the same scores.",
        ),
    },
    "Judge": {
        "judge answers": ("judge:answers", "Compare the answers in a table with their reference answers, by claims."),
        "judge agreement": ("judge:agreement", "Measure how often the judge agrees with people who labelled answers."),
        "judge certify": ("judge:certify", "Measure what the judge notices, with answers made from your references."),
    },
}
_GROUPS: Final = {
    "dataset": "Draft, import, generate, lint, correct or refresh a reference dataset, or print the JSON Schema of a "
    "format.",
    "judge": "Judge a table of answers, or measure how good the judge is.",
}
# graphrag-eval's name of a command.
_ALIASES: Final = {"answer-correctness": "judge:answers"}
# What other tools call these commands.
_OTHER_NAMES: Final = {
    **dict.fromkeys(("evaluate", "eval", "test", "bench", "benchmark", "run-benchmark", "start"), "run"),
    **dict.fromkeys(("new", "create", "setup"), "init"),
    **dict.fromkeys(("show", "view", "open", "html"), "report"),
    **dict.fromkeys(("list", "ls"), "runs"),
    **dict.fromkeys(("history", "trend"), "runs --trend"),
    "check": "doctor",
    "lint": "dataset lint",
    "refresh": "dataset refresh",
    "generate": "dataset generate",
    "diff": "compare",
    "plugins": "doctor --plugins",
    "scan": "doctor --secrets",
    "schema": "dataset schema",
    **dict.fromkeys(("upload", "export", "push"), "publish"),
    "import": "import-traces",
}


class Commands(TyperGroup):
    """A group of commands; messages about wrong arguments escape invisible characters that they quote."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the commands in the order of the table above; typer's own groups would not keep it."""
        order = {names.partition(" ")[0]: None for found in _COMMANDS.values() for names in found}
        return sorted(self.commands, key=[*order, *self.commands].index)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command; refuse an unknown one with the name that was probably meant."""
        name = args[0] if args else ""
        if name and self.get_command(ctx, name) is None and not name.startswith("-"):
            found = get_close_matches(name.lower(), self.list_commands(ctx), n=1)
            near = _OTHER_NAMES.get(name.lower()) or (found[0] if found else None)
            hint = f"Did you mean {near}?" if near else f"{ctx.command_path} --help lists the commands."
            ctx.fail(f"No such command {name!r}. {hint}")
        return super().resolve_command(ctx, args)

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Read the options before the command."""
        with _visible_usage_errors():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with _visible_usage_errors():
            return super().invoke(ctx)


@contextmanager
def _visible_usage_errors() -> Iterator[None]:
    try:
        yield
    except Exception as problem:
        # Newer versions of typer include their own copy of click, so its classes cannot be imported from one place.
        text_of = getattr(problem, "format_message", None)
        if text_of is not None:
            vars(problem)["format_message"] = lambda: visible(text_of())
        raise


app = typer.Typer(
    cls=Commands,
    name="graphrag-eval-lc",
    help="Find out how well a LangGraph agent answers questions from a knowledge graph, which step went wrong, and "
    "what it costs.",
    epilog="Exit codes: 0 success, 1 failure (no question was answered, the run ended early, or a gate failed), 2 "
    "wrong usage or input, 3 nothing could be compared, 130 interrupted by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _add(to: typer.Typer, name: str, place: str, sentence: str = "", panel: str | None = None) -> None:
    def not_loaded() -> None: ...

    vars(not_loaded)["place"] = place
    to.command(name, cls=Command, help=sentence, rich_help_panel=panel, hidden=not sentence)(not_loaded)


_groups = {name: typer.Typer(cls=Commands, help=text, no_args_is_help=True) for name, text in _GROUPS.items()}
for _panel, _found in _COMMANDS.items():
    for _names, (_place, _sentence) in _found.items():
        _group, _, _name = _names.rpartition(" ")
        if not _group:
            _add(app, _name, _place, _sentence, _panel)
            continue
        if not _groups[_group].registered_commands:
            app.add_typer(_groups[_group], name=_group, rich_help_panel=_panel)
        _add(_groups[_group], _name, _place, _sentence)
for _name, _place in _ALIASES.items():
    _add(app, _name, _place)


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"graphrag-eval-lc {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error."),
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Show the version."),
) -> None:
    """Declare the options before the command; ``main`` reads ``--debug`` itself."""
    del debug, version


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # --debug may be anywhere: users add it after an error, at the end of the line.
    debug = "--debug" in given
    fill_closed_output()
    for stream in (sys.stdout, sys.stderr):  # escape what they cannot encode, such as half a character
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="backslashreplace")
    try:
        with kept_output():
            app([argument for argument in given if argument != "--debug"], prog_name="graphrag-eval-lc")
    except SystemExit as ending:
        _exit(ending.code)
    except Exception as problem:
        if debug:
            sys.excepthook = _show_traceback  # set here, because typer has set its own
            raise
        if isinstance(problem, GraphRAGEvalError):
            echo_err(f"Error: {problem}")
            _exit(EXIT_NOTHING if isinstance(problem, NothingToCompareError) else EXIT_ERROR)
        report = f" Report it: {PROJECT_ADDRESS}" if PROJECT_ADDRESS else ""
        echo_err(
            f"Error: {type(problem).__name__}: {problem}. This is a bug in graphrag-eval-lc or in the agent; run it "
            f"again with --debug for the traceback.{report}"
        )
        _exit(EXIT_ERROR)


def _show_traceback(kind: type[BaseException], problem: BaseException, frames: TracebackType | None) -> None:
    """Show a traceback like Python's, without control sequences."""
    echo_err("".join(traceback.format_exception(kind, problem, frames)).rstrip())


def _exit(code: object) -> NoReturn:
    """Exit, even if an agent left a task behind that refuses to end."""
    # Only commands that ran an agent have loaded asyncio, and --help must not wait for it.
    loop = sys.modules.get("graphrag_eval_lc.event_loop.loop")
    if loop is not None and loop.has_stuck_tasks():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)
    sys.exit(code)  # type: ignore[arg-type]
