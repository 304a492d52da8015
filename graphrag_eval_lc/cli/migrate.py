"""The command ``migrate``: from graphrag-eval to this package."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_eval_lc.cli.options import EXIT_FINDINGS, say, tell
from graphrag_eval_lc.errors import GraphRAGEvalWarning
from graphrag_eval_lc.texts import counted

if TYPE_CHECKING:
    from graphrag_eval_lc.migration import Migration


def migrate(
    dataset: Annotated[
        Path, typer.Option("--dataset", "-d", help="graphrag-eval's reference dataset.", metavar="FILE")
    ],
    responses: Annotated[Path, typer.Option("--responses", "-r", help="The responses that it scored.", metavar="FILE")],
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help="Its config, whose models and evaluations are converted.", metavar="OLD"),
    ] = None,
    published: Annotated[
        list[Path] | None,
        typer.Option(
            "--published",
            "-p",
            help="Its results or its aggregates; repeat the option for both.",
            metavar="FILE",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The folder that gets graphrag_eval.yaml.", metavar="DIR"),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
    worst: Annotated[int, typer.Option("--worst", min=0, help="How many differences to show.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document with everything.")] = False,
) -> None:
    """Move from graphrag-eval: convert its config, and check that its figures come out.

    Writes the config with the two settings that make graphrag-eval's figures, its models and its custom evaluations.
    Scores its old responses with these settings, and compares the scores and aggregates with what it published. No
    agent and no model is called.

    Exit code 0: all published figures come out; 1: differences remain; 3: the published results are of other questions.

    For example:

    `graphrag-eval-lc migrate --dataset qa.yaml --responses responses.jsonl --published results.yaml -o evaluation`

    `graphrag-eval-lc migrate -d qa.yaml -r responses.jsonl -c config.yaml -p results.yaml -p aggregates.yaml -o .`
    """
    # Imported here so that --help does not wait for what only scoring needs.
    from graphrag_eval_lc.cli.json_printing import print_json
    from graphrag_eval_lc.migration import migrate as convert

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


def _lines(found: "Migration", most: int) -> Iterator[str]:
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
