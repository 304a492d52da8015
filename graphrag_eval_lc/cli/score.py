"""The command ``score``: recorded responses against a dataset, without an agent."""

from pathlib import Path
from typing import Annotated

import typer

from graphrag_eval_lc.cli.options import Config, Label, Overwrite, Worst


def score(
    dataset: Annotated[Path, typer.Argument(help="The reference dataset (YAML, JSON or JSON Lines).")],
    responses: Annotated[Path, typer.Argument(help="The responses (JSON Lines, JSON or YAML).")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write to.", metavar="DIR")],
    config: Config = None,
    label: Label = None,
    overwrite: Overwrite = False,
    worst: Worst = 5,
) -> None:
    """Score recorded responses; no agent is asked.

    Writes run.json, responses.jsonl, results.jsonl and aggregates.yaml, and prints the scores by template.

    For example:

    `graphrag-eval-lc score qa.yaml responses.jsonl --output runs/monday`

    `graphrag-eval-lc score qa.yaml responses.jsonl -o runs/monday -c config.yaml --overwrite`
    """
    # Imported here so that --help does not wait for what only a run needs.
    from graphrag_eval_lc.cli.outcome import show_run
    from graphrag_eval_lc.runner.scoring import score_responses

    scored = score_responses(dataset, responses, output_dir=output, config=config, label=label, overwrite=overwrite)
    show_run(scored, worst=worst)
