"""What the commands share: their options, and how they tell something to people."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.metrics.measures import MEASURES
from graphrag_eval_lc.registry.metrics import MAIN_METRIC


def tell(text: str) -> None:
    """Print a message to standard error, as it is but for secrets, which are masked."""
    Console(stderr=True, soft_wrap=True, highlight=False, markup=False).print(masked_text(text))


SELECTION = "Which questions"
ASKING = "How they are asked"
ENDING = "When the run ends early"
FOLDER = "The run's folder"
CAPTURE = "What is kept of the agent's steps"
DISPLAY = "What is shown"

Config = Annotated[
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
    ),
]
Evaluators = Annotated[
    list[str] | None,
    typer.Option(
        "--evaluator",
        help="A function of your own that scores each response, (question, response), as package.module:function or "
        "path/to/file.py:function; may be repeated.",
        metavar="SPEC",
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
]
Plugins = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        help="A module that registers metrics, step kinds, matchers or evaluators of your own when it is loaded, as "
        "package.module or path/to/file.py; may be repeated. Those of installed packages are loaded by themselves.",
        metavar="MODULE",
    ),
]
Label = Annotated[
    str | None, typer.Option("--label", help="A name for the run, kept in run.json.", rich_help_panel=FOLDER)
]
Href = Annotated[
    str | None, typer.Option("--href", help="A link for the run, kept in run.json.", rich_help_panel=FOLDER)
]
Tags = Annotated[
    list[str] | None,
    typer.Option("--tag", help="A mark for the run, kept in run.json; may be repeated.", rich_help_panel=FOLDER),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace an earlier run in the folder.", rich_help_panel=FOLDER)
]
MaxConcurrency = Annotated[
    int,
    typer.Option(
        "--max-concurrency",
        "-j",
        min=1,
        help="How many questions are asked at the same time; fewer for a while after a rate limit.",
        rich_help_panel=ASKING,
    ),
]
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout",
        min=0,
        help="Seconds that the agent has for a question, besides stalls by others; 0 for no limit.",
        rich_help_panel=ASKING,
    ),
]
MaxRetries = Annotated[
    int,
    typer.Option(
        "--max-retries",
        min=0,
        help="How often a question is asked again after a rate limit, a lost connection or a failing server.",
        rich_help_panel=ASKING,
    ),
]
Repeats = Annotated[
    int,
    typer.Option("--repeats", min=1, help="How often each question is asked, for pass@k.", rich_help_panel=ASKING),
]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, help="Only the first N questions.", rich_help_panel=SELECTION)
]
TemplateIds = Annotated[
    list[str] | None,
    typer.Option("--template", help="Only the questions of this template; may be repeated.", rich_help_panel=SELECTION),
]
QuestionIds = Annotated[
    list[str] | None,
    typer.Option("--question", help="Only the question with this id; may be repeated.", rich_help_panel=SELECTION),
]
SampleSize = Annotated[
    int | None, typer.Option("--sample", min=1, help="Only N questions at random.", rich_help_panel=SELECTION)
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", help="Makes --sample choose the same questions each time.", rich_help_panel=SELECTION),
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        "--max-cost",
        min=0,
        help="Spend no more than so many USD: the run ends before a question, of agent and judges, that would.",
        rich_help_panel=ENDING,
    ),
]
NoCache = Annotated[
    bool,
    typer.Option(
        "--no-cache", help="Ask the judges again for what the folder has their answers to.", rich_help_panel=FOLDER
    ),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Show no progress, only the result and problems.", rich_help_panel=DISPLAY),
]
LogFile = Annotated[
    Path | None,
    typer.Option(
        "--log-file",
        help="A file for what happens, one JSON object a line: attempts, retries, responses, scores.",
        metavar="FILE",
        rich_help_panel=DISPLAY,
    ),
]
Worst = Annotated[
    int,
    typer.Option("--worst", min=0, help="How many of the worst questions to show.", rich_help_panel=DISPLAY),
]
NoReport = Annotated[
    bool, typer.Option("--no-report", help="Do not write report.html into the folder.", rich_help_panel=FOLDER)
]
FailUnder = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-under",
        help="Exit with 1 where the mean of a score is below this number, failed questions counted as 0, such as "
        f"{MAIN_METRIC}=0.9; may be repeated.",
        metavar="METRIC=MEAN",
    ),
]


def load_named_plugins(names: Iterable[str] | None) -> None:
    """Load the plugins of ``--plugin``, after those of installed packages, which are there first everywhere.

    Raises:
        PluginError: One of them cannot be loaded, or registers nothing.
    """
    # Imported here so that --help does not wait for what only plugins need.
    from graphrag_eval_lc.registry.plugins import load_installed_plugins, load_plugins

    load_installed_plugins()
    load_plugins(names or (), via="--plugin")


def measure_names(given: Iterable[str] | None) -> list[str] | None:
    """Return the names of ``--measures``, each of which may be several with commas between; None where it is not given.

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
    """Return the values of an option that may be repeated, each of which may be several with commas between."""
    return [value.strip() for values in given for value in values.split(",") if value.strip()]
