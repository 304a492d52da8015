"""The command ``validate``: finds all mistakes in a dataset."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from graphrag_eval_lc.benchmark.score_options import ScoreRunOptions
from graphrag_eval_lc.cli.options import (
    SELECTING,
    JsonRows,
    Plugins,
    keywords,
    load_named_plugins,
    option,
    with_fields_of,
)
from graphrag_eval_lc.cli.printing import EXIT_FINDINGS, print_document, say
from graphrag_eval_lc.cli.project import Config, Dataset, needed_dataset
from graphrag_eval_lc.dataset.rules import UNANSWERED
from graphrag_eval_lc.dataset.selection import Selection
from graphrag_eval_lc.dataset.validation import Problem, validated
from graphrag_eval_lc.report.json_documents import validation_document
from graphrag_eval_lc.texts import counted

# If more questions have no response, only the first are shown.
_MOST_UNANSWERED = 10
_FIRST_UNANSWERED = 3


@with_fields_of(ScoreRunOptions, only=SELECTING)
def validate(
    dataset: Dataset = None,
    responses: Annotated[
        Path | None,
        option("--responses -r", "Responses to check against it: a file, or the folder of a run.", "FILE|RUN_DIR"),
    ] = None,
    config: Config = None,
    plugins: Plugins = None,
    as_json: JsonRows = False,
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
    """
    dataset = needed_dataset(config, dataset)
    load_named_plugins(plugins)
    problems, note = validated(dataset, responses, config, Selection(**keywords(ScoreRunOptions, options)))
    if as_json:
        print_document(validation_document(problems, note))
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
