"""The command import-dataset."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from graphrag_eval_lc.benchmark.option_fields import COMMON
from graphrag_eval_lc.cli.options import EXIT_FINDINGS, comma_separated, say, tell
from graphrag_eval_lc.console import DataConsole
from graphrag_eval_lc.dataset.query_language import STEP_NAMES
from graphrag_eval_lc.texts import counted, listed

_TABLE = "Columns of CSV and JSON records"
_ENDPOINT = "SPARQL endpoint"


def _column(name: str, help_text: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(name, help=help_text, metavar="NAME", rich_help_panel=_TABLE)
    return option


def import_dataset(
    source: Annotated[
        Path,
        typer.Argument(help="JSON, JSON Lines, CSV, tab-separated values, QALD's XML or Parquet.", metavar="FILE"),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="The file to write: JSON where its name ends in .json, else YAML.", metavar="FILE"
        ),
    ],
    language: Annotated[
        list[str] | None,
        typer.Option(
            "--language",
            help="The language of the questions. Of several, as in de,en, the first that a question has; may be "
            "repeated. By default English, else the first one.",
            metavar="CODE",
        ),
        COMMON,
    ] = None,
    step_name: Annotated[
        str | None,
        typer.Option(
            "--step-name",
            help="The name of the steps that run the queries, which is that of your tool. By default "
            f"{listed(list(STEP_NAMES.values()))}, by the query's text.",
            metavar="NAME",
        ),
        COMMON,
    ] = None,
    template_id: Annotated[
        str | None,
        typer.Option(
            "--template-id",
            help="The template of all questions; without it one for each answer type of QALD, the template column of "
            "a table, or the file's name.",
            metavar="ID",
        ),
    ] = None,
    keep_empty: Annotated[
        bool,
        typer.Option("--keep-empty", help="Keep gold without rows as a reference, which any query without rows fits."),
    ] = False,
    responses: Annotated[
        Path | None,
        typer.Option(
            "--responses",
            help="Write a model's answers in the file here, for `score`. They are never gold.",
            metavar="FILE",
        ),
        COMMON,
    ] = None,
    retrieval_step: Annotated[
        str | None,
        typer.Option(
            "--retrieval-step",
            help="Make the ids of relevant documents (AutoRAG's retrieval_gt) a reference step of this name, such as "
            "retrieval.",
            metavar="NAME",
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the files if they exist."), COMMON] = False,
    question_column: Annotated[str | None, _column("--question-column", "The questions.")] = None,
    query_column: Annotated[str | None, _column("--query-column", "The queries.")] = None,
    id_column: Annotated[str | None, _column("--id-column", "The ids; without them questions are numbered.")] = None,
    template_column: Annotated[str | None, _column("--template-column", "The template ids.")] = None,
    results_column: Annotated[str | None, _column("--results-column", "The results of the queries.")] = None,
    answer_column: Annotated[str | None, _column("--answer-column", "The reference answers.")] = None,
    endpoint: Annotated[
        str | None,
        typer.Option(
            "--endpoint",
            help="Ask this endpoint for the results that the dataset does not have, or has without rows.",
            metavar="URL",
            rich_help_panel=_ENDPOINT,
        ),
        COMMON,
    ] = None,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Ask it for all results.", rich_help_panel=_ENDPOINT)
    ] = False,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout", help="The longest time for a query, in seconds.", metavar="SEC", rich_help_panel=_ENDPOINT
        ),
    ] = 60,
    max_bytes: Annotated[
        int,
        typer.Option(
            "--max-bytes",
            help="The size of the largest results of a query, after decompression.",
            metavar="N",
            rich_help_panel=_ENDPOINT,
        ),
    ] = 100_000_000,
    follow_redirects: Annotated[
        bool,
        typer.Option(
            "--follow-redirects",
            help="Follow redirects to another host; they are refused otherwise.",
            rich_help_panel=_ENDPOINT,
        ),
    ] = False,
) -> None:
    """Turn a published dataset of questions and queries into a reference dataset.

    The form is recognised: QALD, ragas, deepeval, LangSmith, Hugging Face rows, AutoRAG, Spider, BIRD, LC-QuAD and the
    like, by the names of their columns. Each question with gold results gets a reference step: the query, its results,
    and the columns that they have. A question without them has its query as `reference_query`, and no reference steps.
    `answer` next to gold such as `ground_truth` is the answer of a model, and no reference. Broken questions are
    reported with their ids, and the others are imported.

    Exit code 0: all that can be imported is, with notes on what has no gold; 1: there are broken questions, or queries
    that the endpoint did not answer; 2: the file cannot be read at all.

    For example:

    `graphrag-eval-lc import-dataset qald_10.json -o qa.yaml`

    `graphrag-eval-lc import-dataset qald_10.json -o qa.yaml --language de,en`

    `graphrag-eval-lc import-dataset questions.csv -o qa.yaml --endpoint http://localhost:7878/query`

    `graphrag-eval-lc import-dataset text2cypher.csv -o qa.yaml --step-name read_neo4j_cypher`

    `graphrag-eval-lc import-dataset ragas.json -o qa.yaml --responses responses.jsonl`
    """
    # Imported here so that --help does not wait for pydantic.
    from graphrag_eval_lc.dataset.importing import ImportOptions, imported, write_responses
    from graphrag_eval_lc.dataset.source_fields import Columns
    from graphrag_eval_lc.errors import DatasetError, OptionError
    from graphrag_eval_lc.files.writing import refuse_existing
    from graphrag_eval_lc.run_folder import write_data

    if responses == output:
        raise OptionError("the responses and the dataset would be one file", hint="Give two names.")
    for path in (output, *([responses] if responses is not None else ())):
        refuse_existing(path, overwrite=overwrite)
    columns = Columns(question_column, query_column, id_column, template_column, results_column, answer_column)
    languages = comma_separated(language or ())
    asking = (endpoint, refresh, timeout, max_bytes, follow_redirects)
    options = ImportOptions(languages, step_name, template_id, keep_empty, columns, *asking, retrieval_step)
    with _progress() as show:
        found = imported(source, options, show)
    for problem in found.problems:
        tell(str(problem))
    for note in found.notes:
        tell(f"Note: {note}")
    count = found.number_of_questions
    if not count:
        raise DatasetError(
            "there is nothing to import: no question is left", path=source, hint="The messages above say why."
        )
    write_data(output, found.templates, overwrite=overwrite)
    steps = f"{found.number_with_steps:,} of them with reference steps"
    queries = f" The queries are {listed(found.languages)}." if found.languages else ""
    say(f"Wrote {counted(count, 'question')} to {output}, {steps}.{queries}")
    if responses is not None and found.responses:
        write_responses(responses, found, overwrite=overwrite)
        say(f"Wrote {counted(len(found.responses), 'response')} to {responses}.")
    elif responses is not None:
        tell(f"Note: The file has no answers of a model, so {responses} is not written.")
    elif found.responses:
        tell(f"Note: --responses FILE writes the {counted(len(found.responses), 'answer')} of a model.")
    if found.problems:
        raise typer.Exit(EXIT_FINDINGS)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """Give a function that shows on standard error how many queries were asked, of how many."""
    console = DataConsole(stderr=True)
    if not console.is_terminal:  # where older versions of rich end a bar that shows nothing with an empty line
        yield lambda done, total: None
        return
    parts = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*parts, console=console, transient=True) as bar:
        task = bar.add_task("Queries asked", total=None, visible=False)
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)
