"""The command ``validate``: what is wrong with a dataset and with responses to it."""

from pathlib import Path
from typing import Annotated

import typer

from graphrag_eval_lc.cli.options import Config, Plugins, load_named_plugins
from graphrag_eval_lc.texts import counted


def validate(
    dataset: Annotated[Path, typer.Argument(help="The reference dataset (YAML, JSON or JSON Lines).")],
    responses: Annotated[
        Path | None,
        typer.Option(
            "--responses",
            "-r",
            help="Responses to check against it: a file, or the folder of a run.",
            metavar="FILE|RUN_DIR",
        ),
    ] = None,
    config: Config = None,
    plugins: Plugins = None,
) -> None:
    """Find everything that is wrong with a dataset, with line, question id, key and how to mend it.

    With responses also tools whose names no reference step has, where reference steps are missed for it. The config
    says what the tools are called among the reference steps (`steps: {names: …}`) and which count as retrieval.

    Exit code 0: nothing; 1: there are problems; 2: a file cannot be read at all.

    For example:

    `graphrag-eval-lc validate qa.yaml`

    `graphrag-eval-lc validate qa.yaml --responses responses.jsonl`

    `graphrag-eval-lc validate qa.yaml --responses runs/first --config config.yaml`

    `graphrag-eval-lc validate qa.yaml --plugin my_package.step_kinds`
    """
    # Imported here so that --help does not wait for pydantic.
    from graphrag_eval_lc.cli.outcome import EXIT_FINDINGS
    from graphrag_eval_lc.validation import validate_dataset

    load_named_plugins(plugins)
    problems = validate_dataset(dataset, responses, config)
    for problem in problems:
        typer.echo(str(problem))
    if problems:
        typer.echo(f"\n{counted(len(problems), 'problem')} found.")
        raise typer.Exit(EXIT_FINDINGS)
    typer.echo("No problems found.")
