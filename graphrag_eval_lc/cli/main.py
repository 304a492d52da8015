"""The entry point of the command line: its commands, its exit codes, and errors without tracebacks."""

import io
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from graphrag_eval_lc import __version__
from graphrag_eval_lc.cli.commands import Command, ModelCommand
from graphrag_eval_lc.cli.compare import compare
from graphrag_eval_lc.cli.dataset_commands import draft_dataset, validate
from graphrag_eval_lc.cli.doctor import doctor
from graphrag_eval_lc.cli.import_command import import_dataset
from graphrag_eval_lc.cli.import_traces import import_traces
from graphrag_eval_lc.cli.init import init
from graphrag_eval_lc.cli.judge_commands import answer_correctness, judge_agreement
from graphrag_eval_lc.cli.merge import merge
from graphrag_eval_lc.cli.migrate import migrate
from graphrag_eval_lc.cli.options import EXIT_ERROR, EXIT_NOTHING, say, tell
from graphrag_eval_lc.cli.own_output import fill_closed_output, own_output
from graphrag_eval_lc.cli.plugins import plugins
from graphrag_eval_lc.cli.report import report
from graphrag_eval_lc.cli.run import demo, run
from graphrag_eval_lc.cli.runs import runs
from graphrag_eval_lc.cli.scan import scan
from graphrag_eval_lc.cli.schema import schema
from graphrag_eval_lc.cli.score import score
from graphrag_eval_lc.cli.trend import trend
from graphrag_eval_lc.errors import PROJECT_ADDRESS, GraphRAGEvalError, NothingToCompareError
from graphrag_eval_lc.texts import visible


class Commands(TyperGroup):
    """The commands; what is wrong with their arguments is told visibly, as it quotes them."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        """Read what stands before the command."""
        with _visible_usage_errors():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        """Read the command's own arguments, and run it."""
        with _visible_usage_errors():
            return super().invoke(ctx)


@contextmanager
def _visible_usage_errors() -> Iterator[None]:
    try:
        yield
    except Exception as problem:
        # Newer versions of typer bring their own click, so its classes are not at one place.
        text_of = getattr(problem, "format_message", None)
        if text_of is not None:
            vars(problem)["format_message"] = lambda: visible(text_of())
        raise


app = typer.Typer(
    cls=Commands,
    name="graphrag-eval-lc",
    help="Find out how good a LangGraph agent over a knowledge graph is, which step went wrong, and what it costs.",
    epilog="Exit codes: 0 good, 1 findings (no question answered, a run that ended early, a gate that is not "
    "passed), 2 wrong usage or input, 3 nothing that could be compared, 130 interrupted by Ctrl-C, 143 by SIGTERM, 129 "
    "by SIGHUP.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(cls=ModelCommand)(demo)
app.command()(init)
app.command()(doctor)
app.command()(migrate)
app.command(cls=ModelCommand)(run)
app.command(cls=ModelCommand)(score)
app.command()(merge)
app.command(cls=ModelCommand)(report)
app.command()(compare)
app.command()(runs)
app.command()(trend)
app.command(cls=ModelCommand)(validate)
app.command(name="draft-dataset")(draft_dataset)
app.command(name="import-dataset")(import_dataset)
app.command(name="import")(import_traces)
app.command()(scan)
app.command()(schema)
app.command()(plugins)
app.command(name="answer-correctness")(answer_correctness)
app.command(name="judge-agreement")(judge_agreement)
for registered in app.registered_commands:
    if not issubclass(registered.cls or TyperCommand, Command):
        registered.cls = Command


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"graphrag-eval-lc {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error."),
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Show the version."),
) -> None:
    """Take the options that stand before the command; ``main`` reads ``--debug`` itself."""
    del debug, version


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    Args:
        arguments: The arguments after the program's name; None takes those of the process.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    # --debug may stand anywhere, since it is thought of after an error, at the end of the line.
    debug = "--debug" in given
    fill_closed_output()
    _escape_what_cannot_be_printed()
    try:
        with own_output():
            app([argument for argument in given if argument != "--debug"], prog_name="graphrag-eval-lc")
    except GraphRAGEvalError as problem:
        if debug:
            sys.excepthook = _show_traceback  # now, as typer puts one of its own there
            raise
        tell(f"Error: {problem}")
        _exit(EXIT_NOTHING if isinstance(problem, NothingToCompareError) else EXIT_ERROR)
    except SystemExit as ending:
        _exit(ending.code)
    except Exception as problem:
        if debug:
            sys.excepthook = _show_traceback  # now, as typer puts one of its own there
            raise
        tell(
            f"Error: {type(problem).__name__}: {problem}. This is a mistake in graphrag-eval-lc or in the agent; "
            f"run again with --debug for the traceback.{f' Report it: {PROJECT_ADDRESS}' if PROJECT_ADDRESS else ''}"
        )
        _exit(EXIT_ERROR)


def _escape_what_cannot_be_printed() -> None:
    """Have standard output and error escape what they cannot encode, such as half a character."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="backslashreplace")


def _show_traceback(kind: type[BaseException], problem: BaseException, frames: TracebackType | None) -> None:
    """Show a traceback as Python does, but that no terminal obeys what stands in it."""
    tell("".join(traceback.format_exception(kind, problem, frames)).rstrip())


def _exit(code: object) -> NoReturn:
    """Exit, also where an agent left a task behind that refuses to end."""
    # Only what ran an agent has loaded it, and --help need not wait for asyncio.
    loop = sys.modules.get("graphrag_eval_lc.event_loop.loop")
    if loop is not None and loop.has_stuck_tasks():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)
    sys.exit(code)  # type: ignore[arg-type]
