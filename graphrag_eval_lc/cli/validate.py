"""The command ``validate``: what is wrong with a dataset and with responses to it."""

from pathlib import Path
from typing import Annotated

import typer


def validate(
    dataset: Annotated[Path, typer.Argument(help="The reference dataset (YAML, JSON or JSON Lines).")],
    responses: Annotated[
        Path | None, typer.Option("--responses", "-r", help="Responses to check against it.", metavar="FILE")
    ] = None,
) -> None:
    """Find everything that is wrong with a dataset, with line, question id, key and how to mend it.

    Exit code 0: nothing; 1: there are problems; 2: a file cannot be read at all.

    For example:

    `graphrag-eval-lc validate qa.yaml`

    `graphrag-eval-lc validate qa.yaml --responses responses.jsonl`
    """
    # Imported here so that --help does not wait for pydantic.
    from graphrag_eval_lc.cli.outcome import EXIT_FINDINGS
    from graphrag_eval_lc.validation import validate_dataset

    problems = validate_dataset(dataset, responses)
    for problem in problems:
        typer.echo(str(problem))
    if problems:
        typer.echo(f"\n{len(problems)} {'problem' if len(problems) == 1 else 'problems'} found.")
        raise typer.Exit(EXIT_FINDINGS)
    typer.echo("No problems found.")
