"""Prints the documents of ``--json``."""

import typer
from pydantic import BaseModel

from graphrag_eval_lc.json_values import json_text


def print_document(document: BaseModel) -> None:
    """Print a document as JSON."""
    typer.echo(json_text(document.model_dump(mode="json"), indent=2))
