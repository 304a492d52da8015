"""The commands of ``judge``: answers in a table judged, and the judge compared with people."""

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from graphrag_eval_lc.benchmark.option_fields import DISPLAY, QUIET
from graphrag_eval_lc.cli.judged_tables import judged_table, tell_cost, tell_errors
from graphrag_eval_lc.cli.options import option
from graphrag_eval_lc.cli.printing import output_console, say
from graphrag_eval_lc.evaluation.answer_tables import read_table
from graphrag_eval_lc.evaluation.judge_agreement import JudgeAgreement, labels_in, verdict_in, verdict_text
from graphrag_eval_lc.evaluation.judged_tables import answer_judge, answers_in
from graphrag_eval_lc.registry.metrics import ANSWER_F1, ANSWER_RECALL
from graphrag_eval_lc.report.agreement_table import agreement_tables
from graphrag_eval_lc.texts import counted

# The longer names are graphrag-eval's.
JudgeConfig = Annotated[
    Path | None,
    option(
        "--config -c",
        "A YAML or JSON file with the configuration; llm, judges, prices and answer_correctness.prompt are used. "
        "Default: gpt-4o-mini, with the key in OPENAI_API_KEY.",
        "FILE",
    ),
]
Again = Annotated[bool, option("--overwrite", "Judge all rows again, for example with another model.")]
Quiet = Annotated[bool, option("--quiet -q", str(QUIET.help))]


def answers(
    input_file: Annotated[
        Path,
        option(
            "--input -i",
            "A CSV or TSV file with the columns question_text, reference_answer and actual_answer, or Question, "
            "Reference answer and Actual answer.",
            "FILE",
        ),
    ],
    output: Annotated[Path, option("--output -o", "The file to write.", "FILE")],
    config: JudgeConfig = None,
    overwrite: Again = False,
    quiet: Quiet = False,
) -> None:
    """Compare the answers in a table with their reference answers, by claims.

    Writes the columns of the input, then #Reference (claims of the reference answer), #PTarget (claims of the actual
    answer), #Matching (claims of it that the reference supports), Reasoning, Error, and the claims themselves as JSON
    lists: True positives, False positives, False negatives. These columns of the input are replaced. Rows that the
    output already has are kept, and those with an error are retried; so the same command resumes a stopped one.

    For example:

    `graphrag-eval-lc judge answers -i answers.tsv -o judged.tsv -c config.yaml`
    """
    table = read_table(input_file)
    answers_in(table)  # before a model is needed
    judge = answer_judge(config)
    judged = judged_table(table, judge, is_quiet=quiet, output=output, overwrite=overwrite)
    say(f"Wrote {counted(len(judged.cells), 'row')} to {output}.")
    tell_cost(judged, judge)
    tell_errors(judged)


class Metric(StrEnum):
    """The scores that can decide whether the judge calls an answer correct."""

    ANSWER_F1 = ANSWER_F1
    ANSWER_RECALL = ANSWER_RECALL


def agreement(
    labelled: Annotated[
        Path,
        typer.Argument(
            help="A CSV or TSV file with the columns question_text, reference_answer, actual_answer (or Question, "
            "Reference answer, Actual answer) and Label.",
            metavar="FILE",
        ),
    ],
    config: JudgeConfig = None,
    output: Annotated[
        Path | None,
        option(
            "--output -o",
            "A file for all rows, with the judge's findings and verdict. With it, the command can resume, and another "
            "metric or threshold needs no further requests.",
            "FILE",
        ),
    ] = None,
    label_column: Annotated[
        str,
        option(
            "--label-column",
            "The column in which people said whether the answer is correct: 1, yes, true or correct; 0, no, false or "
            "incorrect.",
            "NAME",
        ),
    ] = "Label",
    metric: Annotated[Metric, option("--metric", "The score by which the judge decides.")] = Metric.ANSWER_F1,
    threshold: Annotated[
        float,
        option(
            "--threshold",
            "The lowest score of an answer that the judge calls correct. At an F1 of 0.5 the answer has on average as "
            "many right claims as wrong and missing ones; at 1 no claim is wrong or missing.",
            min=0,
            max=1,
        ),
    ] = 0.5,
    overwrite: Again = False,
    quiet: Quiet = False,
    show: Annotated[int, option("--show", "How many disagreements to show.", panel=DISPLAY, min=0)] = 20,
) -> None:
    """Measure how often the judge agrees with people who labelled answers.

    Prints the agreement, Cohen's kappa, the false positive rate (answers that the judge calls correct, of those that
    people call incorrect) and the false negative rate (the reverse), each with its 95 % interval, and the rows on which
    judge and people disagree. Rows without a label or with an error of the judge are left out and counted.

    For example:

    `graphrag-eval-lc judge agreement labelled.tsv -c config.yaml -o judged.tsv`
    """
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
    found = JudgeAgreement(labels, [verdict_of(cells) for cells in judged.cells])
    say(f"Judge: {judge.name}; an answer is correct if {metric.value} ≥ {threshold:g}.")
    console = output_console()
    for each in agreement_tables(found, questions, judged.cells, show=show):
        console.print(each)
    if output is not None:
        say(f"Written to {output}.")
    tell_cost(judged, judge)
    tell_errors(judged)
