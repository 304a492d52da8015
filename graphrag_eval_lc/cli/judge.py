"""The commands ``judge answers``, ``judge agreement`` (with labels of people) and ``judge certify``."""

from collections.abc import Sequence
from contextlib import closing
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from graphrag_eval_lc import __version__
from graphrag_eval_lc.benchmark.progress import progress_display
from graphrag_eval_lc.budget import Budget
from graphrag_eval_lc.cli.options import option, with_options
from graphrag_eval_lc.cli.outcome import show_judging_plan
from graphrag_eval_lc.cli.printing import EXIT_FINDINGS, EXIT_INTERRUPTED, echo_err, output_console, say
from graphrag_eval_lc.cli.project import Config, Dataset, needed_dataset
from graphrag_eval_lc.config import load_config
from graphrag_eval_lc.dataset.loading import load_dataset
from graphrag_eval_lc.errors import cannot_write
from graphrag_eval_lc.evaluation.events import Observer, RunEvent
from graphrag_eval_lc.evaluation.judge_agreement import JudgeAgreement, majority, verdict_in, verdict_text
from graphrag_eval_lc.evaluation.judge_certificate import (
    Ask,
    Certifying,
    asks_of,
    certificate_of,
    check_complete,
    references_of,
    write_certificate,
)
from graphrag_eval_lc.evaluation.judged_tables import AnswerJudge, JudgedTable, answer_judge, answers_in, judge_table
from graphrag_eval_lc.judges.altered_answers import Reference, altered_answers
from graphrag_eval_lc.judges.answer_tables import LABEL_COLUMN, AnswerTable, is_judged, labels_in, read_table
from graphrag_eval_lc.judges.cache import JudgeCache
from graphrag_eval_lc.judges.request_plan import RequestPlan
from graphrag_eval_lc.prices import Pricing, dollars, unpriced_warning
from graphrag_eval_lc.registry.metrics import ANSWER_F1, ANSWER_RECALL, TOTAL_TOKENS
from graphrag_eval_lc.report.judge_tables import agreement_tables, certificate_tables
from graphrag_eval_lc.texts import counted


def judged_table(
    table: AnswerTable, judge: AnswerJudge, *, output: Path | None, overwrite: bool, is_quiet: bool, **options: Any
) -> JudgedTable:
    """Judge a table and show the progress."""
    try:
        with progress_display("off" if is_quiet else "auto") as observer:
            progress = _Progress(observer, judge.max_concurrency)
            judged = judge_table(table, judge, progress, output=output, overwrite=overwrite, **options)
    except KeyboardInterrupt:
        again = "Run the same command to resume" + (", without --overwrite." if overwrite else ".")
        echo_err("Stopped." if output is None else f"Stopped. Judged answers are kept. {again}")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if judged.outdated:
        echo_err(
            f"Warning: judged answers that are no longer in the input were left out of {output}: {judged.outdated:,}."
        )
    return judged


def certified(
    config: Path | None,
    references: Sequence[Reference],
    asks: Sequence[Ask],
    output: Path,
    *,
    max_cost: float | None,
    plan: RequestPlan | None,
    overwrite: bool,
    is_quiet: bool,
) -> tuple[Certifying, AnswerJudge]:
    """Judge altered answers and show the progress; the judge's answers are cached next to the output.

    With a ``plan`` (``--dry-run``) nothing is sent or written.
    """
    path = output.with_name(f"{output.name}.cache.jsonl")
    if plan is None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if overwrite:
                path.unlink(missing_ok=True)
        except OSError as problem:
            raise cannot_write(path, problem) from problem
    with closing(JudgeCache(path)) as cache:
        budget = Budget(max_cost)
        if max_cost is not None:
            budget.spend(cache.spent())
        judge = answer_judge(config, cache=cache, budget=budget, plan=plan)
        try:
            with progress_display("off" if is_quiet or plan is not None else "auto") as observer:
                certifying = Certifying(judge, references, _Progress(observer, judge.max_concurrency))
                certifying.run(asks)
        except KeyboardInterrupt:
            echo_err("Stopped. Judged answers are kept. Run the same command to resume.")
            raise typer.Exit(EXIT_INTERRUPTED) from None
    if plan is None:
        check_complete(certifying)
        if judge.pricing.unpriced:
            echo_err(f"Warning: {unpriced_warning(judge.pricing.unpriced)}")
    return certifying, judge


def report_cost(judged: JudgedTable, judge: AnswerJudge) -> None:
    """Print how many answers this command judged, and what they cost."""
    if not judged.asked:
        if judged.cells:
            say("All of these answers had been judged before; --overwrite asks again.")
        return
    cost = "not known" if judged.cost is None else dollars(judged.cost)
    say(f"Cost: {cost} ({counted(judged.asked, 'answer')} judged now)")
    if judge.pricing.unpriced:
        echo_err(f"Warning: {unpriced_warning(judge.pricing.unpriced)}")


def report_errors(judged: JudgedTable) -> None:
    """Print how many rows could not be judged."""
    errors = [cells["Error"] for cells in judged.cells if cells["Error"]]
    if errors:
        rows = counted(len(errors), "row")
        if judged.given_up is not None:
            echo_err(f"{judged.given_up}; {rows} could not be judged. Run the same command to retry them.")
            raise typer.Exit(EXIT_FINDINGS)
        echo_err(f"{rows} could not be judged. Run the same command to retry them. The first error: {errors[0]}")
        if not any(map(is_judged, judged.cells)):
            raise typer.Exit(EXIT_FINDINGS)


