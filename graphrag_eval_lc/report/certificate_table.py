"""The tables in the terminal of a judge's certificate."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from graphrag_eval_lc.console import data_text
from graphrag_eval_lc.prices import dollars
from graphrag_eval_lc.registry.metrics import ANSWER_F1, COST
from graphrag_eval_lc.texts import counted

_BIASES = {
    "verbosity_bias_right": "Polite words around a right answer",
    "verbosity_bias_wrong": "Polite words around a wrong answer",
    "order_bias": "Another order of a right answer's items",
    "instruction_bias_right": "A demand for full marks in a right answer",
    "instruction_bias_wrong": "A demand for full marks in a wrong answer",
}


def certificate_tables(certificate: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Yield what a certificate says: the judge, wrong answers by kind, right ones by kind, biases, and the cost."""
    judge, threshold = certificate["judge"], certificate["threshold"]
    temperature = judge["temperature"]
    at = "" if temperature is None else f", temperature {temperature:g}"
    yield data_text(f"Judge: {judge['model']}{at}; an answer is right if {ANSWER_F1} ≥ {threshold:g}.")
    for heading, total, is_right in (("Wrong answers", "caught", False), ("Right answers", "passed", True)):
        yield ""
        yield _kinds_table(certificate, heading, total, is_right)
    if certificate["not_made"]:
        names = ", ".join(certificate["not_made"])
        yield data_text(f"No reference answer allows: {names}.")
    yield ""
    yield _more_table(certificate)
    errors = counted(certificate["errors"], "answer")
    if certificate["errors"]:
        yield f"{errors} could not be judged and {'is' if certificate['errors'] == 1 else 'are'} left out."
    cost = "not known" if certificate[COST] is None else dollars(certificate[COST])
    yield f"Cost: {cost} ({counted(certificate['answers'], 'answer')})"


def _kinds_table(certificate: Mapping[str, Any], heading: str, total: str, is_right: bool) -> Table:
    table = Table(title=heading, title_justify="left", title_style="bold", show_edge=False)
    table.add_column("")
    table.add_column(total.capitalize(), justify="right", no_wrap=True)
    table.add_column("Share", justify="right", no_wrap=True)
    table.add_column("95 % interval", justify="right", no_wrap=True)
    table.add_column(f"Mean {ANSWER_F1}", justify="right", no_wrap=True)
    for kind in certificate["kinds"]:
        if kind["is_right"] is is_right:
            table.add_row(data_text(kind["title"]), *_share_cells(kind), _number(kind[f"mean_{ANSWER_F1}"]))
    table.add_section()
    table.add_row("All", *_share_cells(certificate[total]), "")
    return table


def _more_table(certificate: Mapping[str, Any]) -> Table:
    table = Table(title="How steady the judge is", title_justify="left", title_style="bold", show_edge=False)
    for heading in ("", "Value", "95 % interval", "Answers"):
        table.add_column(heading, justify="right" if heading else "left")
    agreed = certificate["self_agreement"]
    count = f"{agreed['count']:,} of {agreed['of']:,}"
    if agreed["of"]:
        table.add_row(f"The same verdict in {agreed['asks']} asks", _number(agreed["share"]), _interval(agreed), count)
        table.add_row("Krippendorff's alpha of these asks", _number(agreed["alpha"]), "", "")
    table.add_section()
    for key, title in _BIASES.items():
        if (bias := certificate[key]) is not None:
            table.add_row(f"{title} ({ANSWER_F1})", f"{bias['mean']:+.3f}", _interval(bias), f"{bias['pairs']:,}")
    return table


def _share_cells(share: Mapping[str, Any]) -> tuple[str, str, str]:
    return f"{share['count']:,} of {share['of']:,}", _number(share["share"]), _interval(share)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _interval(record: Mapping[str, Any]) -> str:
    low, high = record["low"], record["high"]
    return "–" if low is None or high is None else f"{low:.3f} to {high:.3f}"
