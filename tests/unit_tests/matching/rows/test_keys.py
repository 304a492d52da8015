"""Equal cells have equal keys: by a table, and as a slow and plain definition has it."""

import json
import re
from decimal import Decimal
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.config import ValuesConfig
from graphrag_eval_lc.matching.rows.numbers_and_times import WKT_LITERAL, XSD, numbers_are_equal
from graphrag_eval_lc.matching.rows.results import UNBOUND, SparqlResults, Term, TermColumn, Triple
from graphrag_eval_lc.matching.rows.terms import Keys, Rules, Tolerances, value_rules

LINES = (Path(__file__).parent / "data" / "keys.jsonl").read_text(encoding="utf-8").splitlines()
TABLE = [json.loads(line) for line in LINES]
_TERM = re.compile(
    r'\s*(?:<<\((?P<triple>)|<(?P<uri>[^<>]*)>|_:(?P<bnode>\w+)|(?P<text>"(?:[^"\\]|\\.)*")'
    r"(?:\^\^(?:xsd:(?P<xsd>\w+)|<(?P<datatype>[^>]*)>|(?P<wkt>wkt)))?(?:@(?P<language>[\w-]*))?)"
)


def term_at(text: str, at: int) -> tuple[Term | Triple, int]:
    found = _TERM.match(text, at)
    assert found, text[at:]
    if found["triple"] is not None:
        parts, end = [], found.end()
        for _ in range(3):
            part, end = term_at(text, end)
            parts.append(part)
        return Triple(*parts), text.index(")>>", end) + 3
    for kind in ("uri", "bnode"):
        if found[kind] is not None:
            return Term(found[kind], (kind, None, None)), found.end()
    datatype = XSD + found["xsd"] if found["xsd"] else WKT_LITERAL if found["wkt"] else found["datatype"]
    return Term(json.loads(found["text"]), ("literal", datatype, found["language"] or None)), found.end()


def term(text: str) -> Term | Triple:
    return term_at(text, 0)[0] if text else UNBOUND


def results(*columns: list[str]) -> SparqlResults:
    """Return results of cells that are written as in Turtle."""
    found = {}
    for at, column in enumerate(columns):
        terms = [term(cell) for cell in column]
        structures = {row: each for row, each in enumerate(terms) if isinstance(each, Triple)}
        plain = [Term(each.readable, ("triple", None, None)) if isinstance(each, Triple) else each for each in terms]
        shapes: Any = [each.shape for each in plain]
        is_one = len(set(shapes)) == 1 and not structures
        found[f"c{at}"] = TermColumn([each.text for each in plain], shapes[0] if is_one else shapes, structures)
    return SparqlResults(found, len(columns[0]))


def keys_of(mine: list[str], others: list[str], rules: Rules = Rules()) -> tuple[list[int], list[int]]:  # noqa: B008
    keys = Keys(results(mine), results(others), ["c0"], rules)
    return keys.required["c0"].keys, keys.column("c0").keys


def rules_of(given_rules: dict[str, Any], without: str | None = None) -> Rules:
    strict = given_rules.get("strict", False)
    tolerances = Tolerances.of(given_rules.get("tolerance"), strict=strict)
    return Rules("set", strict, tolerances, value_rules({without: False} if without else None))


@pytest.mark.parametrize("line", TABLE, ids=[line["why"] for line in TABLE])
def test_cells_of_the_table(line: dict[str, Any]) -> None:
    rules = rules_of(line.get("rules", {}))
    pairs = list(permutations(line["equal"], 2))
    if "chain" in line or "first" in line:  # all equal the first one
        pairs = [pair for pair in pairs if line["equal"][0] in pair]
    for one, other in pairs:
        [mine], [theirs] = keys_of([one], [other], rules)
        assert mine == theirs, (one, other)
    for other in line["unlike"]:
        for one, two in ((line["equal"][0], other), (other, line["equal"][0])):
            [mine], [theirs] = keys_of([one], [two], rules)
            assert mine != theirs, (one, two)
    if "without" in line:
        [mine], [theirs] = keys_of(line["equal"][:1], line["equal"][1:2], rules_of({}, line["without"]))
        assert mine != theirs


CELLS = [cell for line in TABLE if "rules" not in line for cell in (*line["equal"], *line["unlike"])]


@given(
    st.lists(st.sampled_from(CELLS), min_size=1, max_size=6), st.lists(st.sampled_from(CELLS), min_size=1, max_size=6)
)
def test_keys_do_not_depend_on_how_columns_are_stored(mine: list[str], others: list[str]) -> None:
    once, other_once = keys_of(mine, others)
    twice = Keys(results(mine, mine), results(others, [*others[1:], others[0]], mine), ["c0", "c1"], Rules())
    same = twice.required["c1"].keys
    assert [one == two for one in once for two in once] == [one == two for one in same for two in same]
    again = twice.column("c0").keys
    assert [one == two for one in once for two in other_once] == [one == two for one in same for two in again]
    assert twice.column("c2").keys == same
    assert sorted(twice.column("c1").keys) == sorted(again)


