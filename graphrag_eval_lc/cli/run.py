"""The command ``run``: a dataset through an agent."""

from pathlib import Path
from typing import Annotated

import typer

from graphrag_eval_lc.cli.options import Config, Label, MaxConcurrency, Overwrite, Worst


def run(
    dataset: Annotated[Path, typer.Argument(help="The reference dataset (YAML, JSON or JSON Lines).")],
    agent: Annotated[
        str,
        typer.Option(
            "--agent",
            "-a",
            help="package.module:attribute or path/to/file.py:attribute: a compiled graph over a messages state, "
            "or a function without arguments that returns one.",
            metavar="SPEC",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write to.", metavar="DIR")],
    config: Config = None,
    max_concurrency: MaxConcurrency = 8,
    label: Label = None,
    overwrite: Overwrite = False,
    worst: Worst = 5,
) -> None:
    """Put the questions of a dataset through an agent and score the responses.

    Writes responses.jsonl (a line as each response ends), run.json, results.jsonl and aggregates.yaml, and prints
    the scores by template. A question that fails becomes an error sample and does not end the run.

    For example:

    `graphrag-eval-lc run qa.yaml --agent my_package.agent:graph --output runs/first`

    `graphrag-eval-lc run qa.yaml -a agent.py:make_agent -o runs/second -c config.yaml -j 4`
    """
    # Imported here so that --help does not wait for langchain-core and langgraph.
    from graphrag_eval_lc.cli.outcome import run_with_progress, show_run

    finished = run_with_progress(
        agent,
        dataset,
        output_dir=output,
        config=config,
        max_concurrency=max_concurrency,
        label=label,
        overwrite=overwrite,
    )
    show_run(finished, worst=worst)
