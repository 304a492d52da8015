"""What the commands share: options, exit codes, and how they tell something to people."""

import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final

import typer

from graphrag_eval_lc.benchmark.option_fields import DISPLAY, FOLDER, GATES, QUIET, Common
from graphrag_eval_lc.cli import completion
from graphrag_eval_lc.cli.model_options import After, option
from graphrag_eval_lc.console import DataConsole
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.metrics.measures import MEASURES
from graphrag_eval_lc.registry.metrics import MAIN_METRIC
from graphrag_eval_lc.texts import visible, without_commands

EXIT_FINDINGS = 1
EXIT_ERROR = 2
EXIT_NOTHING = 3
EXIT_INTERRUPTED = 130
# By the signal that ended the run; without one of these it was Ctrl-C.
EXITS_BY_SIGNAL: Final = {"SIGHUP": 129, "SIGTERM": 143}

_PROGRAM: Final = "graphrag-eval-lc"
# Where the output is no terminal, rich would wrap tables at 80 columns.
_PLAIN_WIDTH = 140


def output_console(plain_width: int = _PLAIN_WIDTH) -> DataConsole:
    """Return the console of standard output; ``plain_width`` is its width where that is no terminal."""
    return DataConsole() if sys.stdout.isatty() else DataConsole(width=plain_width)


def command_line(*arguments: str) -> str:
    """Return a command that people can give as it is: with the path of the program if no shell finds it by its name.

    Example:
        >>> command_line("report", "runs/my run", "--open")
        "graphrag-eval-lc report 'runs/my run' --open"
    """
    called = Path(sys.argv[0])
    program = [_PROGRAM]
    if shutil.which(_PROGRAM) is None and called.name == _PROGRAM:
        program = [str(called)]
    elif shutil.which(_PROGRAM) is None and (called.parent.name, called.name) == ("graphrag_eval_lc", "__main__.py"):
        program = [sys.executable, "-m", "graphrag_eval_lc"]
    return shlex.join([*program, *arguments])


def say(text: str, *, err: bool = False, keeps_lines: bool = True) -> None:
    """Print a text in which no terminal finds a command to obey.

    Args:
        text: The text, also with data in it.
        err: Whether it goes to standard error.
        keeps_lines: Whether it may be of several lines.
    """
    stream = sys.stderr if err else sys.stdout
    if stream is not None:  # a program without a console has none
        stream.write(f"{without_commands(visible(text, keeps_lines=keeps_lines))}\n")
        stream.flush()


def tell(text: str) -> None:
    """Print a message to standard error, with secrets masked."""
    say(masked_text(text), err=True)


ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="A YAML or JSON file with the configuration.", metavar="FILE"),
]
Measures = Annotated[
    list[str] | None,
    typer.Option(
        "--measures",
        help=f"What is measured of retrieved ids, in place of the config's: {', '.join(MEASURES)}, most of them with a "
        "cut-off, such as P@5,nDCG@10; may be repeated.",
        metavar="NAMES",
        autocompletion=completion.measures,
    ),
]
Matchers = Annotated[
    list[str] | None,
    typer.Option(
        "--matchers",
        help="A module that registers matchers of your own when it is loaded, as package.module or path/to/file.py; "
        "may be repeated. The agent's own module is loaded by run anyway.",
        metavar="MODULE",
    ),
    After("plugins"),
]
Plugins = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        help="A module that registers metrics, step kinds, matchers or evaluators of your own when it is loaded, as "
        "package.module or path/to/file.py; may be repeated. Those of installed packages are loaded by themselves.",
        metavar="MODULE",
    ),
    After("evaluators"),
]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print one JSON document in place of the tables. Warnings, progress and what the agent prints go to "
        "standard error.",
        rich_help_panel=DISPLAY,
    ),
    After("worst"),
]
Quiet = Annotated[bool, option(QUIET)]
Worst = Annotated[
    int,
    typer.Option("--worst", min=0, help="How many of the worst questions to show.", rich_help_panel=DISPLAY),
]
NoReport = Annotated[
    bool,
    typer.Option("--no-report", help="Do not write report.html into the folder.", rich_help_panel=FOLDER),
    After("judge_cache"),
]
FailUnder = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-under",
        help="Exit with 1 where the mean of a score is below this number, failed questions counted as 0, such as "
        f"{MAIN_METRIC}=0.9; before a slash the template whose questions count; may be repeated.",
        metavar="METRIC=MEAN",
        rich_help_panel=GATES,
    ),
]
BRIEF_FAIL_UNDER: Final = Common(f"Exit with 1 where a mean score is lower, such as {MAIN_METRIC}=0.9.")
FailOver = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-over",
        help="Exit with 1 where the mean of a metric of which less is better is above this number, such as "
        "total_tokens=5000. METRIC.median, .p95, .min, .max and .sum are over samples, of which a question has one for "
        "each repeat (.sum counts failed attempts too), such as elapsed_sec.p95=30. Failed questions count with what "
        "they spent. May be repeated.",
        metavar="[TEMPLATE/]METRIC[.STATISTIC]=NUMBER",
        rich_help_panel=GATES,
    ),
    After("fail_under"),
]


def load_named_plugins(names: Iterable[str] | None) -> None:
    """Load the plugins of installed packages, then those of ``--plugin``.

    Raises:
        PluginError: One of them cannot be loaded, or registers nothing.
    """
    # Imported here so that --help does not wait for what only plugins need.
    from graphrag_eval_lc.registry.plugins import load_installed_plugins, load_plugins

    load_installed_plugins()
    load_plugins(names or (), via="--plugin")


def measure_names(given: Iterable[str] | None) -> list[str] | None:
    """Return the names that ``--measures`` lists, with commas or repeated; None where it is not given.

    Raises:
        OptionError: It is given and names nothing.

    Example:
        >>> measure_names(["P@5, nDCG@10", "RR"])
        ['P@5', 'nDCG@10', 'RR']
    """
    if given is None:
        return None
    listed = comma_separated(given)
    if not listed:
        raise OptionError("--measures names no measure", hint="Write it as --measures P@5,nDCG@10, or leave it out.")
    return listed


def comma_separated(given: Iterable[str]) -> list[str]:
    """Return the single values of an option that may be repeated, and list several with commas."""
    return [value.strip() for values in given for value in values.split(",") if value.strip()]
