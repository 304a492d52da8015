"""Triple terms are compared by their parts: as a slow and plain comparison has it, and as a real store writes them."""

import json
import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import pyoxigraph
import pytest

from graphrag_eval_lc.matching.rows import compare_sparql_results

XSD = "http://www.w3.org/2001/XMLSchema#"
Cell = tuple[Any, ...] | None  # kind, text, datatype; or "triple" and its parts
Rows = list[tuple[Cell, ...]]

LEAVES: list[Cell] = [
    ("uri", "a", ""),
    ("literal", "a", ""),
    ("literal", "5", ""),
    ("literal", "5", "integer"),
    ("literal", "5.0", "decimal"),
    ("literal", "5.000000008", "decimal"),
    ("literal", "5.000000016", "decimal"),
    *(("bnode", f"b{at}", "") for at in range(3)),
]
KEYS = [("subject", "predicate", "object"), ("s", "p", "o"), ("subject", "property", "object")]
MODES: list[dict[str, Any]] = [
    {**rows, "strict": strict}
    for rows in ({"ordered": True}, {"ignore_duplicates": True}, {"ignore_duplicates": False})
    for strict in (False, True)
]


def number(cell: tuple[Any, ...], strict: bool) -> Fraction | None:
    is_number = cell[0] == "literal" and cell[1] != "a" and (cell[2] or not strict)
    return Fraction(cell[1]) if is_number else None


def equal(one: Cell, other: Cell, strict: bool, within: Fraction = Fraction(1, 10**8)) -> bool:
    if one is None or other is None:
        return one is other
    if "triple" in (one[0], other[0]):
        return one[0] == other[0] and all(
            equal(mine, theirs, strict, within) for mine, theirs in zip(one[1:], other[1:], strict=True)
        )
    if "bnode" in (one[0], other[0]):
        return one == other
    mine, theirs = number(one, strict), number(other, strict)
    if mine is not None and theirs is not None:
        return abs(mine - theirs) <= within
    return one == other if strict else one[1] == other[1]


def leaves(cell: Cell) -> Iterator[Cell]:
    if cell is not None and cell[0] == "triple":
        for part in cell[1:]:
            yield from leaves(part)
    else:
        yield cell


class Plain:
    """Compares rows by trying everything."""

    def __init__(self, rows: Rows, strict: bool) -> None:
        self.strict = strict
        self.values: dict[Cell, int] = {}
        for cell in {leaf for row in rows for each in row for leaf in leaves(each)}:
            joined = {value for other, value in self.values.items() if equal(cell, other, strict, Fraction(0))}
            first = min(joined, default=len(self.values))
            self.values = {other: first if value in joined else value for other, value in self.values.items()}
            self.values[cell] = first

    def value(self, cell: Cell) -> Any:
        is_triple = cell is not None and cell[0] == "triple"
        return tuple(map(self.value, cell[1:])) if is_triple and cell else self.values[cell]

    def rows_equal(self, one: tuple[Cell, ...], other: tuple[Cell, ...]) -> bool:
        return all(equal(mine, theirs, self.strict) for mine, theirs in zip(one, other, strict=True))

    def bags_match(self, mine: Rows, others: Rows) -> bool:
        if len(mine) != len(others):
            return False
        return not mine or any(
            self.rows_equal(mine[0], other) and self.bags_match(mine[1:], others[:at] + others[at + 1 :])
            for at, other in enumerate(others)
        )

    def kept(self, rows: Rows) -> Iterator[Rows]:
        """Return the ways to leave out rows that have the values of another one."""
        values = [tuple(map(self.value, row)) for row in rows]
        for chosen in product([True, False], repeat=len(rows)):
            if {value for value, keep in zip(values, chosen, strict=True) if keep} == set(values):
                yield [row for row, keep in zip(rows, chosen, strict=True) if keep]

    def sets_match(self, mine: Rows, others: Rows) -> bool:
        if not all(any(self.rows_equal(row, other) for other in others) for row in mine):
            return False
        if not all(any(self.rows_equal(row, other) for row in mine) for other in others):
            return False
        kept = list(self.kept(others))
        return any(self.bags_match(rows, theirs) for rows in self.kept(mine) for theirs in kept)


