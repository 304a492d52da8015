"""The commands for datasets: validate and draft-dataset."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_eval_lc.benchmark.option_fields import COMMON
from graphrag_eval_lc.cli.model_options import SELECTING, keywords, scoring_model, with_fields_of
from graphrag_eval_lc.cli.options import EXIT_FINDINGS, Plugins, load_named_plugins, say
from graphrag_eval_lc.cli.project import Config, Dataset, needed_dataset
from graphrag_eval_lc.texts import counted

if TYPE_CHECKING:
    from graphrag_eval_lc.dataset.validation import Problem

# Of more unanswered questions only the first are shown.
_MOST_UNANSWERED = 10
_FIRST_UNANSWERED = 3


@with_fields_of(scoring_model, only=SELECTING)
def validate(
    dataset: Dataset = None,
    responses: Annotated[
        Path | None,
        typer.Option(
            "--responses",
            "-r",
            help="Responses to check against it: a file, or the folder of a run.",
            metavar="FILE|RUN_DIR",
        ),
        COMMON,
    ] = None,
    config: Annotated[Config, COMMON] = None,
    plugins: Plugins = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document in place of the lines.")] = False,
    **options: Any,
) -> None:
    """Find everything that is wrong with a dataset, with line, question id, key and how to mend it.

    With responses also what is wrong with them, and tools whose names no reference step has, where reference steps
    are missed for it. The config says what the tools are called among the reference steps (`steps: {names: …}`) and
    which count as retrieval; with a run's folder it is the run's own, unless another is given.

    A problem is what cannot be evaluated as it is meant: misspelt keys, values of a wrong type, repeated ids and keys,
    outputs that cannot be read or are cut, responses that no question has. A warning is what can: media types and
    statuses that are read as meant, ids that YAML changed (0123 is 83 without quotes), references without rows, or with
    rows that another store may sort otherwise.

    Exit code 0: nothing, or only warnings; 1: there are problems; 2: a file cannot be read at all.

    For example:

    `graphrag-eval-lc validate qa.yaml`

    `graphrag-eval-lc validate qa.yaml --responses responses.jsonl`

    `graphrag-eval-lc validate qa.yaml --responses runs/first --config config.yaml`

    `graphrag-eval-lc validate qa.yaml --responses responses.jsonl --answered-only`

    `graphrag-eval-lc validate qa.yaml --plugin my_package.step_kinds`
    """
    # Imported here so that --help does not wait for pydantic.
    from graphrag_eval_lc.cli.json_printing import print_document
    from graphrag_eval_lc.dataset.selection import Selection
    from graphrag_eval_lc.dataset.validation import validated
    from graphrag_eval_lc.report.json_documents import validation_document

    dataset = needed_dataset(config, dataset)
    load_named_plugins(plugins)
    problems, note = validated(dataset, responses, config, Selection(**keywords(scoring_model()[0], options)))
    errors = sum(problem.severity == "error" for problem in problems)
    if as_json:
        print_document(validation_document(problems, note))
    else:
        _print_problems(problems, note)
    if errors:
        raise typer.Exit(EXIT_FINDINGS)


def _print_problems(problems: "Sequence[Problem]", note: str | None) -> None:
    from graphrag_eval_lc.dataset.validation import UNANSWERED

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


def draft_dataset(
    responses: Annotated[
        Path,
        typer.Argument(
            help="The folder of a run, or a file of responses (JSON Lines, JSON or YAML).", metavar="RUN_DIR|RESPONSES"
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="The file to write: JSON where its name ends in .json, else YAML.", metavar="FILE"
        ),
    ],
    dataset: Annotated[
        Path | None,
        typer.Option(
            "--dataset",
            help="The dataset that was asked, whose templates and order are kept; without it that of the run's folder.",
            metavar="FILE",
        ),
    ] = None,
    config: Config = None,
    plugins: Plugins = None,
    keep_references: Annotated[
        bool,
        typer.Option(
            "--keep-references", help="Keep the references that the dataset has, and draft only those that are missing."
        ),
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
) -> None:
    """Turn captured runs into a draft of a reference dataset.

    The last successful steps become reference steps, the answers reference answers, all marked `draft: true`. Steps
    have the names that the config gives their tools (`steps: {names: …}`; with a run's folder its own config, unless
    another is given), SPARQL results are told by their form. Of several repeats the first that did not fail is taken.
    An agent's run is no truth: check each question, and take the marks away.

    For example:

    `graphrag-eval-lc draft-dataset runs/first --output reference.yaml`

    `graphrag-eval-lc draft-dataset responses.jsonl --dataset questions.yaml --config config.yaml -o reference.yaml`
    """
    # Imported here so that --help does not wait for pydantic.
    from graphrag_eval_lc.dataset.drafting import draft
    from graphrag_eval_lc.errors import ResponsesError
    from graphrag_eval_lc.run_folder import write_data

    load_named_plugins(plugins)
    drafted = draft(responses, dataset, config, keep_references=keep_references)
    for note in drafted.notes:
        say(f"Note: {note}", err=True)
    count = drafted.number_of_questions
    if not count:
        raise ResponsesError(
            "there is nothing to draft: no question has a response that did not fail",
            path=responses,
            hint="Ask the agent again: graphrag-eval-lc run … --retry-errors.",
        )
    write_data(output, drafted.templates, overwrite=overwrite)
    say(f"Wrote {counted(count, 'question')} to {output}. Check each before you use it.")
