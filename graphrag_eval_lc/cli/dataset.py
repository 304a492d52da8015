"""The commands on datasets: ``validate``, and ``dataset draft``, ``import``, ``notes`` and ``schema``."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from graphrag_eval_lc.benchmark.score_options import ScoreRunOptions
from graphrag_eval_lc.cli.options import SELECTING, comma_separated, keywords, load_named_plugins, with_options
from graphrag_eval_lc.cli.printing import EXIT_FINDINGS, echo_err, print_json, say
from graphrag_eval_lc.cli.project import Config, Dataset, needed_dataset
from graphrag_eval_lc.compare.runs import run_results
from graphrag_eval_lc.config.loading import CONFIG_SCHEMA_PATH
from graphrag_eval_lc.console import DataConsole
from graphrag_eval_lc.dataset.drafting import draft as drafted_from
from graphrag_eval_lc.dataset.import_fields import Columns
from graphrag_eval_lc.dataset.importing import ImportOptions, imported, write_responses
from graphrag_eval_lc.dataset.loading import SCHEMA_PATHS
from graphrag_eval_lc.dataset.rules import UNANSWERED
from graphrag_eval_lc.dataset.selection import Selection
from graphrag_eval_lc.dataset.sparql_endpoint import STATE_SUFFIX
from graphrag_eval_lc.dataset.validation import Problem, validated
from graphrag_eval_lc.errors import DatasetError, OptionError, ResponsesError
from graphrag_eval_lc.files.writing import refuse_existing, replace_file
from graphrag_eval_lc.report.machine_files import DOCUMENT_SCHEMA_PATHS, validation_document
from graphrag_eval_lc.report.question_notes import labels_csv, noted_dataset, notes_summary, read_notes
from graphrag_eval_lc.run_folder import write_data
from graphrag_eval_lc.texts import counted, listed


@with_options()
def draft(
    responses: Path,
    output: Path,
    dataset: Path | None = None,
    config: Config = None,
    plugins: list[str] | None = None,
    keep_references: bool = False,
    overwrite: bool = False,
) -> None:
    """Draft a reference dataset from recorded responses.

    The last successful steps become reference steps and the answers reference answers, all marked `draft: true`. Steps
    have the names that the config maps their tools to (`steps: {names: …}`; with a run's folder its own config, unless
    you name another). If there are several repeats, the first one without an error is used. Do not trust the draft: it
    records what the agent did, right or wrong. Check each question, and remove the marks.

    For example:

    `graphrag-eval-lc dataset draft runs/first --output reference.yaml`

    Options:
        responses RUN_DIR|RESPONSES: The folder of a run, or a file of responses (JSON Lines, JSON or YAML).
        --dataset FILE: The dataset of the run, whose templates and order are kept. Default: that of the run's folder.
        --keep-references: Keep the dataset's references, and draft only those that are missing.
    """
    load_named_plugins(plugins)
    drafted = drafted_from(responses, dataset, config, keep_references=keep_references)
    for note in drafted.notes:
        say(f"Note: {note}", err=True)
    count = drafted.number_of_questions
    if not count:
        raise ResponsesError(
            "nothing to draft: no question has a response without an error",
            path=responses,
            hint="Retry the failed questions: graphrag-eval-lc run … --retry-errors.",
        )
    write_data(output, drafted.templates, overwrite=overwrite)
    say(f"Wrote {counted(count, 'question')} to {output}. Check each before you use it.")


@with_options()
def schema(name: str, output: Path | None = None) -> None:
    """Print the JSON Schema of a format, for editors that check files.

    Editors with YAML's language server, such as VS Code with the YAML extension, complete and check a YAML file that
    begins with `# yaml-language-server: $schema=FILE`.

    For example:

    `graphrag-eval-lc dataset schema config --output config.schema.json`

    Options:
        name NAME: config, dataset, responses, or a document of --json.
        --output -o FILE: The file to write, instead of printing.
    """
    paths = {"config": CONFIG_SCHEMA_PATH, **SCHEMA_PATHS, **DOCUMENT_SCHEMA_PATHS}
    if name not in paths:
        raise OptionError(f"unknown schema {name!r:.80}", hint=f"Known are {listed(list(paths), len(paths))}.")
    text = paths[name].read_text(encoding="utf-8")
    if output is None:
        say(text.rstrip("\n"))
    else:
        replace_file(output, [text.encode()])
        say(f"Written to {output}.")


@with_options()
def import_dataset(
    source: Path,
    output: Path,
    language: list[str] | None = None,
    step_name: str | None = None,
    responses: Path | None = None,
    endpoint: str | None = None,
    overwrite: bool = False,
    template_id: str | None = None,
    keep_empty: bool = False,
    retrieval_step: str | None = None,
    question_column: str | None = None,
    query_column: str | None = None,
    id_column: str | None = None,
    template_column: str | None = None,
    results_column: str | None = None,
    answer_column: str | None = None,
    refresh: bool = False,
    timeout: float = 60,
    max_bytes: int = 100_000_000,
    follow_redirects: bool = False,
) -> None:
    """Import a published dataset of questions and queries.

    The format is recognised by its columns: QALD, ragas, deepeval, LangSmith, Hugging Face rows, AutoRAG, Spider, BIRD,
    LC-QuAD and the like. Each question with gold results gets a reference step: the query, its results and their
    columns. A question without them gets its query as `reference_query`, and no reference steps. `answer` next to gold
    such as `ground_truth` is the answer of a model, not a reference. Broken questions are reported with their ids, and
    the others are imported.

    Exit code 0: everything was imported, with notes on missing gold; 1: broken questions, or queries that the endpoint
    did not answer; 2: the file cannot be read.

    For example:

    `graphrag-eval-lc dataset import qald_10.json -o qa.yaml`

    Options:
        --step-name NAME: The name of the steps that run the queries: the name of your tool. Default: sparql_query,
            sql_db_query, cypher_query, by the query's text.
        source FILE: JSON, JSON Lines, CSV, tab-separated values, QALD's XML or Parquet.
        --language CODE: The language of the questions, or several such as de,en; the first one that a question has is
            used. May be repeated. Default: English, otherwise the first one.
        --responses FILE: Write the model's answers in the file to this file, for `score`. They are never gold.
        --endpoint URL: Query this SPARQL endpoint for results that are missing or empty in the dataset.

    More:
        --template-id ID: The template of all questions. Default: one for each answer type of QALD, the template column
            of a table, or the file's name.
        --keep-empty: Keep an empty gold result as a reference, although any empty result matches it.
        --retrieval-step NAME: Make the ids of relevant documents (AutoRAG's retrieval_gt) a reference step of this
            name, such as retrieval.

    Columns of CSV and JSON records:
        --question-column NAME: The questions.
        --query-column NAME: The queries.
        --id-column NAME: The ids; if there are none, questions are numbered.
        --template-column NAME: The template ids.
        --results-column NAME: The results of the queries.
        --answer-column NAME: The reference answers.

    SPARQL endpoint:
        --refresh: Query it for all results, not only for missing ones.
        --timeout SEC: The longest time for a query, in seconds.
        --max-bytes N: The maximum size of a query's results, after decompression.
        --follow-redirects: Follow redirects to another host; they are refused otherwise.
    """
    if responses == output:
        raise OptionError("the responses and the dataset are the same file", hint="Use two names.")
    for path in (output, *([responses] if responses is not None else ())):
        refuse_existing(path, overwrite=overwrite)
    columns = Columns(question_column, query_column, id_column, template_column, results_column, answer_column)
    languages = comma_separated(language or ())
    asking = (endpoint, refresh, timeout, max_bytes, follow_redirects)
    state = None if endpoint is None else refresh_state(output)
    options = ImportOptions(languages, step_name, template_id, keep_empty, columns, *asking, retrieval_step, state)
    with showing_progress("Queries asked") as show:
        found = imported(source, options, show)
    for problem in found.problems:
        echo_err(str(problem))
    for note in found.notes:
        echo_err(f"Note: {note}")
    count = found.number_of_questions
    if not count:
        raise DatasetError(
            "there is nothing to import: no question is left", path=source, hint="The messages above say why."
        )
    write_data(output, found.templates, overwrite=overwrite)
    if state is not None and not found.unanswered:
        state.unlink(missing_ok=True)
    steps = f"{found.number_with_steps:,} of them with reference steps"
    queries = f" The queries are {listed(found.languages)}." if found.languages else ""
    say(f"Wrote {counted(count, 'question')} to {output}, {steps}.{queries}")
    if responses is not None and found.responses:
        write_responses(responses, found, overwrite=overwrite)
        say(f"Wrote {counted(len(found.responses), 'response')} to {responses}.")
    elif responses is not None:
        echo_err(f"Note: The file has no answers of a model, so {responses} is not written.")
    elif found.responses:
        echo_err(f"Note: --responses FILE writes the {counted(len(found.responses), 'answer')} of a model.")
    if found.problems:
        raise typer.Exit(EXIT_FINDINGS)


def refresh_state(dataset: Path) -> Path:
    """Return the file next to a dataset that holds results of a stopped command; if it exists, say that it resumes."""
    state = dataset.with_name(dataset.name + STATE_SUFFIX)
    if state.exists():
        echo_err(f"Resuming: results of an earlier command are in {state}.")
    return state


@contextmanager
def showing_progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on standard error, and yield the function that updates it: done, total."""
    console = DataConsole(stderr=True)
    if not console.is_terminal:  # older versions of rich would end an invisible bar with an empty line
        yield lambda done, total: None
        return
    parts = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*parts, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None, visible=False)
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)


