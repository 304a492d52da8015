"""The commands of ``judge``: answers in a table judged, the judge compared with people, and its certificate."""

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from graphrag_eval_lc import __version__
from graphrag_eval_lc.benchmark.option_fields import DISPLAY, QUIET
from graphrag_eval_lc.cli.judged_tables import certified, judged_table, tell_cost, tell_errors
from graphrag_eval_lc.cli.options import option
from graphrag_eval_lc.cli.outcome import show_judging_plan
from graphrag_eval_lc.cli.printing import output_console, say
from graphrag_eval_lc.cli.project import Config, Dataset, needed_dataset
from graphrag_eval_lc.config import load_config
from graphrag_eval_lc.dataset.loading import load_dataset
from graphrag_eval_lc.evaluation.judge_agreement import JudgeAgreement, majority, verdict_in, verdict_text
from graphrag_eval_lc.evaluation.judge_certificate import (
    asks_of,
    certificate_of,
    references_of,
    write_certificate,
)
from graphrag_eval_lc.evaluation.judged_tables import answer_judge, answers_in
from graphrag_eval_lc.judges.altered_answers import altered_answers
from graphrag_eval_lc.judges.answer_tables import LABEL_COLUMN, labels_in, read_table
from graphrag_eval_lc.judges.request_plan import RequestPlan
from graphrag_eval_lc.prices import Pricing
from graphrag_eval_lc.registry.metrics import ANSWER_F1, ANSWER_RECALL
from graphrag_eval_lc.report.agreement_table import agreement_tables
from graphrag_eval_lc.report.certificate_table import certificate_tables
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
    label_columns: Annotated[
        list[str] | None,
        option(
            "--label-column",
            "The column in which people said whether the answer is correct: 1, yes, true or correct; 0, no, false or "
            "incorrect. Default: Label. Once for each person; then the majority of an answer's labels counts.",
            "NAME",
        ),
    ] = None,
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
    judge and people disagree. Rows without a label or with an error of the judge are left out and counted. With several
    label columns it also prints Krippendorff's alpha of the people, and of the people and the judge.

    For example:

    `graphrag-eval-lc judge agreement labelled.tsv -c config.yaml -o judged.tsv`
    """
    table = read_table(labelled)
    questions = [question for question, _, _ in answers_in(table)]
    people = [labels_in(table, column) for column in label_columns or [LABEL_COLUMN]]
    labels = [majority(row) for row in zip(*people, strict=True)]
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
    found = JudgeAgreement(labels, [verdict_of(cells) for cells in judged.cells], people)
    say(f"Judge: {judge.name}; an answer is correct if {metric.value} ≥ {threshold:g}.")
    console = output_console()
    for each in agreement_tables(found, questions, judged.cells, show=show):
        console.print(each)
    if output is not None:
        say(f"Written to {output}.")
    tell_cost(judged, judge)
    tell_errors(judged)


def certify(
    dataset: Dataset = None,
    config: Config = None,
    output: Annotated[
        Path,
        option("--output -o", "The file to write. The judge's answers are cached next to it.", "FILE"),
    ] = Path("judge_certificate.json"),
    per_kind: Annotated[int, option("--per-kind", "How many answers of each kind to judge.", "N", min=1)] = 20,
    max_cost: Annotated[
        float | None, option("--max-cost", "The most USD that the judge may cost.", "USD", min=0.0)
    ] = None,
    dry_run: Annotated[bool, option("--dry-run", "Only show what would be asked, with tokens and USD.")] = False,
    threshold: Annotated[
        float,
        option(
            "--threshold",
            "The lowest answer_f1 of an answer that the judge calls right. At 1, no claim may be wrong or missing.",
            min=0,
            max=1,
        ),
    ] = 1.0,
    asks: Annotated[int, option("--asks", "How many times an answer is judged for the self-agreement.", min=1)] = 3,
    repeated: Annotated[
        int, option("--repeated", "How many answers of each kind are judged that often.", "N", min=0)
    ] = 5,
    seed: Annotated[int, option("--seed", "Which questions are chosen.", min=0)] = 0,
    overwrite: Annotated[bool, option("--overwrite", "Ask everything again, also what is cached.")] = False,
    quiet: Quiet = False,
) -> None:
    """Measure what the judge notices, with answers made from your references.

    The answers are known to be wrong or right. Wrong ones lack a value or row, have two values exchanged, another digit
    or unit, a negation, an invented row or the wrong order, refuse, or answer another question, also with polite words
    or with a demand for full marks. Right answers are the reference itself, reordered, as a table, with IRIs next to
    names, short, with polite words, or with such a demand.

    Prints for each kind how many wrong answers are caught and right ones pass, with 95 % intervals, in how many answers
    the judge agrees with itself, and what length, order and demands change. Writes a certificate: name it in the
    config (judges: {certificate: FILE}), and reports show it next to the judged scores.

    For example:

    `graphrag-eval-lc judge certify qa.yaml --max-cost 2`
    """
    dataset = needed_dataset(config, dataset)
    references = references_of(load_dataset(dataset))
    answers = altered_answers(references, per_kind=per_kind, seed=seed)
    wanted = asks_of(answers, asks=asks, repeated=repeated)
    plan = RequestPlan(Pricing(load_config(config).prices)) if dry_run else None
    certifying, judge = certified(
        config, references, wanted, output, max_cost=max_cost, plan=plan, overwrite=overwrite, is_quiet=quiet
    )
    if plan is not None:
        say(f"{counted(len(answers), 'answer')} of {counted(len({each.kind for each in answers}), 'kind')}.")
        show_judging_plan(plan)
        return
    certificate = certificate_of(
        certifying.judged, judge, dataset=dataset, questions=len(references), threshold=threshold, version=__version__
    )
    write_certificate(certificate, output)
    console = output_console()
    for each in certificate_tables(certificate):
        console.print(each)
    say(f"Written to {output}. To show it in reports, add to the config: judges: {{certificate: {output}}}")
