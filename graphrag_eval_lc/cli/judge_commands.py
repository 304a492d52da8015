"""The commands that judge tables of answers: answer-correctness and judge-agreement."""

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from graphrag_eval_lc.benchmark.option_fields import COMMON
from graphrag_eval_lc.cli.options import Quiet, say
from graphrag_eval_lc.registry.metrics import ANSWER_F1, ANSWER_RECALL
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
            help="A CSV or TSV file with the columns question_text, reference_answer and actual_answer, or Question, "
            "Reference answer and Actual answer.",
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
    from graphrag_eval_lc.cli.judged_tables import judged_table, tell_cost, tell_errors
    from graphrag_eval_lc.evaluation.answer_tables import read_table
    from graphrag_eval_lc.evaluation.judged_tables import answer_judge, answers_in

    table = read_table(input_file)
    answers_in(table)  # before a model is asked for
    judge = answer_judge(config)
    judged = judged_table(table, judge, is_quiet=quiet, output=output, overwrite=overwrite)
    say(f"Wrote {counted(len(judged.cells), 'row')} to {output}.")
    tell_cost(judged, judge)
    tell_errors(judged)


class Metric(StrEnum):
    """The scores that can decide whether the judge calls an answer correct."""

    ANSWER_F1 = ANSWER_F1
    ANSWER_RECALL = ANSWER_RECALL


def judge_agreement(
    labelled: Annotated[
        Path,
        typer.Argument(
            help="A CSV or TSV file with the columns question_text, reference_answer, actual_answer (or Question, "
            "Reference answer, Actual answer) and Label.",
            metavar="FILE",
        ),
    ],
    config: Annotated[JudgeConfig, COMMON] = None,
    label_column: Annotated[
        str,
        typer.Option(
            "--label-column",
            help="The column in which people said whether the answer is correct: 1, yes, true or correct; 0, no, "
            "false or incorrect.",
            metavar="NAME",
        ),
        COMMON,
    ] = "Label",
    metric: Annotated[Metric, typer.Option("--metric", help="The score by which the judge decides."), COMMON] = (
        Metric.ANSWER_F1
    ),
    threshold: Annotated[
        float,
        typer.Option(
            "--threshold",
            min=0,
            max=1,
            help="The least score of an answer that the judge calls correct. At 0.5 an F1 has as many claims right as "
            "there are wrong and missing ones on average; at 1 no claim is wrong or missing.",
        ),
    ] = 0.5,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="A file for all rows, with what the judge found and its verdict. With it, the command goes on where "
            "it was stopped, and asks nothing again for another metric or threshold.",
            metavar="FILE",
        ),
        COMMON,
    ] = None,
    overwrite: Annotated[Anew, COMMON] = False,
    show: Annotated[int, typer.Option("--show", min=0, help="How many disagreements to show.")] = 20,
    quiet: Annotated[Quiet, COMMON] = False,
) -> None:
    """Tell how far the judge of answer correctness agrees with people who labelled answers.

    Prints the agreement, Cohen's kappa, the false positive rate (answers that the judge calls correct, of those that
    people call incorrect) and the false negative rate (the reverse), each with its 95 % interval, and lists the rows
    on which judge and people disagree. Rows without a label, and those that the judge could not judge, are left out
    and counted.

    For example:

    `graphrag-eval-lc judge-agreement labelled.tsv -c config.yaml -o judged.tsv`
    """
    # Imported here so that --help does not wait for what only judging needs.
    from graphrag_eval_lc.cli.judged_tables import judged_table, print_agreement, tell_cost, tell_errors
    from graphrag_eval_lc.evaluation.answer_tables import read_table
    from graphrag_eval_lc.evaluation.judge_agreement import JudgeAgreement, labels_in, verdict_in, verdict_text
    from graphrag_eval_lc.evaluation.judged_tables import answer_judge, answers_in

    table = read_table(labelled)
    questions = [question for question, _, _ in answers_in(table)]
    labels = labels_in(table, label_column)
    judge = answer_judge(config)
    verdict_of = partial(verdict_in, metric=metric.value, threshold=threshold)
    judged = judged_table(
        table,
        judge,
        is_quiet=quiet,
        chosen=[label is not None for label in labels],
        output=output,
        overwrite=overwrite,
        more_columns={"Verdict": lambda cells: verdict_text(verdict_of(cells))},
    )
    agreement = JudgeAgreement(labels, [verdict_of(cells) for cells in judged.cells])
    say(f"Judge: {judge.name}; an answer is correct where {metric.value} ≥ {threshold:g}.")
    print_agreement(agreement, questions, judged.cells, show=show)
    if output is not None:
        say(f"Written to {output}.")
    tell_cost(judged, judge)
    tell_errors(judged)