def labels(rows: Rows) -> list[str]:
    found = {leaf[1] for row in rows for cell in row for leaf in leaves(cell) if leaf and leaf[0] == "bnode"}
    return sorted(found)


def renamed(cell: Cell, new: dict[str, str]) -> Cell:
    if cell is None or cell[0] in ("uri", "literal"):
        return cell
    if cell[0] == "triple":
        return ("triple", *(renamed(part, new) for part in cell[1:]))
    return ("bnode", new[cell[1]], "")


def plain_score(
    mine: Rows, others: Rows, ordered: bool = False, ignore_duplicates: bool = True, strict: bool = False
) -> float:
    mine_labels = labels(mine)
    plain = Plain([*mine, *others], strict)
    for columns in permutations(range(len(others[0])), len(mine[0])):
        projected = [tuple(row[at] for at in columns) for row in others]
        their_labels = labels(projected)
        if len(mine_labels) != len(their_labels):
            continue
        for order in permutations(mine_labels):
            new = dict(zip(their_labels, order, strict=True))
            theirs = [tuple(renamed(cell, new) for cell in row) for row in projected]
            if ordered:
                fits = len(mine) == len(theirs) and all(map(plain.rows_equal, mine, theirs))
            else:
                fits = plain.sets_match(mine, theirs) if ignore_duplicates else plain.bags_match(mine, theirs)
            if fits:
                return 1.0
    return 0.0


def as_term(cell: tuple[Any, ...], rng: random.Random) -> dict[str, Any]:
    if cell[0] == "triple":
        parts = [as_term(part, rng) for part in cell[1:]]
        return {"type": "triple", "value": dict(zip(rng.choice(KEYS), parts, strict=True))}
    kind, text, datatype = cell
    return {"type": kind, "value": text} | ({"datatype": XSD + datatype} if datatype else {})


def as_results(rows: Rows, rng: random.Random) -> dict[str, Any]:
    names = [f"c{at}" for at in range(len(rows[0]))]
    bindings = [
        {name: as_term(cell, rng) for name, cell in zip(names, row, strict=True) if cell is not None} for row in rows
    ]
    return {"head": {"vars": names}, "results": {"bindings": bindings}}


def random_cell(rng: random.Random, pool: list[Cell], depth: int = 0) -> Cell:
    if rng.random() < (0.6, 0.25, 0.0)[depth]:
        return ("triple", *(random_cell(rng, pool, depth + 1) for _ in range(3)))
    return None if depth == 0 and rng.random() < 0.1 else rng.choice(pool)


def near(rng: random.Random, cell: Cell) -> Cell:
    """Return a cell that is often, not always, equal."""
    if cell is None or cell[0] == "bnode":
        return cell
    if cell[0] == "triple":
        return ("triple", *(near(rng, part) for part in cell[1:]))
    alike = [leaf for leaf in LEAVES if equal(cell, leaf, strict=False)]
    return rng.choice(alike) if rng.random() < 0.2 else cell


def random_pair(rng: random.Random) -> tuple[Rows, Rows]:
    """Return a table, and one made from it with rows and columns in another order, and some cells changed."""
    pool = rng.sample(LEAVES, rng.randint(1, 4))
    cells = [random_cell(rng, pool) for _ in range(rng.randint(1, 4))]
    width = rng.randint(1, 2)
    mine = [tuple(rng.choice(cells) for _ in range(width)) for _ in range(rng.randint(1, 4))]
    wider = width + rng.choice([0, 0, 1])
    columns = rng.sample(range(wider), wider)
    new = {f"b{at}": f"b{other}" for at, other in enumerate(rng.sample(range(3), 3))}
    others: Rows = []
    for row in mine:
        longer = [renamed(near(rng, cell), new) for cell in row] + [rng.choice(cells) for _ in range(wider - width)]
        others.append(tuple(longer[at] for at in columns))
    if rng.random() < 0.4:
        at, column = rng.randrange(len(others)), rng.randrange(wider)
        changed = list(others[at])
        changed[column] = rng.choice([*cells, random_cell(rng, pool)])
        others[at] = tuple(changed)
    if rng.random() < 0.3:
        others.append(rng.choice(others))
    if rng.random() < 0.7:
        rng.shuffle(others)
    return mine, others


