"""Codes by lexical form, for terms that have values: numbers, booleans, times, durations, geometries and IRIs."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias

from graphrag_eval_lc.matching.rows.values import Family, Reader, in_nfc
from graphrag_eval_lc.matching.rows.xsd_numbers import Finite, NumberKind, number_kind

TextSpace: TypeAlias = dict[str, int]
"""Codes by text, for terms of the same kind; a text that is looked up for the first time gets a new code."""


class ValueSpace(dict[str, int]):
    """Codes by lexical form, for terms of one datatype, or of none. Equal values have one code.

    Args:
        datatype: The datatype; None for terms without one.
        family: The family of nearly all values.
        read: Reads a value of this family.
        code_of: The codes of values, by family.
        malformed: The codes of texts without a value.
        otherwise: Reads values of other families where there is none of this one.

    Attributes:
        values_read: The values by their texts.
    """

    def __init__(
        self,
        datatype: str | None,
        family: Family,
        read: Callable[[str], Any],
        code_of: Mapping[Family, dict[Any, int]],
        malformed: TextSpace,
        otherwise: Reader | None = None,
    ) -> None:
        super().__init__()
        self.values_read: dict[str, Any] = {}
        self._datatype = datatype
        self._family = family
        self._read = read
        self._code_of = code_of
        self._code_of_value = code_of[family]
        self._malformed = malformed
        self._otherwise = otherwise
        self._other_families: dict[str, Family] = {}

    def __missing__(self, text: str) -> int:
        value = self._read(text)
        if value is None:
            code = self._other_code(text)
        else:
            self.values_read[text] = value
            code = self._code_of_value[value]
        self[text] = code
        return code

    def _other_code(self, text: str) -> int:
        found = None if self._otherwise is None else self._otherwise(text)
        if found is None:
            return self._malformed[text]
        family, value = found
        self.values_read[text] = value
        self._other_families[text] = family
        return self._code_of[family][value]

    def family(self, text: str) -> Family | None:
        """Return the family of a text that has been read; None where it has no value."""
        return self._other_families.get(text, self._family) if text in self.values_read else None

    @property
    def families(self) -> set[Family]:
        """The families of the values that have been read."""
        found = set(self._other_families.values())
        return found if len(self._other_families) == len(self.values_read) else found | {self._family}

    @property
    def forms(self) -> Mapping[str, Any]:
        """What texts of other families may equal the values read."""
        return self.values_read

    def texts_of(self, form: str) -> Sequence[str]:
        """Return the texts whose form this is."""
        return (form,)

    def form_of(self, text: str) -> str:
        """Return the form of a text."""
        return text

    def kind(self, text: str) -> NumberKind | None:
        """Return the kind of number that a text is; None for all else."""
        return number_kind(text, self._datatype) if self.family(text) == Family.NUMBER else None

    def numbers(self) -> dict[NumberKind, list[Finite]]:
        """Return the finite numbers that have been read, by kind."""
        found: defaultdict[NumberKind, list[Finite]] = defaultdict(list)
        if self._family != Family.NUMBER:
            return found
        if self._datatype is not None:
            kind = number_kind("", self._datatype)
            found[kind] = [value for value in set(self.values_read.values()) if not isinstance(value, str)]
        else:
            for text, value in self.values_read.items():
                if text not in self._other_families and not isinstance(value, str):
                    found[number_kind(text, None)].append(value)
        return found

    def number_kinds(self) -> Collection[NumberKind]:
        """Return the kinds that the numbers read may have."""
        if Family.NUMBER not in self.families:
            return ()
        return {number_kind(text, self._datatype) for text in ("0", "0.0")}


class NormalizedIriSpace(ValueSpace):
    """Codes of IRIs where texts count in the Unicode normal form C: a text may equal several IRIs, which differ."""

    def __init__(
        self, read: Callable[[str], str], code_of: Mapping[Family, dict[Any, int]], malformed: TextSpace
    ) -> None:
        super().__init__(None, Family.IRI, read, code_of, malformed)
        self._texts_of: defaultdict[str, list[str]] = defaultdict(list)

    def __missing__(self, text: str) -> int:
        self._texts_of[in_nfc(text)].append(text)
        return super().__missing__(text)

    @property
    def forms(self) -> Mapping[str, Any]:
        """The normal forms of the IRIs."""
        return self._texts_of

    def texts_of(self, form: str) -> Sequence[str]:
        """Return the IRIs of a normal form."""
        return self._texts_of[form]

    def form_of(self, text: str) -> str:
        """Return the normal form of an IRI."""
        return in_nfc(text)


class UnlikeTerms(NamedTuple):
    """Two terms of different families that are written alike, by their codes."""

    one: int
    other: int


def unlike_terms_written_alike(spaces: Iterable[ValueSpace], texts: TextSpace) -> Iterator[UnlikeTerms]:
    """Yield the pairs of a value and a text, or of values of different families, that are written alike."""
    known = list(spaces)
    for space in known:
        for form in space.forms.keys() & texts.keys():
            for text in space.texts_of(form):
                yield UnlikeTerms(space[text], texts[form])
    for one, other in combinations(known, 2):
        if one.families == other.families and len(one.families) == 1:
            continue
        for form in one.forms.keys() & other.forms.keys():
            for text in one.texts_of(form):
                for other_text in other.texts_of(form):
                    if one.family(text) != other.family(other_text):
                        yield UnlikeTerms(one[text], other[other_text])
