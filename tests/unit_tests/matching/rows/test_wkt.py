from decimal import Decimal

import pytest

from graphrag_eval_lc.matching.rows.wkt import Geometry, geometries_are_equal, geometry_from, geometry_groups

CRS84 = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"


def read(text: str) -> Geometry:
    geometry = geometry_from(text)
    assert geometry is not None
    return geometry


@pytest.mark.parametrize(
    "text",
    [
        "POINT(1 -2.5)",
        " point\n(\t1   -2.5 ) ",
        "Point(+1.0 -25e-1)",
        f"<{CRS84}> POINT(1 -2.5)",
        f"<{CRS84}>POINT(1 -2.500000001)",
    ],
)
def test_spelling_does_not_matter(text: str) -> None:
    assert geometries_are_equal(read("POINT (1 -2.5)"), read(text))
    assert geometries_are_equal(read(text), read("POINT (1 -2.5)"))


@pytest.mark.parametrize(
    "text",
    [
        "POINT(-2.5 1)",
        "POINT((1 -2.5))",
        "POINT(1, -2.5)",
        "POINT(1 -2.5 0)",
        "POINT M(1 -2.5)",
        "POINT(1 -2.50000002)",
        "<http://www.opengis.net/def/crs/EPSG/0/4326> POINT(1 -2.5)",
        "POINT EMPTY",
    ],
)
def test_all_else_does(text: str) -> None:
    assert not geometries_are_equal(read("POINT (1 -2.5)"), read(text))


def test_the_iri_of_a_reference_system_keeps_its_case() -> None:
    mine, other = read("<http://example.org/CRS> POINT(1 2)"), read("<http://example.org/crs> POINT(1 2)")
    assert not geometries_are_equal(mine, other)


@pytest.mark.parametrize(
    "text",
    [
        *("", "(1 2)", "1 2", "POINT(1;2)", "POINT(1-2)", "POINT(1.2.3)", "POINT(# 1)", "POINT1(1 2)"),
        *("P\u00d8INT(1 2)", "<a b> POINT(1 2)", "POINT(" + "1" * 5_000 + " 2)"),
    ],
)
def test_what_has_more_in_it_than_words_brackets_and_numbers_is_a_text(text: str) -> None:
    assert geometry_from(text) is None


def test_numbers_have_the_tolerance_of_doubles() -> None:
    mine, other = read("POINT(5000 1)"), read("POINT(5000.001 1)")
    assert not geometries_are_equal(mine, other, Decimal("1E-7"))
    assert geometries_are_equal(mine, other, Decimal("1E-6"))


@pytest.mark.parametrize("number", ["1e400", "-1e400", "1e-400", "1" * 4_000])
def test_numbers_beyond_all_doubles_do_no_harm(number: str) -> None:
    geometries = [read(f"POINT({x} 1)") for x in (number, f"{number} ".strip(), "1e308", "0")]
    assert geometries_are_equal(geometries[0], geometries[1])
    assert not geometries_are_equal(geometries[0], geometries[2])
    for group in geometry_groups(set(geometries), Decimal("1E-5")):
        assert len(group.same) <= 2


def test_groups_are_chains_of_near_geometries() -> None:
    texts = ["POINT(1 1)", "POINT(1.000000008 1)", "POINT(1.000000016 1.0)", "POINT(2 1)", "POINT Z(1 1 1)"]
    [group] = geometry_groups(map(read, texts), Decimal(0))
    assert [[each.numbers[0] for each in same] for same in group.same] == [["1"], ["1.000000008"], ["1.000000016"]]
    assert not group.are_equal


def test_geometries_are_grouped_by_all_their_numbers() -> None:
    geometries = [read(f"POINT({x} {y})") for x in "12" for y in "12"]
    assert list(geometry_groups(geometries, Decimal(0))) == []


def test_exactly_equal_numbers_are_told_from_those_with_the_same_float() -> None:
    numbers = ("12345678901234567890", "12345678901234567890.0", "12345678901234567891")
    [group] = geometry_groups([read(f"POINT({number})") for number in numbers], Decimal(0))
    assert [len(same) for same in group.same] == [2, 1]
    assert not group.are_equal
