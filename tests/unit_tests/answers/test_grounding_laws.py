"""On random tables and answers, the verdicts agree with an oracle that looks at every cell."""

import json
from datetime import date, timedelta
from decimal import Decimal
from statistics import mean, median

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.laws import tried

from graphrag_eval_lc.answers.evidence import Evidence
from graphrag_eval_lc.answers.grounding import grounding_record
from graphrag_eval_lc.matching import StepView

pytestmark = pytest.mark.full

ZONES = [f"{place}{number}" for place in ("OSLO", "ASKER", "HALDEN", "TRETTEN") for number in range(3, 9)]
DAY = date(2024, 1, 1)

Row = tuple[str, Decimal, date]
rows = st.lists(
    st.tuples(
        st.sampled_from(ZONES),
        st.integers(100_000, 9_999_999).map(lambda number: Decimal(number) / 1000),
        st.integers(0, 700).map(lambda days: DAY + timedelta(days)),
    ),
    min_size=1,
    max_size=8,
    unique_by=lambda row: row[0],
)


@st.composite
def answers(draw: st.DrawFn) -> tuple[list[Row], list[Row], int, bool]:
    """Draw a table, the rows that the answer mentions, the number of decimals, and whether it is a Markdown table."""
    table = draw(rows)
    mentioned = [draw(st.sampled_from(table)) for _ in range(draw(st.integers(1, 4)))]
    for at in range(len(mentioned)):
        zone, number, day = mentioned[at]
        other = draw(st.sampled_from(["as it is"] * 3 + ["number", "row", "day", "zone"]))
        if other == "number":
            number += draw(st.integers(1, 9).map(lambda digit: Decimal(digit) / 100)) * 10 ** draw(st.integers(0, 4))
        elif other == "row":
            number = draw(st.sampled_from(table))[1]
        elif other == "day":
            day += timedelta(draw(st.integers(1, 40)))
        elif other == "zone":
            zone = draw(st.sampled_from(ZONES))
        mentioned[at] = zone, number, day
    return table, mentioned, draw(st.integers(1, 3)), draw(st.booleans())


def written(number: Decimal, decimals: int) -> str:
    return f"{number:,.{decimals}f}"


def verdict_of_number(text: str, table: list[Row]) -> set[str]:
    """Return the verdicts that a number may have, in order of precedence."""
    number, numbers = Decimal(text.replace(",", "")), [row[1] for row in table]
    half = Decimal(5) / 10 ** (len(text.partition(".")[2]) + 1)
    if number in numbers:
        return {"row"}
    if any(abs(each - number) <= half for each in numbers):
        return {"rounded"}
    if number in (len(table), len({row[2] for row in table}), len(set(numbers))):
        return {"count"}
    totals = [sum(numbers), mean(numbers), median(numbers), max(numbers) - min(numbers)] if len(numbers) > 1 else []
    distances = [abs(each - number) - half for each in totals]
    if any(abs(each) < Decimal("1e-6") for each in distances):  # not distinguishable in floats
        return {"aggregate", "none"}
    return {"aggregate" if any(each < 0 for each in distances) else "none"}


@tried(10)
@given(answers())
def test_verdicts_and_records_agree_with_the_oracle(drawn: tuple[list[Row], list[Row], int, bool]) -> None:
    table, mentioned, decimals, is_table = drawn
    cells = [{"zone": zone, "price": str(number), "day": f"{day}T00:00:00Z"} for zone, number, day in table]
    texts = [(zone, written(number, decimals), f"{day:%d %B %Y}") for zone, number, day in mentioned]
    lines = [f"| {' | '.join(each)} |" if is_table else f"- `{each[0]}`: {each[1]} on {each[2]}" for each in texts]
    head = ["| zone | price | day |", "|---|---|---|"] if is_table else []
    step = StepView({"id": "c", "name": "q", "status": "success", "output": json.dumps(cells)})
    record = grounding_record("\n".join([*head, *lines]), "", Evidence([step]))
    expected_rows: list[bool] = []
    values = iter(record["answer_values"])
    zones, days = {row[0] for row in table}, {row[2] for row in table}
    found = counted = 0
    for (zone, number, _), (_, _, day) in zip(texts, mentioned, strict=True):
        of_line = []
        if zone in zones or not is_table:  # names in prose that match no row are ignored
            of_line.append((zone, {"row"} if zone in zones else {"none"}))
        of_line.append((number, verdict_of_number(number, table)))
        of_line.append((f"{day:%d %B %Y}", {"row"} if day in days else {"none"}))
        for text, verdicts in of_line:
            value = next(values)
            assert value["text"] == text
            assert value["verdict"] in verdicts, (text, value, table)
            counted += 1
            found += value["verdict"] != "none"
        half = Decimal(5) / 10 ** (decimals + 1)
        shown = Decimal(number.replace(",", ""))
        columns = [
            {at for at, row in enumerate(table) if row[0] == zone},
            {at for at, row in enumerate(table) if abs(row[1] - shown) <= half},
            {at for at, row in enumerate(table) if row[2] == day},
        ]
        located = [column for column in columns if column]
        if len(located) > 1:
            pairs = [(one, two) for at, one in enumerate(located) for two in located[at + 1 :]]
            expected_rows.append(all(one & two for one, two in pairs))
    assert next(values, None) is None
    assert record["answer_grounded"] == pytest.approx(found / counted)
    is_in_row = record.get("answer_lines_in_one_row")
    assert is_in_row == (pytest.approx(sum(expected_rows) / len(expected_rows)) if expected_rows else None)


PIECES = st.sampled_from(
    [
        "1e999",
        "9999-12-31",
        "0001-01-01T00:00+14:00",
        "`",
        "**",
        "|",
        "```",
        "urn:",
        "1,234.5",
        "-",
        "no ",
        "NO1",
        "\n",
        '"',
    ]
)


@tried(4)
@given(
    st.lists(PIECES | st.text(max_size=6), max_size=20).map("".join), st.lists(PIECES | st.text(max_size=8), max_size=4)
)
def test_no_answer_or_output_crashes_the_evaluation(answer: str, cells: list[str]) -> None:
    output = json.dumps([{"a": cell, "b": cell * 2} for cell in cells])
    steps = [StepView({"id": "c", "name": "q", "status": "success", "output": each}) for each in (output, answer)]
    record = grounding_record(answer, answer[:5], Evidence(steps))
    assert all(value["text"] in answer for value in record["answer_values"])
    assert 0 <= record.get("answer_grounded", 0) <= 1