@with_options()
def notes(notes: Path, dataset: Path, write: bool = False, labels: Path | None = None, run: Path | None = None) -> None:
    """List the notes that readers made in a report, and accept outputs as references.

    In a report, mark a reference or a judge as wrong, write a note, or accept the output of a step as the reference;
    then export the notes. This command lists them with the lines of the dataset. With --write it replaces each
    accepted reference, with `output_source` (run, step, date, digest) next to it; comments, order and anchors of the
    file stay. A reference that changed since the run is not replaced.

    For example:

    `graphrag-eval-lc dataset notes notes.json qa.yaml --write`

    Options:
        notes: The file that a report exported.
        dataset: The dataset, in YAML or JSON.
        --write -w: Replace the references whose actual output was accepted, in the dataset itself.
        --labels FILE: Write the answers for which readers judged the judge to this CSV file, for judge agreement.
        --run DIR: The folder of the run. Default: the folder that the notes name.
    """
    noted = read_notes(notes)
    folder = run or (Path(noted.folder) if noted.folder else None)
    if folder is None:
        raise OptionError("the notes do not name the folder of their run", path=notes, hint="Add --run DIR.")
    results = run_results(folder)
    found = noted_dataset(noted, dataset, results)
    for place in found.places:
        say(f"{dataset}:{'' if place.line is None else f'{place.line}:'} {place.text}")
    if write and found.outputs:
        replace_file(dataset, [found.new_text().encode()])
    say(notes_summary(found, noted, is_written=write))
    if labels is not None:
        text, count = labels_csv(noted, results)
        replace_file(labels, [text.encode()])
        say(f"Wrote {counted(count, 'label')} to {labels}. Next: graphrag-eval-lc judge agreement {labels} -c CONFIG")


