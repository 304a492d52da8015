"""The command ``draft-dataset``: captured runs as the draft of a reference dataset."""

from pathlib import Path
from typing import Annotated

import typer


def draft_dataset(
    responses: Annotated[Path, typer.Argument(help="The responses (JSON Lines, JSON or YAML).")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The YAML file to write.", metavar="FILE")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
) -> None:
    """Turn captured runs into a draft of a reference dataset.

    The last successful steps become reference steps, the answers reference answers, all marked `draft: true`. An
    agent's run is no truth: check each question, sort the questions into templates, and take the marks away.

    For example:

    `graphrag-eval-lc draft-dataset runs/first/responses.jsonl --output reference.yaml`
    """
    # Imported here so that --help does not wait for pydantic.
    from graphrag_eval_lc.dataset import load_responses
    from graphrag_eval_lc.drafting import draft_dataset as drafted
    from graphrag_eval_lc.run_folder import write_yaml

    dataset = drafted(load_responses(responses))
    write_yaml(output, dataset, overwrite=overwrite)
    count = sum(len(template.get("questions") or ()) for template in dataset)
    typer.echo(f"Wrote {count} {'question' if count == 1 else 'questions'} to {output}. Check each before you use it.")
