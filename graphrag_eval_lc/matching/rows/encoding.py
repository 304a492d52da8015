"""Whole numbers as codes for the terms of two results, so that equal cells have the same code."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import count
from typing import Any, TypeAlias

from graphrag_eval_lc.matching.rows.coded_rows import (
    BLANK_CODE,
    UNBOUND_CODE,
    Cell,
    DetailedCodes,
    Rules,
)
from graphrag_eval_lc.matching.rows.plain_cells import is_untyped, value_reader
from graphrag_eval_lc.matching.rows.results import (
    SparqlResults,
    TermColumn,
    compared_columns,
    plain_columns,
    relevant_values,
)
from graphrag_eval_lc.matching.rows.terms import TRIPLE_SHAPE, UNBOUND_SHAPE, Shape
from graphrag_eval_lc.matching.rows.value_spaces import (
    NormalizedIriSpace,
    TextSpace,
    ValueSpace,
    unlike_terms_written_alike,
)
from graphrag_eval_lc.matching.rows.values import (
    NO_VALUES,
    Family,
    Reader,
    ValueRules,
    family_of,
    with_upper_case_escapes,
)
from graphrag_eval_lc.matching.rows.wkt import geometry_groups
from graphrag_eval_lc.matching.rows.xsd_numbers import (
    XSD_BOOLEAN,
    XSD_STRING,
    Finite,
    Links,
    Number,
    NumberKind,
    Tolerances,
    boolean_from,
    is_numeric_datatype,
    number_chains,
    number_from,
)

PartCodes: TypeAlias = dict[str, list[int]]
"""The codes of a column, under an empty text, and of the parts of its triple terms; see ``TermColumn.parts``."""


class Encoding:
    """Encodes columns of terms: equal cells get the same code.

    First all columns are encoded that are to be compared; only then ``settled`` returns their final codes, as a number
    may link two others that lie near it.

    Args:
        strict: Whether texts are told apart by kind, datatype and language tag too, and numbers and booleans never
            equal texts; there are no other values then.
        tolerances: Those of numbers.
        values: Which other terms have values.
        has_unlike_iris: Whether IRIs may equal others that are written otherwise; if not they are texts.
        counts_values: Whether a code of several values counts as inexact even where these are all equal; for rows as
            a set, whose duplicates go by exact value.

    Attributes:
        details: The detailed codes of cells with inexact codes.
        inexact: The codes of which the cells may differ; known once the codes are settled.
        has_near_numbers: Whether numbers of different values are equal; known once the codes are settled.
    """

    def __init__(
        self,
        strict: bool,
        tolerances: Tolerances,
        values: ValueRules = NO_VALUES,
        *,
        has_unlike_iris: bool = False,
        counts_values: bool = False,
    ) -> None:
        self._strict = strict
        self._tolerances = tolerances
        self._values = values
        self._has_unlike_iris = has_unlike_iris
        self._counts_values = counts_values
        self._next_code = count(BLANK_CODE + 1).__next__
        self.details = DetailedCodes(self._next_code, tolerances)
        self.inexact: set[int] = set()
        self.has_near_numbers = False
        self._code_of: dict[Family, dict[Any, int]] = {family: defaultdict(self._next_code) for family in Family}
        self._texts: defaultdict[Hashable, TextSpace] = defaultdict(lambda: defaultdict(self._next_code))
        self._value_spaces: dict[Hashable, ValueSpace] = {}
        self._triple_code = self._next_code()
        self._spaces: dict[Shape, TextSpace] = {
            UNBOUND_SHAPE: {"": UNBOUND_CODE},
            TRIPLE_SHAPE: defaultdict(lambda: self._triple_code),
        }
        self._triples: defaultdict[Hashable, int] = defaultdict(self._next_code)
        self._has_fine_numbers = False
        self._links = Links()
        self._exactly_joined: dict[int, int] = {}

    def codes(self, column: TermColumn, rows: slice = slice(None)) -> list[int]:
        """Return the codes of a column, or of some rows of it, before they are settled."""
        column = self._normalized(column)
        texts = column.texts[rows]
        if not isinstance(column.shapes, list):
            space = self._texts[None] if self._are_texts(column, column.shapes) else self._space(column.shapes)
            return list(map(space.__getitem__, texts))
        spaces = {shape: self._space(shape) for shape in set(column.shapes[rows])}
        return [spaces[shape][text] for shape, text in zip(column.shapes[rows], texts, strict=True)]

    def with_triples(self, parts: PartCodes) -> list[int]:
        """Return the codes of a column, given those of all its parts: triples of equal parts have the same."""
        own = parts[""]
        if len(parts) == 1:
            return own
        paths = sorted(path for path in parts if path)
        codes = []
        for code, *row in zip(own, *(parts[path] for path in paths), strict=True):
            if code == self._triple_code:
                there = tuple(each for each in zip(paths, row, strict=True) if each[1] != UNBOUND_CODE)
                code = self._triples[there]
            codes.append(code)
        return codes

    def _normalized(self, column: TermColumn) -> TermColumn:
        return column.in_nfc if self._values.nfc else column

    def _are_texts(self, column: TermColumn, shape: Shape) -> bool:
        """Return whether the cells of one shape are without a datatype, and none of them has a value."""
        if self._strict or not is_untyped(shape) or column.has_untyped_numbers:
            return False
        return not (self._values.times and column.concerns.untyped_times)

    def _space(self, shape: Shape) -> TextSpace:
        space = self._spaces.get(shape)
        if space is None:
            space = self._spaces[shape] = self._new_space(shape)
        return space

    def _new_space(self, shape: Shape) -> TextSpace:
        kind, datatype, _ = shape
        if kind == "bnode":
            return defaultdict(lambda: BLANK_CODE)
        texts = self._texts[_term_space(shape) if self._strict else None]
        if kind == "uri":
            return self._iri_space(texts) if self._has_unlike_iris else texts
        family = Family.NUMBER if is_numeric_datatype(datatype) else family_of(datatype)
        if family == Family.NUMBER or (is_untyped(shape) and not self._strict):
            otherwise = None if datatype is not None else value_reader(shape, self._values)
            return self._value_space(shape, Family.NUMBER, self._number_reader(datatype), texts, otherwise)
        if datatype == XSD_BOOLEAN:
            return self._value_space(shape, Family.BOOLEAN, boolean_from, texts)
        read = value_reader(shape, self._values)
        return texts if read is None or family is None else self._value_space(shape, family, _value_of(read), texts)

    def _value_space(
        self,
        shape: Shape,
        family: Family,
        read: Callable[[str], Any],
        texts: TextSpace,
        otherwise: Reader | None = None,
    ) -> ValueSpace:
        key = shape if self._strict else shape[1]
        if key not in self._value_spaces:
            self._value_spaces[key] = ValueSpace(shape[1], family, read, self._code_of, texts, otherwise)
        return self._value_spaces[key]

    def _iri_space(self, texts: TextSpace) -> ValueSpace:
        if Family.IRI not in self._value_spaces:
            read = with_upper_case_escapes if self._values.iri_case else str
            self._value_spaces[Family.IRI] = (
                NormalizedIriSpace(read, self._code_of, texts)
                if self._values.nfc
                else ValueSpace(None, Family.IRI, read, self._code_of, texts)
            )
        return self._value_spaces[Family.IRI]

    def _number_reader(self, datatype: str | None) -> Callable[[str], Number | None]:
        def read(text: str) -> Number | None:
            found = number_from(text, datatype)
            if found is None:
                return None
            self._has_fine_numbers |= found[1]
            return found[0]

        return read

    def can_stand_for(self, column: TermColumn, contents: Sequence[frozenset[int]], sample: int) -> bool:
        """Tell from a sample of rows whether a column may have the same contents as one that is encoded already."""
        column = self._normalized(column)
        rows = slice(sample)
        shapes = column.shapes[rows] if isinstance(column.shapes, list) else [column.shapes] * sample
        cells = zip(self.codes(column, rows), shapes, column.texts[rows], strict=False)
        kinds = self._number_kinds()
        codes = {code for code, shape, text in cells if not self._may_be_joined(shape, text, kinds)}
        return any(codes <= content for content in contents)

    def _number_kinds(self) -> set[NumberKind]:
        return {kind for space in self._value_spaces.values() for kind in space.number_kinds()}

    def _may_be_joined(self, shape: Shape, text: str, kinds: set[NumberKind]) -> bool:
        """Return whether a cell may turn out to equal one with another code."""
        space = self._space(shape)
        family = space.family(text) if isinstance(space, ValueSpace) else None
        if family == Family.GEOMETRY:
            return True
        if family == Family.NUMBER and isinstance(space, ValueSpace):
            kind = space.kind(text)
            if self._has_fine_numbers or (kind is not None and self._tolerances.loosest({kind}, kinds)):
                return True
        if self._strict:
            return False
        form = space.form_of(text) if isinstance(space, ValueSpace) else text
        return (family is not None and form in self._texts[None]) or any(
            form in other.forms for other in self._value_spaces.values() if other is not space
        )

    def settled(self, columns: Sequence[list[int]]) -> list[list[int]]:
        """Return the final codes of columns, in which all codes of a chain are one."""
        self._join_equal_codes()
        if not self._links.parents:
            return list(columns)
        joined = {code: self._links.root(code) for code in self._links.parents}
        return [[joined.get(code, code) for code in column] for column in columns]

    def _join_equal_codes(self) -> None:
        geometries = list(geometry_groups(self._code_of[Family.GEOMETRY], self._tolerances.double))
        for group in geometries:
            for same in group.same:
                self._join(same, self._code_of[Family.GEOMETRY])
        mixed = set() if self._strict else self._join_unlike_terms()
        self._exactly_joined = dict(self._links.parents)
        kinds = self._number_kinds()
        if self._has_fine_numbers or self._tolerances.loosest(kinds, kinds):
            self._chain_numbers()
        for group in geometries:
            first = self._join((same[0] for same in group.same), self._code_of[Family.GEOMETRY])
            if not group.are_equal or (self._counts_values and len(group.same) > 1):
                self.inexact.add(first)
        if mixed:
            self._mark_mixed_forms({self._links.root(code) for code in mixed})
        self.inexact = {self._links.root(code) for code in self.inexact}

    def _join(self, values: Iterable[Any], code_of: dict[Any, int]) -> int:
        """Join values, and return the code of the first."""
        first, *others = map(code_of.__getitem__, values)
        for code in others:
            self._links.join(first, code)
        return first

    def _chain_numbers(self) -> None:
        """Join the numbers of each chain; where some of them may differ, their code is inexact."""
        kinds_of: dict[Finite, tuple[NumberKind, ...]] = {}
        for space in self._value_spaces.values():
            for kind, values in space.numbers().items():
                of_kind: dict[Finite, tuple[NumberKind, ...]] = dict.fromkeys(values, (kind,))
                for value in kinds_of.keys() & of_kind.keys():
                    of_kind[value] = tuple({*kinds_of[value], kind})
                kinds_of |= of_kind
        for numbers, are_equal in number_chains(kinds_of, self._tolerances, are_fine=self._has_fine_numbers):
            self.has_near_numbers = True
            first = self._join(numbers, self._code_of[Family.NUMBER])
            if self._counts_values or not are_equal:
                self.inexact.add(first)

    def _join_unlike_terms(self) -> set[int]:
        """Join terms of different families that are written alike; return their codes."""
        mixed = set()
        for one, other in unlike_terms_written_alike(self._value_spaces.values(), self._texts[None]):
            self._links.join(one, other)
            mixed.add(one)
        return mixed

    def _mark_mixed_forms(self, mixed: set[int]) -> None:
        """Mark those codes of several families as inexact that have more than one lexical form."""
        form_of: dict[int, str] = {}
        for space in self._value_spaces.values():
            for text in space.values_read:
                root = self._links.root(space[text])
                if root in mixed and form_of.setdefault(root, text) != text:
                    self.inexact.add(root)

    def detailed(self, column: TermColumn, codes: list[int], blank_nodes: dict[str, int]) -> list[int]:
        """Return the detailed codes of a column with settled codes.

        ``blank_nodes`` holds the negative codes of this side's blank nodes by label, and takes up new ones.
        """
        column = self._normalized(column)
        shapes = column.shapes if isinstance(column.shapes, list) else [column.shapes] * len(codes)
        return [
            blank_nodes.setdefault(text, -1 - len(blank_nodes))
            if code == BLANK_CODE
            else self._detail(shape, text, code)
            if code in self.inexact
            else code
            for code, shape, text in zip(codes, shapes, column.texts, strict=True)
        ]

    def _detail(self, shape: Shape, text: str, code: int) -> int:
        space = self._space(shape)
        cell = Cell(text)
        if isinstance(space, ValueSpace) and text in space.values_read:
            cell = Cell(space.form_of(text), space.family(text), space.values_read[text], space.kind(text))
        exact_code = space[text]
        while exact_code in self._exactly_joined:
            exact_code = self._exactly_joined[exact_code]
        return self.details.detail(cell, code, exact_code)


def _term_space(shape: Shape) -> Hashable:
    """Return what tells terms of the same text apart where RDF terms are compared."""
    kind, datatype, language = shape
    if kind == "uri":
        return "uri"
    kind = "literal" if kind == "typed-literal" else kind
    if language:
        return kind, language.lower()
    return kind, None, datatype or XSD_STRING


def _value_of(read: Reader) -> Callable[[str], Any]:
    def value(text: str) -> Any:
        found = read(text)
        return None if found is None else found[1]

    return value


class PlainEncoding(Encoding):
    """The quicker encoding of columns that are all plain by value, and without a number with a tolerance."""

    def __init__(self, values: ValueRules) -> None:
        super().__init__(strict=False, tolerances=Tolerances(), values=values)
        self._code_of_cell: defaultdict[Hashable, int] = defaultdict(self._next_code)

    def codes(self, column: TermColumn, rows: slice = slice(None)) -> list[int]:
        """Return the codes of a column, or of some rows of it."""
        return list(map(self._code_of_cell.__getitem__, self._cells(column)[rows]))

    def can_stand_for(self, column: TermColumn, contents: Sequence[frozenset[int]], sample: int) -> bool:
        """Tell from a sample of rows whether a column may have the same contents as one that is encoded already."""
        codes = {self._code_of_cell.get(cell) for cell in self._cells(column)[:sample]}
        return any(codes <= content for content in contents)

    def settled(self, columns: Sequence[list[int]]) -> list[list[int]]:
        """Return the codes as they are."""
        return list(columns)

    def _cells(self, column: TermColumn) -> Sequence[Hashable]:
        plain = column.plain_by_value(self._values)
        return column.texts if plain is None else plain.cells


def encoding_for(reference: SparqlResults, actual: SparqlResults, required: Sequence[str], rules: Rules) -> Encoding:
    """Return the quickest encoding that tells the cells of two results apart."""
    values = NO_VALUES if rules.strict else relevant_values(reference, actual, required, rules.values)
    plain = None if rules.strict else plain_columns(reference, actual, required, values)
    if plain is not None:
        mine, others = (frozenset[NumberKind]().union(*(column.kinds for column in columns)) for columns in plain)
        if not rules.tolerances.loosest(mine, others):
            return PlainEncoding(values)
    return full_encoding(reference, actual, required, rules)


def full_encoding(reference: SparqlResults, actual: SparqlResults, required: Sequence[str], rules: Rules) -> Encoding:
    """Return an encoding that does for all columns."""
    columns = compared_columns(reference, actual, required)
    values = NO_VALUES if rules.strict else relevant_values(reference, actual, required, rules.values)
    return Encoding(
        rules.strict,
        rules.tolerances,
        values,
        has_unlike_iris=values.iri_case or (values.nfc and any(column.concerns.iris for column in columns)),
        counts_values=rules.rows_as == "set",
    )
