from decimal import Decimal

import pytest

from graphrag_eval_lc.matching.sparql.numbers import (
    MAX_NUMBER_LENGTH,
    XSD,
    Number,
    boolean_from,
    number_from,
    numbers_are_equal,
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


def test_special_values_equal_only_themselves() -> None:
    special: list[Number] = ["INF", "-INF", "NaN", 0]
    for one in special:
        for other in special:
            assert numbers_are_equal(one, other) is (one == other)


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("1", True), ("false", False), (" 0 ", False), ("TRUE", None), ("yes", None), ("", None)],
)
def test_booleans_have_four_lexical_forms(text: str, value: bool | None) -> None:
    assert boolean_from(text) is value
