"""The command ``answer-correctness``: a table of answers, each compared with its reference answer by a model."""

from pathlib import Path
from typing import Annotated

import typer

from graphrag_eval_lc.cli.options import Quiet
from graphrag_eval_lc.texts import counted

# The longer names are graphrag-eval's.
JudgeConfig = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        "--config-yaml-file-path",
        help="A YAML or JSON file with the configuration: its llm, judges, prices and answer_correctness.prompt are "
        "used. Without it: gpt-4o-mini, with the key in OPENAI_API_KEY.",
        metavar="FILE",
    ),
]
Anew = Annotated[
    bool, typer.Option("--overwrite", help="Begin anew, such as with another model: earlier rows are not kept.")
]


def answer_correctness(
    input_file: Annotated[
        Path,
        typer.Option(
            "--input",
            "-i",
            "--input-tsv-file-path",
            help="Tab-separated values with the columns Question, Reference answer and Actual answer.",
            metavar="FILE",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", "--output-tsv-file-path", help="The file to write.", metavar="FILE")
    ],
    config: JudgeConfig = None,
    overwrite: Anew = False,
    quiet: Quiet = False,
) -> None:
    """Compare the answers of a table with their reference answers, claim by claim.

    Writes the columns of the input, then #Reference (claims of the reference answer), #PTarget (claims of the actual
    answer), #Matching (claims of it that the reference supports), Reasoning, Error, and the claims themselves as JSON
    lists: True positives, False positives, False negatives. Columns that are called so in the input are replaced.

    Rows that the output holds from an earlier time are kept, and those with an error asked again. A run that was
    stopped goes on when the command is given again.

    For example:

    `graphrag-eval-lc answer-correctness -i answers.tsv -o judged.tsv -c config.yaml`
    """
    # Imported here so that --help does not wait for what only judging needs.
    from graphrag_eval_lc.cli.judged_table import judged_table, tell_cost, tell_errors
    from graphrag_eval_lc.judged_tables.answer_judge import answer_judge
    from graphrag_eval_lc.judged_tables.judging import answers_in
    from graphrag_eval_lc.judged_tables.tsv import read_table

    table = read_table(input_file)
    answers_in(table)  # before a model is asked for
    judge = answer_judge(config)
    judged = judged_table(table, judge, is_quiet=quiet, output=output, overwrite=overwrite)
    typer.echo(f"Wrote {counted(len(judged.cells), 'row')} to {output}.")
    tell_cost(judged, judge)
    tell_errors(judged)
