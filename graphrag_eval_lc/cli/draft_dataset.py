"""The command ``draft-dataset``: captured runs as the draft of a reference dataset."""

from pathlib import Path
from typing import Annotated

import typer

from graphrag_eval_lc.cli.options import Config, Plugins, load_named_plugins
from graphrag_eval_lc.texts import counted


def draft_dataset(
    responses: Annotated[
        Path,
        typer.Argument(
            help="The folder of a run, or a file of responses (JSON Lines, JSON or YAML).", metavar="RUN_DIR|RESPONSES"
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="The file to write: JSON where its name ends in .json, else YAML.", metavar="FILE"
        ),
    ],
    dataset: Annotated[
        Path | None,
        typer.Option(
            "--dataset",
            help="The dataset that was asked, whose templates and order are kept; without it that of the run's folder.",
            metavar="FILE",
        ),
    ] = None,
    config: Config = None,
    plugins: Plugins = None,
    keep_references: Annotated[
        bool,
        typer.Option(
            "--keep-references", help="Keep the references that the dataset has, and draft only those that are missing."
        ),
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
) -> None:
    """Turn captured runs into a draft of a reference dataset.

    The last successful steps become reference steps, the answers reference answers, all marked `draft: true`. Steps
    have the names that the config gives their tools (`steps: {names: …}`; with a run's folder its own config, unless
    another is given), SPARQL results are told by their form. Of several repeats the first that did not fail is taken.
    An agent's run is no truth: check each question, and take the marks away.

    For example:

    `graphrag-eval-lc draft-dataset runs/first --output reference.yaml`

    `graphrag-eval-lc draft-dataset responses.jsonl --dataset questions.yaml --config config.yaml -o reference.yaml`
    """
    # Imported here so that --help does not wait for pydantic.
    from graphrag_eval_lc.drafting import draft
    from graphrag_eval_lc.errors import ResponsesError
    from graphrag_eval_lc.run_folder import write_data

    load_named_plugins(plugins)
    drafted = draft(responses, dataset, config, keep_references=keep_references)
    for note in drafted.notes:
        typer.echo(f"Note: {note}", err=True)
    count = drafted.number_of_questions
    if not count:
        raise ResponsesError(
            "there is nothing to draft: no question has a response that did not fail",
            path=responses,
            mend="Ask the agent again: graphrag-eval-lc run … --retry-errors.",
        )
    write_data(output, drafted.templates, overwrite=overwrite)
    typer.echo(f"Wrote {counted(count, 'question')} to {output}. Check each before you use it.")