# At most this many questions without a response are listed.
_MOST_UNANSWERED = 10
_FIRST_UNANSWERED = 3


@with_options(ScoreRunOptions, only=SELECTING)
def validate(
    dataset: Dataset = None,
    responses: Path | None = None,
    config: Config = None,
    plugins: list[str] | None = None,
    as_json: bool = False,
    **options: Any,
) -> None:
    """Find everything that is wrong with a dataset, and how to fix it.

    With `--responses`, the responses are checked too: for unknown keys, and for tool names that no reference step uses
    while reference steps stay unmatched. `steps: {names: …}` in the config maps these names. For a run folder, the
    config of the run is used unless you name another.

    A problem means that something cannot be evaluated as intended: misspelt keys, values of the wrong type, repeated
    ids, outputs that cannot be read or are cut, responses without a question. A warning means that the result may
    surprise you: ids that YAML changed (0123 without quotes is read as 83), references without rows, or references
    whose row order a different store may change.

    Exit code 0: no problems, perhaps warnings; 1: problems; 2: a file cannot be read.

    For example:

    `graphrag-eval-lc validate qa.yaml --responses responses.jsonl`

    Options:
        as_json --json: Print JSON instead of text.
        --responses -r FILE|RUN_DIR: Responses to check against it: a file, or the folder of a run.
    """
    dataset = needed_dataset(config, dataset)
    load_named_plugins(plugins)
    problems, note = validated(dataset, responses, config, Selection(**keywords(ScoreRunOptions, options)))
    if as_json:
        print_json(validation_document(problems, note))
    else:
        _print_problems(problems, note)
    if any(problem.severity == "error" for problem in problems):
        raise typer.Exit(EXIT_FINDINGS)


def _print_problems(problems: Sequence[Problem], note: str | None) -> None:
    unanswered = [problem for problem in problems if problem.what == UNANSWERED]
    left_out = unanswered[_FIRST_UNANSWERED:] if len(unanswered) > _MOST_UNANSWERED else []
    hidden = set(map(id, left_out))
    for problem in problems:
        if id(problem) not in hidden:
            say(str(problem) if problem.severity == "error" else f"Warning: {problem}")
    if left_out:
        say(f"{counted(len(left_out), 'more question has', 'more questions have')} no response.")
    if note is not None:
        say(f"{chr(10) if problems else ''}{note}.")
    warnings = sum(problem.severity == "warning" for problem in problems)
    errors = len(problems) - warnings
    found = [counted(number, word) for number, word in ((errors, "problem"), (warnings, "warning")) if number]
    gap = "\n" if problems and note is None else ""
    say(f"{gap}{' and '.join(found) or 'No problems'} found.")
    if left_out:
        say(f"{counted(len(unanswered), 'question')} without a response; --answered-only checks only the others.")
