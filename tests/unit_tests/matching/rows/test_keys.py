"""Equal numbers have equal keys, compared with a slow and simple definition; and the settings for values."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.config import ValuesConfig
from graphrag_eval_lc.matching.rows.numbers_and_times import XSD, numbers_are_equal
from graphrag_eval_lc.matching.rows.results import Shape, SparqlResults, TermColumn
from graphrag_eval_lc.matching.rows.terms import Keys, Rules, Tolerances, value_rules


def results(numbers: list[tuple[str, str]]) -> SparqlResults:
    shapes: list[Shape] = [("literal", XSD + kind, None) for _, kind in numbers]
    return SparqlResults({"n": TermColumn([text for text, _ in numbers], shapes)}, len(numbers))


NUMBERS = ["5", "5.0", "5.000000008", "5.000000016", "1000", "1000.007", "1000.014", "-1000.007", "0", "1e3"]
KINDS = {"integer": 0.0, "decimal": 0.0, "double": 1e-12, "float": 1e-5}


@st.composite
def numbers(draw: st.DrawFn) -> tuple[str, str]:
    kind = draw(st.sampled_from(sorted(KINDS)))
    text = draw(st.sampled_from(NUMBERS))
    kind = "double" if "e" in text else "decimal" if kind == "integer" and "." in text else kind
    return text, kind


def near(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Return whether two numbers are within the tolerance for their types."""
    mine, theirs = Fraction(Decimal(one[0])), Fraction(Decimal(other[0]))
    kinds = {one[1], other[1]}
    share = Fraction(0) if "integer" in kinds else max(Fraction(repr(KINDS[kind])) for kind in kinds)
    return abs(mine - theirs) <= max(Fraction(1, 10**8), share * max(abs(mine), abs(theirs)))


@given(st.lists(numbers(), min_size=1, max_size=5), st.lists(numbers(), min_size=1, max_size=5))
def test_number_has_the_key_of_the_nearest_reference_number(
    mine: list[tuple[str, str]], others: list[tuple[str, str]]
) -> None:
    found = Keys(results(mine), results(others), ["n"], Rules())
    keys, other_keys = found.required["n"].keys, found.column("n").keys
    value = [Fraction(Decimal(text)) for text, _ in mine]
    assert [one == two for one in keys for two in keys] == [one == two for one in value for two in value]
    for number, key in zip(others, other_keys, strict=True):
        actual_value = Fraction(Decimal(number[0]))
        within = [
            (abs(each - actual_value), each)
            for one, each in zip(mine, value, strict=True)
            if each == actual_value or near(one, number)
        ]
        expected = keys[value.index(min(within)[1])] if within else None
        assert key == expected if within else key not in keys


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
def test_floats_compare_like_fractions(one: int, other: int, relative: float) -> None:
    mine, theirs = Fraction(one, 1000), Fraction(other, 1000)
    bound = max(Fraction(1, 10**8), Fraction(repr(relative)) * max(abs(mine), abs(theirs)))
    assert numbers_are_equal(one / 1000, other / 1000, relative) == (abs(mine - theirs) <= bound)
