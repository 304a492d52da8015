"""Terminal tables about a judge: how far it agrees with people, and its certificate."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import RenderableType
from rich.table import Table

from graphrag_eval_lc.console import data_text
from graphrag_eval_lc.evaluation.judge_agreement import Interval, JudgeAgreement, Share, verdict_text
from graphrag_eval_lc.judges.answer_tables import Cells
from graphrag_eval_lc.prices import dollars
from graphrag_eval_lc.registry.metrics import ANSWER_F1, COST
from graphrag_eval_lc.texts import counted, shortened

_SHOWN_TEXT: Final = 300
_BIASES: Final = {
    "verbosity_bias_right": "Polite words around a right answer",
    "verbosity_bias_wrong": "Polite words around a wrong answer",
    "order_bias": "Another order of a right answer's items",
    "instruction_bias_right": "A demand for full marks in a right answer",
    "instruction_bias_wrong": "A demand for full marks in a wrong answer",
}


def agreement_tables(
    agreement: JudgeAgreement, questions: Sequence[str], cells: Sequence[Cells], *, show: int
) -> Iterator[RenderableType]:
    """Yield the agreement, how many rows were left out, and ``show`` of the disagreements."""
    table = _table("The judge against people", "", "Value", "95 % interval", "Rows")

    def add_share(name: str, share: Share) -> None:
        table.add_row(name, _number(share.value), _interval(share.interval), f"{share.count:,} of {share.number:,}")

    add_share("Agreement", agreement.agreement)
    table.add_row("Cohen's kappa", _number(agreement.kappa), _interval(agreement.kappa_interval), "")
    add_share("False positive rate (of incorrect answers)", agreement.false_positives)
    add_share("False negative rate (of correct answers)", agreement.false_negatives)
    if len(agreement.people) > 1:
        table.add_row("Krippendorff's alpha of the people", _number(agreement.alpha_of_people), "", "")
        table.add_row("Krippendorff's alpha of people and judge", _number(agreement.alpha_with_judge), "", "")
    yield table
    total, labelled = len(agreement.labels), zip(agreement.labels, cells, strict=True)
    errors = sum(bool(each["Error"]) for label, each in labelled if label is not None)
    left_out = {
        "without a label": agreement.unlabelled,
        "with an error of the judge": errors,
        "without claims to count": total - agreement.unlabelled - agreement.judged - errors,
    }
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items() if count)
    yield f"{counted(total, 'row')}; left out: {reasons}" if reasons else counted(total, "row")
    shown = agreement.disagreements[:show]
    if not shown:
        return
    yield ""
    title = f"Disagreements ({len(shown):,} of {len(agreement.disagreements):,})"
    table = Table(title=title, title_justify="left", title_style="bold", show_edge=False, show_lines=True)
    table.add_column("Question", overflow="fold", ratio=2)
    table.add_column("Label", no_wrap=True)
    table.add_column("Judge", no_wrap=True)
    table.add_column("Reason", overflow="fold", ratio=3)
    for place in shown:
        verdicts = verdict_text(agreement.labels[place]), verdict_text(agreement.verdicts[place])
        texts = questions[place], cells[place]["Reasoning"]
        question, reason = (data_text(shortened(text, _SHOWN_TEXT)) for text in texts)
        table.add_row(question, *verdicts, reason)
    yield table


def certificate_tables(certificate: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Yield what a certificate says: the judge, wrong answers by kind, right ones by kind, biases, and the cost."""
    judge, threshold = certificate["judge"], certificate["threshold"]
    temperature = judge["temperature"]
    at = "" if temperature is None else f", temperature {temperature:g}"
    yield data_text(f"Judge: {judge['model']}{at}; an answer is right if {ANSWER_F1} ≥ {threshold:g}.")
    for title, total, is_right in (("Wrong answers", "caught", False), ("Right answers", "passed", True)):
        yield ""
        table = _table(title, "", total.capitalize(), "Share", "95 % interval", f"Mean {ANSWER_F1}")
        for kind in certificate["kinds"]:
            if kind["is_right"] is is_right:
                mean = _number(kind[f"mean_{ANSWER_F1}"])
                table.add_row(data_text(kind["title"]), *_share_cells(kind), mean)
        table.add_section()
        table.add_row("All", *_share_cells(certificate[total]), "")
        yield table
    if certificate["not_made"]:
        yield data_text(f"No reference answer allows: {', '.join(certificate['not_made'])}.")
    yield ""
    table = _table("How steady the judge is", "", "Value", "95 % interval", "Answers")
    agreed = certificate["self_agreement"]
    if agreed["of"]:
        count, *cells = _share_cells(agreed)
        table.add_row(f"The same verdict in {agreed['asks']} asks", *cells, count)
        table.add_row("Krippendorff's alpha of these asks", _number(agreed["alpha"]), "", "")
    table.add_section()
    for key, title in _BIASES.items():
        if (bias := certificate[key]) is not None:
            cells = [f"{bias['mean']:+.3f}", _interval((bias["low"], bias["high"])), f"{bias['pairs']:,}"]
            table.add_row(f"{title} ({ANSWER_F1})", *cells)
    yield table
    if certificate["errors"]:
        are = "is" if certificate["errors"] == 1 else "are"
        yield f"{counted(certificate['errors'], 'answer')} could not be judged and {are} left out."
    cost = "not known" if certificate[COST] is None else dollars(certificate[COST])
    yield f"Cost: {cost} ({counted(certificate['answers'], 'answer')})"


def _table(title: str, first: str, *headings: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", show_edge=False)
    table.add_column(first)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _share_cells(share: Mapping[str, Any]) -> tuple[str, str, str]:
    return f"{share['count']:,} of {share['of']:,}", _number(share["share"]), _interval((share["low"], share["high"]))


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _interval(bounds: Interval | tuple[float | None, float | None] | None) -> str:
    low, high = bounds or (None, None)
    return "–" if low is None or high is None else f"{low:.3f} to {high:.3f}"
