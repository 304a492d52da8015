import pytest

from graphrag_eval_lc.matching.rows.plain_cells import PlainCells, are_comparable, plain_cells, plain_cells_by_value
from graphrag_eval_lc.matching.rows.values import ValueRules
from graphrag_eval_lc.matching.rows.xsd_numbers import XSD, NumberKind

URI = ("uri", None, None)
TEXT = ("literal", None, None)
INTEGER = ("literal", f"{XSD}integer", None)
DECIMAL = ("literal", f"{XSD}decimal", None)
DOUBLE = ("literal", f"{XSD}double", None)
BOOLEAN = ("literal", f"{XSD}boolean", None)


@pytest.mark.parametrize("shapes", [URI, TEXT, ("literal", None, "no"), ("literal", f"{XSD}date", None), [URI, TEXT]])
def test_iris_and_texts_are_their_texts(shapes: object) -> None:
    assert plain_cells(shapes, ["a", "b"]) == PlainCells(["a", "b"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shapes", "texts", "cells", "kinds"),
    [
        (INTEGER, ["5", "-7"], [5.0, -7.0], {NumberKind.INTEGER}),
        (DECIMAL, ["5.0", ".5", "-0"], [5.0, 0.5, 0.0], {NumberKind.DECIMAL}),
        ([INTEGER, DOUBLE], ["5", "5"], [5.0, 5.0], {NumberKind.INTEGER, NumberKind.DOUBLE}),
        (TEXT, ["5", "5.0"], [5.0, 5.0], {NumberKind.INTEGER, NumberKind.DOUBLE}),
    ],
)
def test_short_numbers_are_floats(shapes: object, texts: list[str], cells: list[float], kinds: set[NumberKind]) -> None:
    found = plain_cells_by_value(shapes, texts, ValueRules())  # type: ignore[arg-type]
    assert found == PlainCells(cells, frozenset(texts), frozenset(kinds))


def test_integers_without_a_datatype_stand_for_themselves_among_texts() -> None:
    assert plain_cells_by_value(TEXT, ["5", "a", "007"], ValueRules()) == PlainCells(
        ["5", "a", "007"], whole=frozenset({"5"})
    )
    assert plain_cells_by_value([TEXT, URI], ["a", "5"], ValueRules()) == PlainCells(["a", "5"])


@pytest.mark.parametrize(
    ("shapes", "texts"),
    [
        pytest.param(("", None, None), [""], id="unbound"),
        pytest.param(("bnode", None, None), ["b0"], id="blank node"),
        pytest.param([URI, ("bnode", None, None)], ["a", "b"], id="blank node among others"),
        pytest.param(INTEGER, ["5.0"], id="malformed integer"),
        pytest.param(INTEGER, ["1_000"], id="Python's integer"),
        pytest.param(DECIMAL, ["5-"], id="malformed decimal"),
        pytest.param(DECIMAL, ["1.00000001"], id="within the tolerance of another"),
        pytest.param(INTEGER, ["1234567890123456"], id="more digits than a float holds"),
        pytest.param(DOUBLE, ["1E3"], id="exponent"),
        pytest.param(DOUBLE, ["INF"], id="infinity"),
        pytest.param(INTEGER, [" 5"], id="white space"),
        pytest.param([INTEGER, TEXT], ["5", "5"], id="number among texts"),
        pytest.param(TEXT, ["5.0", "a"], id="fraction without a datatype among texts"),
        pytest.param(TEXT, ["-0", "a"], id="another way to write 0"),
        pytest.param(BOOLEAN, ["1"], id="boolean as a digit"),
        pytest.param([BOOLEAN, TEXT], ["true", "true"], id="boolean among texts"),
    ],
)
def test_cells_that_take_more_to_compare_are_none(shapes: object, texts: list[str]) -> None:
    assert plain_cells_by_value(shapes, texts, ValueRules()) is None  # type: ignore[arg-type]


def test_numbers_and_texts_that_are_written_alike_cannot_be_compared_as_floats() -> None:
    numbers = PlainCells([5.0], frozenset({"5.0"}))
    assert are_comparable([numbers, PlainCells(["5"])])
    assert not are_comparable([numbers, PlainCells(["a", "5.0"])])
    assert are_comparable([PlainCells(["5.0"])])


def test_integers_without_a_datatype_equal_numbers_of_their_value() -> None:
    numbers = PlainCells([5.0], frozenset({"5.0"}), frozenset({NumberKind.DECIMAL}))
    assert not are_comparable([numbers, PlainCells(["5"], whole=frozenset({"5"}))])
    assert are_comparable([numbers, PlainCells(["6"], whole=frozenset({"6"}))])
