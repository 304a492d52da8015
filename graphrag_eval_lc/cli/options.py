"""The options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Config = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="A YAML or JSON file with the configuration.", metavar="FILE"),
]
Label = Annotated[str | None, typer.Option("--label", help="A name for the run, kept in run.json.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an earlier run in the folder.")]
MaxConcurrency = Annotated[
    int, typer.Option("--max-concurrency", "-j", min=1, help="How many questions are asked at the same time.")
]
Worst = Annotated[int, typer.Option("--worst", min=0, help="How many of the worst questions to show.")]