NUMBERS = [
    "5",
    "5.0",
    "5.000000008",
    "5.000000016",
    "1000",
    "1000.007",
    "1000.014",
    "1000.021",
    "-1000.007",
    "0",
    "1e3",
]
KINDS = {"integer": 0.0, "decimal": 0.0, "double": 1e-12, "float": 1e-5}


@st.composite
def numbers(draw: st.DrawFn) -> tuple[str, str]:
    kind = draw(st.sampled_from(sorted(KINDS)))
    text = draw(st.sampled_from(NUMBERS))
    kind = "double" if "e" in text else "decimal" if kind == "integer" and "." in text else kind
    return text, kind


def near(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Return whether two numbers are within the tolerance of their kinds."""
    mine, theirs = Fraction(Decimal(one[0])), Fraction(Decimal(other[0]))
    kinds = {one[1], other[1]}
    share = Fraction(0) if "integer" in kinds else max(Fraction(repr(KINDS[kind])) for kind in kinds)
    return abs(mine - theirs) <= max(Fraction(1, 10**8), share * max(abs(mine), abs(theirs)))


@given(st.lists(numbers(), min_size=1, max_size=5), st.lists(numbers(), min_size=1, max_size=5))
def test_a_number_has_the_key_of_the_nearest_one_of_the_reference(
    mine: list[tuple[str, str]], others: list[tuple[str, str]]
) -> None:
    keys, other_keys = keys_of(
        *([f'"{text}"^^xsd:{kind}' for text, kind in side] for side in (mine, others)),
    )
    value = [Fraction(Decimal(text)) for text, _ in mine]
    assert [one == two for one in keys for two in keys] == [one == two for one in value for two in value]
    for number, key in zip(others, other_keys, strict=True):
        own = Fraction(Decimal(number[0]))
        within = [
            (abs(each - own), each) for one, each in zip(mine, value, strict=True) if each == own or near(one, number)
        ]
        expected = keys[value.index(min(within)[1])] if within else None
        assert key == expected if within else key not in keys


def test_unbound_cells_and_blank_nodes() -> None:
    keys = Keys(
        results(["_:a", "", "_:b", "<<( _:b <p> _:a )>>"], ["_:b", "_:b", "", ""]),
        results(["_:x"]),
        ["c0", "c1"],
        Rules(),
    )
    first, second = keys.required["c0"], keys.required["c1"]
    assert first.keys[:3] == [1, 0, 1]
    assert (first.blanks, second.blanks) == ({0: (0,), 2: (1,), 3: (1, 0)}, {0: (1,), 1: (1,)})
    assert keys.column("c0").blanks == {0: (0,)}


def test_columns_that_are_not_needed_are_not_read() -> None:
    class Unread(list[str]):
        def __iter__(self) -> Any:
            raise AssertionError

    other = results(['"a"'], ['"b"'])
    unread = SparqlResults({**other.columns, "c2": TermColumn(Unread(["c"]), ("literal", None, None))}, 1)
    keys = Keys(results(['"a"']), unread, ["c0"], Rules())
    assert keys.required["c0"].keys == keys.column("c0").keys


def test_rules_are_switched_by_name() -> None:
    config = ValuesConfig(wkt=False)
    assert value_rules(config) is config
    assert dict(value_rules({"wkt": False})) == dict(config)
    for wrong in ({"wk": True}, {"wkt": 1}):
        with pytest.raises(ValueError, match="wk"):
            value_rules(wrong)  # type: ignore[arg-type]


def test_tolerances() -> None:
    assert Tolerances.of(None) == Tolerances.of({}) == Tolerances(double=1e-12, float=1e-5)
    assert Tolerances.of({"float": 0.5}, strict=True) == Tolerances()
    assert Tolerances.of(0.1, strict=True) == Tolerances(decimal=0.1, double=0.1, float=0.1)
    for wrong in (1, -0.1, {"decimal": 0.1}, {"float": "x"}):
        with pytest.raises(ValueError, match=r"there is only|a share"):
            Tolerances.of(wrong)  # type: ignore[arg-type]


@given(st.integers(-2_000, 2_000), st.integers(-2_000, 2_000), st.sampled_from([0.0, 1e-5, 0.01, 0.9]))
def test_floats_decide_as_fractions_do(one: int, other: int, relative: float) -> None:
    mine, theirs = Fraction(one, 1000), Fraction(other, 1000)
    bound = max(Fraction(1, 10**8), Fraction(repr(relative)) * max(abs(mine), abs(theirs)))
    assert numbers_are_equal(one / 1000, other / 1000, relative) == (abs(mine - theirs) <= bound)