def assert_scores_are_those_of_trying_everything(seeds: range) -> None:
    scores = []
    for seed in seeds:
        rng = random.Random(seed)
        mine, others = random_pair(rng)
        mode = rng.choice(MODES)
        found = compare_sparql_results(as_results(mine, rng), as_results(others, rng), **mode)
        assert found.score == plain_score(mine, others, **mode), (seed, mine, others, mode, found.reason)
        assert found.reason.endswith(".")
        scores.append(found.score)
    assert 0.2 < sum(scores) / len(scores) < 0.8  # both outcomes are common


@pytest.mark.full
def test_the_score_of_triple_terms_is_that_of_trying_everything() -> None:
    assert_scores_are_those_of_trying_everything(range(1_500))


@pytest.mark.full
def test_the_score_of_many_triple_terms_is_that_of_trying_everything() -> None:
    assert_scores_are_those_of_trying_everything(range(10_000, 20_000))


def table(*rows: tuple[Cell, ...]) -> dict[str, Any]:
    return as_results(list(rows), random.Random(0))


A, P = ("uri", "urn:a", ""), ("uri", "urn:p", "")
FIVE, NEARLY_FIVE, SIX = (("literal", text, "decimal") for text in ("5.0", "5.000000008", "6.0"))
BLANK, OTHER_BLANK = ("bnode", "x", ""), ("bnode", "y", "")


def triple(subject: Cell, predicate: Cell, object_: Cell) -> tuple[Any, ...]:
    return ("triple", subject, predicate, object_)


def score(one: Cell, other: Cell, **options: Any) -> float:
    return compare_sparql_results(table((one,)), table((other,)), **options).score


def test_numbers_in_triples_are_compared_by_value_within_the_tolerance() -> None:
    assert score(triple(A, P, FIVE), triple(A, P, NEARLY_FIVE)) == 1.0
    assert score(triple(A, P, triple(A, P, FIVE)), triple(A, P, triple(A, P, ("literal", "5", "integer")))) == 1.0
    assert score(triple(A, P, FIVE), triple(A, P, SIX)) == 0.0
    assert score(triple(A, P, FIVE), triple(A, P, SIX), tolerance=0.2) == 1.0


def test_strictly_the_parts_are_compared_as_terms() -> None:
    one, other = triple(A, P, ("literal", "a", "string")), triple(A, P, ("uri", "a", ""))
    assert score(one, other) == 1.0
    assert score(one, other, strict=True) == 0.0
    assert score(one, triple(A, P, ("literal", "a", "")), strict=True) == 1.0


def test_a_triple_equals_nothing_but_a_triple_of_the_same_form() -> None:
    one = triple(A, P, A)
    for other in (
        A,
        None,
        BLANK,
        triple(P, A, A),
        triple(A, P, triple(A, P, A)),
        ("literal", "<<( urn:a urn:p urn:a )>>", ""),
    ):
        assert score(one, other) == score(other, one) == 0.0


