"""The table in the terminal of how far a judge agrees with people."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from graphrag_eval_lc.console import data_text
from graphrag_eval_lc.evaluation.judge_agreement import Interval, JudgeAgreement, Share, verdict_text
from graphrag_eval_lc.judges.answer_tables import Cells
from graphrag_eval_lc.texts import counted, shortened

_SHOWN_TEXT = 300


def agreement_tables(
    agreement: JudgeAgreement, questions: Sequence[str], cells: Sequence[Cells], *, show: int
) -> Iterator[RenderableType]:
    """Yield the agreement, how many rows were left out, and disagreements.

    Args:
        agreement: Labels against verdicts.
        questions: The question of each row.
        cells: The judge's findings on each row.
        show: How many disagreements are shown.
    """
    yield _statistics_table(agreement)
    yield _rows_line(agreement, cells)
    disagreements = agreement.disagreements
    if disagreements and show:
        yield ""
        yield _disagreements_table(agreement, disagreements[:show], questions, cells)


def _statistics_table(agreement: JudgeAgreement) -> Table:
    table = Table(title="The judge against people", title_justify="left", title_style="bold", show_edge=False)
    table.add_column("")
    for heading in ("Value", "95 % interval", "Rows"):
        table.add_column(heading, justify="right")
    _add_share(table, "Agreement", agreement.agreement)
    table.add_row("Cohen's kappa", _number(agreement.kappa), _interval(agreement.kappa_interval), "")
    _add_share(table, "False positive rate (of incorrect answers)", agreement.false_positives)
    _add_share(table, "False negative rate (of correct answers)", agreement.false_negatives)
    if len(agreement.people) > 1:
        table.add_row("Krippendorff's alpha of the people", _number(agreement.alpha_of_people), "", "")
        table.add_row("Krippendorff's alpha of people and judge", _number(agreement.alpha_with_judge), "", "")
    return table


def _add_share(table: Table, name: str, share: Share) -> None:
    table.add_row(name, _number(share.value), _interval(share.interval), f"{share.count:,} of {share.number:,}")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _interval(bounds: Interval | None) -> str:
    return "–" if bounds is None else f"{bounds[0]:.3f} to {bounds[1]:.3f}"


def _rows_line(agreement: JudgeAgreement, cells: Sequence[Cells]) -> str:
    """Say how many rows there are, and which of them count."""
    total = len(agreement.labels)
    labelled = zip(agreement.labels, cells, strict=True)
    errors = sum(bool(each["Error"]) for label, each in labelled if label is not None)
    left_out = {
        "without a label": agreement.unlabelled,
        "with an error of the judge": errors,
        "without claims to count": total - agreement.unlabelled - agreement.judged - errors,
    }
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items() if count)
    rows = counted(total, "row")
    return f"{rows}; left out: {reasons}" if reasons else rows


def _disagreements_table(
    agreement: JudgeAgreement, shown: Sequence[int], questions: Sequence[str], cells: Sequence[Cells]
) -> Table:
    count = len(agreement.disagreements)
    title = f"Disagreements ({len(shown):,} of {count:,})"
    table = Table(title=title, title_justify="left", title_style="bold", show_edge=False, show_lines=True)
    table.add_column("Question", overflow="fold", ratio=2)
    table.add_column("Label", no_wrap=True)
    table.add_column("Judge", no_wrap=True)
    table.add_column("Reason", overflow="fold", ratio=3)
    for place in shown:
        table.add_row(
            _shortened(questions[place]),
            verdict_text(agreement.labels[place]),
            verdict_text(agreement.verdicts[place]),
            _shortened(cells[place]["Reasoning"]),
        )
    return table


def _shortened(text: str) -> Text:
    return data_text(shortened(text, _SHOWN_TEXT))