class _Progress:
    """Shows the progress of judging like that of a run, with an answer in the role of a question."""

    def __init__(self, observer: Observer, max_concurrency: int) -> None:
        self._observer = observer
        self._max_concurrency = max_concurrency

    def started(self, total: int, done: int) -> None:
        fields = {"total": total, "done": done, "errors": 0, "max_concurrency": self._max_concurrency}
        self._observer(RunEvent("run_started", fields))

    def judged(self, error: str) -> None:
        status = "error" if error else "success"
        fields = {"question_id": "", "repeat": None, "status": status, TOTAL_TOKENS: None}
        self._observer(RunEvent("response_ended", fields))


JudgeConfig = Annotated[
    Path | None,
    option(
        "--config -c",
        "A YAML or JSON file with the configuration; llm, judges, prices and answer_correctness.prompt are used. "
        "Default: gpt-4o-mini, with the key in OPENAI_API_KEY.",
        "FILE",
    ),
]


@with_options()
def answers(
    input_file: Path, output: Path, config: JudgeConfig = None, overwrite: bool = False, quiet: bool = False
) -> None:
    """Compare the answers in a table with their reference answers, by claims.

    Writes the columns of the input, then #Reference (claims of the reference answer), #PTarget (claims of the actual
    answer), #Matching (claims of it that the reference supports), Reasoning, Error, and the claims themselves as JSON
    lists: True positives, False positives, False negatives. These columns of the input are replaced. Rows that the
    output already has are kept, and those with an error are retried; so the same command resumes a stopped one.

    For example:

    `graphrag-eval-lc judge answers -i answers.tsv -o judged.tsv -c config.yaml`

    Options:
        input_file --input -i FILE: A CSV or TSV file with the columns question_text, reference_answer and
            actual_answer, or Question, Reference answer and Actual answer.
        --overwrite: Judge all rows again, for example with another model.
        --output -o FILE: The file to write.
    """
    table = read_table(input_file)
    answers_in(table)  # reports mistakes in the table before a model is needed
    judge = answer_judge(config)
    judged = judged_table(table, judge, is_quiet=quiet, output=output, overwrite=overwrite)
    say(f"Wrote {counted(len(judged.cells), 'row')} to {output}.")
    report_cost(judged, judge)
    report_errors(judged)


class Metric(StrEnum):
    """The scores that can decide whether the judge calls an answer correct."""

    ANSWER_F1 = ANSWER_F1
    ANSWER_RECALL = ANSWER_RECALL


@with_options()
def agreement(
    labelled: Path,
    config: JudgeConfig = None,
    output: Path | None = None,
    label_columns: list[str] | None = None,
    metric: Metric = Metric.ANSWER_F1,
    threshold: float = 0.5,
    overwrite: bool = False,
    quiet: bool = False,
    show: int = 20,
) -> None:
    """Measure how often the judge agrees with people who labelled answers.

    Prints the agreement, Cohen's kappa, the false positive rate (answers that the judge calls correct, of those that
    people call incorrect) and the false negative rate (the reverse), each with its 95 % interval, and the rows on which
    judge and people disagree. Rows without a label or with an error of the judge are left out and counted. With several
    label columns it also prints Krippendorff's alpha of the people, and of the people and the judge.

    For example:

    `graphrag-eval-lc judge agreement labelled.tsv -c config.yaml -o judged.tsv`

    Options:
        --overwrite: Judge all rows again, for example with another model.
        labelled FILE: A CSV or TSV file with the columns question_text, reference_answer, actual_answer (or Question,
            Reference answer, Actual answer) and Label.
        --output -o FILE: A file for all rows, with the judge's findings and verdict. With it, the command can resume,
            and another metric or threshold needs no further requests.
        --label-column NAME: The column in which people said whether the answer is correct: 1, yes, true or correct; 0,
            no, false or incorrect. Default: Label. Once for each person; then the majority of an answer's labels
            counts.
        --metric: The score by which the judge decides.
        --threshold (min 0, max 1): The lowest score of an answer that the judge calls correct. At an F1 of 0.5 the
            answer has on average as many right claims as wrong and missing ones; at 1 no claim is wrong or missing.

    Output:
        --show (min 0): How many disagreements to show.
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
    report_cost(judged, judge)
    report_errors(judged)


@with_options()
def certify(
    dataset: Dataset = None,
    config: Config = None,
    output: Path = Path("judge_certificate.json"),
    per_kind: int = 20,
    max_cost: float | None = None,
    dry_run: bool = False,
    threshold: float = 1.0,
    asks: int = 3,
    repeated: int = 5,
    seed: int = 0,
    overwrite: bool = False,
    quiet: bool = False,
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

    Options:
        --output -o FILE: The file to write. The judge's answers are cached next to it.
        --per-kind N (min 1): How many answers of each kind to judge.
        --max-cost USD (min 0): The most USD that the judge may cost.
        --dry-run: Only show what would be asked, with tokens and USD.
        --threshold (min 0, max 1): The lowest answer_f1 of an answer that the judge calls right. At 1, no claim may be
            wrong or missing.
        --asks (min 1): How many times an answer is judged for the self-agreement.
        --repeated N (min 0): How many answers of each kind are judged that often.
        --seed (min 0): Which questions are chosen.
        --overwrite: Ask everything again, also what is cached.
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
