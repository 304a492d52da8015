from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.matching.rows.xsd_numbers import (
    MAX_NUMBER_LENGTH,
    XSD,
    Number,
    NumberKind,
    Tolerances,
    all_are_equal,
    boolean_from,
    number_from,
    number_kind,
    numbers_are_equal,
    relative_difference,
    tolerated_range,
)


@pytest.mark.parametrize(
    ("text", "datatype", "value"),
    [
        ("5", "integer", 5),
        ("+05", "byte", 5),
        ("-0", "negativeInteger", 0),
        (" 7\n", "unsignedLong", 7),
        ("12345678901234567890", "long", 12345678901234567890),
        ("5.", "decimal", 5),
        (".50", "decimal", Decimal("0.5")),
        ("1E2", "double", 100),
        ("-2.5e-3", "float", Decimal("-0.0025")),
        ("INF", "double", "INF"),
        ("+INF", "float", "INF"),
        ("-INF", "double", "-INF"),
        ("NaN", "float", "NaN"),
        ("1E400", "double", "INF"),
        ("-1E999999999999", "double", "-INF"),
        ("1E-999999999999", "double", 0),
    ],
)
def test_lexical_forms_of_xsd_are_numbers(text: str, datatype: str, value: Number) -> None:
    read = number_from(text, XSD + datatype)
    assert read is not None
    assert read[0] == value


@pytest.mark.parametrize(
    ("text", "datatype"),
    [
        ("1_000", "integer"),
        ("5.0", "integer"),
        ("1E2", "decimal"),
        ("INF", "decimal"),
        ("NaN", "integer"),
        ("infinity", "double"),
        ("nan", "double"),
        ("-NaN", "double"),
        ("٣", "integer"),
        ("1,5", "decimal"),
        ("1 2", "integer"),
        ("\u00a05", "integer"),
        (".", "decimal"),
        ("e5", "double"),
        ("", "integer"),
        ("abc", "double"),
        ("1" * (MAX_NUMBER_LENGTH + 1), "integer"),
    ],
)
def test_other_texts_are_no_numbers(text: str, datatype: str) -> None:
    assert number_from(text, XSD + datatype) is None


@pytest.mark.parametrize(
    ("text", "is_fine"),
    [("1.1234567", False), ("1.12345678", True), ("1.5E-7", True), ("1.123456789E2", False), ("3E8", False)],
)
def test_digits_from_the_eighth_decimal_place_on_are_told(text: str, is_fine: bool) -> None:
    read = number_from(text, XSD + "double")
    assert read is not None
    assert read[1] is is_fine


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("5", "5.00000001", True),
        ("5", "5.0000000100000000001", False),
        ("12345678901234567890.1", "12345678901234567891.1", False),
        ("12345678901234567890.1", "12345678901234567890.10000001", True),
        ("-0.000000005", "0.000000005", True),
        ("1E300", "1.0000001E300", False),
        ("1E300", "1E-300", False),
    ],
)
def test_numbers_are_equal_within_the_tolerance_exactly(one: str, other: str, equal: bool) -> None:
    assert numbers_are_equal(Decimal(one), Decimal(other)) is equal


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-5", -5),
        ("-0", 0),
        ("5.0", Decimal(5)),
        ("1.5E+3", Decimal(1_500)),
        ("1e-7", Decimal("1e-7")),
        ("0.0", 0),
        ("0E99999999999999999999", 0),
    ],
)
def test_numbers_without_a_datatype_are_written_as_in_json(text: str, value: Number) -> None:
    read = number_from(text, None)
    assert read is not None
    assert read[0] == value
    assert number_kind(text, None) == (NumberKind.INTEGER if text in {"5", "-5", "-0"} else NumberKind.DOUBLE)


@pytest.mark.parametrize(
    "text",
    ["007", "-01", "+5", "5.", ".5", " 5", "5\n", "1_000", "0x10", "٣", "INF", "NaN", "1E400", "1E-400", "", "-", "e5"],
)
def test_other_texts_without_a_datatype_are_no_numbers(text: str) -> None:
    assert number_from(text, None) is None


@pytest.mark.parametrize(
    ("one", "other", "tolerance"),
    [
        (NumberKind.FLOAT, NumberKind.FLOAT, "1E-5"),
        (NumberKind.FLOAT, NumberKind.DOUBLE, "1E-5"),
        (NumberKind.FLOAT, NumberKind.DECIMAL, "1E-5"),
        (NumberKind.DOUBLE, NumberKind.DOUBLE, "1E-12"),
        (NumberKind.DOUBLE, NumberKind.DECIMAL, "1E-12"),
        (NumberKind.DECIMAL, NumberKind.DECIMAL, "0"),
        (NumberKind.INTEGER, NumberKind.FLOAT, "0"),
        (NumberKind.INTEGER, NumberKind.INTEGER, "0"),
    ],
)
def test_of_two_kinds_the_looser_tolerance_counts(one: NumberKind, other: NumberKind, tolerance: str) -> None:
    assert Tolerances.of(None).between(one, other) == Tolerances.of(None).between(other, one) == Decimal(tolerance)


NUMBERS = st.integers(-2_000, 2_000).map(lambda number: Decimal(number) / 1_000)


@given(NUMBERS, NUMBERS, st.sampled_from([Decimal(0), Decimal("1E-5"), Decimal("0.01"), Decimal("0.9")]))
def test_equal_numbers_lie_in_the_tolerated_range(one: Decimal, other: Decimal, relative: Decimal) -> None:
    low, high = tolerated_range(one, relative)
    assert low <= other <= high or not numbers_are_equal(one, other, relative)
    assert numbers_are_equal(one, other, relative) == numbers_are_equal(other, one, relative)


@given(st.lists(NUMBERS, min_size=2, max_size=4), st.sampled_from([Decimal(0), Decimal("0.01"), Decimal("0.5")]))
def test_numbers_of_which_all_are_equal(numbers: list[Decimal], relative: Decimal) -> None:
    if all_are_equal(min(numbers), max(numbers), relative):
        assert all(numbers_are_equal(one, other, relative) for one in numbers for other in numbers)


def test_a_difference_is_a_share_of_the_larger_number() -> None:
    assert relative_difference(Decimal("-0.5"), 1) == 1.5
    assert relative_difference(0, 0) == 0.0
    assert relative_difference(10**4_000, 10**4_000 + 1) == 0.0
    assert relative_difference("INF", 1) is None


def test_special_values_equal_only_themselves() -> None:
    special: list[Number] = ["INF", "-INF", "NaN", 0]
    for one in special:
        for other in special:
            assert numbers_are_equal(one, other) is (one == other)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("1", True),
        ("True", True),
        ("false", False),
        (" 0 ", False),
        ("False", False),
        ("TRUE", None),
        ("yes", None),
        ("", None),
    ],
)
def test_booleans_have_four_lexical_forms_and_two_of_python(text: str, value: bool | None) -> None:
    assert boolean_from(text) is value


@pytest.mark.parametrize("given", [None, {}, {"float": 1e-5}, {"float": 1e-5, "double": 1e-12}])
def test_tolerances_that_are_the_defaults_are_these_however_they_are_given(given: dict[str, float] | None) -> None:
    assert Tolerances.of(given) == Tolerances(double=Decimal("1e-12"), float=Decimal("1e-5"))
    assert Tolerances.of(given, strict=True) == Tolerances()