@pytest.mark.parametrize("mode", MODES)
def test_blank_nodes_are_renamed_alike_inside_and_outside_of_triples(mode: dict[str, Any]) -> None:
    mine = table((BLANK, triple(BLANK, P, A)), (OTHER_BLANK, triple(OTHER_BLANK, P, FIVE)))
    theirs = table((OTHER_BLANK, triple(OTHER_BLANK, P, A)), (BLANK, triple(BLANK, P, FIVE)))
    crossed = table((BLANK, triple(OTHER_BLANK, P, A)), (OTHER_BLANK, triple(BLANK, P, FIVE)))
    assert compare_sparql_results(mine, theirs, **mode).score == 1.0
    found = compare_sparql_results(mine, crossed, **mode)
    assert found.score == 0.0
    assert "blank nodes only" in found.reason


def test_rows_that_differ_are_shown_with_their_triples() -> None:
    found = compare_sparql_results(
        table((triple(A, P, FIVE),)), table((triple(A, P, ("literal", "5.001", "decimal")),))
    )
    assert found.missing_rows == [('<<( urn:a urn:p "5.0" )>>',)]
    assert found.extra_rows == [('<<( urn:a urn:p "5.001" )>>',)]
    assert "5.001 instead of 5.0 differs by" in found.reason
    assert 0.0 <= found.closeness < 1.0


def test_rows_are_counted_where_one_side_nests_deeper() -> None:
    mine = table((triple(A, P, A), FIVE), (A, FIVE), (BLANK, SIX))
    theirs = table((triple(A, P, triple(BLANK, P, A)), FIVE), (triple(A, P, triple(A, P, A)), FIVE), (BLANK, SIX))
    found = compare_sparql_results(mine, theirs)
    assert (found.missing_row_count, found.extra_row_count) == (2, 2)


def test_free_columns_may_hold_triples() -> None:
    mine = table((A, triple(A, P, BLANK)))
    theirs = table((A, triple(A, P, FIVE)))
    assert compare_sparql_results(mine, theirs, ["c0"]).score == 1.0
    assert compare_sparql_results(table((A,)), theirs, strict=True).score == 1.0


DATA = """
PREFIX : <urn:>
INSERT DATA {
  :a :says <<( :b :height 5.0 )>> , <<( :b :height "5"@en--ltr )>> .
  :c :says <<( _:x :knows <<( _:x :knows _:y )>> )>> .
  _:y :says <<( _:y :name "Ann Lee" )>> , "plain" , <<( :b :height _:x )>> .
}
"""


def relabelled(value: Any, labels: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [relabelled(each, labels) for each in value]
    if isinstance(value, dict):
        if value.get("type") == "bnode":
            return {**value, "value": labels.setdefault(value["value"], f"n{len(labels)}")}
        return {key: relabelled(each, labels) for key, each in value.items()}
    return value


@pytest.mark.parametrize("mode", MODES)
def test_results_of_a_store_match_themselves_with_their_blank_nodes_renamed(mode: dict[str, Any]) -> None:
    store = pyoxigraph.Store()
    store.update(DATA)
    query = "SELECT ?who ?what WHERE { ?who <urn:says> ?what }"
    found = store.query(query)
    assert isinstance(found, pyoxigraph.QuerySolutions)
    written = found.serialize(format=pyoxigraph.QueryResultsFormat.JSON)
    assert written is not None
    text = written.decode()
    document = json.loads(text)
    bindings = document["results"]["bindings"]
    assert [cell["what"]["type"] for cell in bindings].count("triple") == 5
    for seed in range(20):
        others = relabelled(bindings, {})
        if not mode.get("ordered"):
            random.Random(seed).shuffle(others)
        again = {
            "head": {"vars": ["x", "y"]},
            "results": {"bindings": [{"y": row["who"], "x": row["what"]} for row in others]},
        }
        assert compare_sparql_results(text, again, **mode).score == 1.0
    swapped = relabelled(bindings, {})
    named = next(row for row in swapped if "Ann Lee" in json.dumps(row))
    named["what"]["value"]["subject"] = {"type": "bnode", "value": "somebody else"}
    assert compare_sparql_results(text, {**document, "results": {"bindings": swapped}}, **mode).score == 0.0
