"""The command ``migrate``: from graphrag-eval to this package."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from graphrag_eval_lc.cli.options import JsonRows, Overwrite, option
from graphrag_eval_lc.cli.printing import EXIT_FINDINGS, print_json, say, tell
from graphrag_eval_lc.errors import GraphRAGEvalWarning
from graphrag_eval_lc.onboarding.migration import Migration
from graphrag_eval_lc.onboarding.migration import migrate as convert
from graphrag_eval_lc.texts import counted


def migrate(
    dataset: Annotated[Path, option("--dataset -d", "graphrag-eval's reference dataset.", "FILE")],
    responses: Annotated[Path, option("--responses -r", "The responses that it scored.", "FILE")],
    config: Annotated[
        Path | None, option("--config -c", "Its config, whose models and evaluations are converted.", "OLD")
    ] = None,
    published: Annotated[
        list[Path] | None,
        option("--published -p", "Its results or its aggregates; may be repeated for both.", "FILE"),
    ] = None,
    output: Annotated[Path | None, option("--output -o", "The folder to write graphrag_eval.yaml to.", "DIR")] = None,
    overwrite: Overwrite = False,
    worst: Annotated[int, option("--worst", "How many differences to show.", min=0)] = 20,
    as_json: JsonRows = False,
) -> None:
    """Migrate from graphrag-eval: convert its config, and check that you get the same scores.

    Writes the config with the two settings that reproduce graphrag-eval's figures, its models and its custom
    evaluations. Scores its old responses with these settings, and compares the scores and aggregates with the
    published ones. It calls no agent and no model.

    Exit code 0: all published figures are reproduced; 1: differences remain; 3: the published results belong to other
    questions.

    For example:

    `graphrag-eval-lc migrate -d qa.yaml -r responses.jsonl -c config.yaml -p results.yaml -o evaluation`
    """
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", GraphRAGEvalWarning)
        found = convert(
            dataset,
            responses,
            config=config,
            published=tuple(published or ()),
            output_dir=output,
            overwrite=overwrite,
        )
    for warning in told:
        tell(f"Warning: {warning.message}")
    if as_json:
        print_json(found.document())
    else:
        for line in _lines(found, worst):
            say(line, keeps_lines=False)
    if found.differences:
        raise typer.Exit(EXIT_FINDINGS)


def _lines(found: Migration, most: int) -> Iterator[str]:
    """Yield the verdict, what differs, and what was converted and written."""
    yield found.verdict
    for each in found.differences[:most]:
        place = f"{each.question_id}, {each.key}" if each.question_id is not None else each.key
        yield f"  {place}: published {_shown(each.published)}, here {_shown(each.here)}. {each.why}"
    if len(found.differences) > most:
        yield f"  … and {counted(len(found.differences) - most, 'more difference')}; --json has all."
    if found.notes:
        yield ""
    for note in found.notes:
        yield f"Note: {note}"
    if found.files:
        yield ""
    for path in found.files:
        yield f"Written: {path}"


def _shown(value: object) -> str:
    return "nothing" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
