"""Declares step kinds, and finds the kind of a step by its name, its media type, both, or a further key."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from typing import Any, Final, Literal

from graphrag_eval_lc.errors import MatcherError
from graphrag_eval_lc.files.record_file import Finding
from graphrag_eval_lc.registry.plugins import declared
from graphrag_eval_lc.texts import edit_distance

# A step name and a media type; None stands for all.
MatcherKey = tuple[str | None, str | None]
Reads = Literal["output", "args"]
Check = Callable[[Any], Iterable[Finding]]
Parse = Callable[[Any], Any]
Draft = Callable[[Mapping[str, Any], Sequence[Mapping[str, Any]]], Mapping[str, Any] | None]
ShownAs = Literal["text", "rows", "iri"]

# The number of wrong letters up to which a media type counts as misspelt.
_MISSPELT = 2
_LONGEST_MEDIA_TYPE = 80
# Formats whose names are similar to JSON or XML, and so never count as misspelt.
_JSON_LIKE = ("bson", "cson", "hjson", "json5", "jsonl", "ndjson")
_NO_MISSPELLINGS = frozenset({"text/html", *(f"application/{name}" for name in _JSON_LIKE)})
_WORD = re.compile("[a-z]+")

# The module that declares the kinds of this package.
_HOME: Final = "graphrag_eval_lc.matching"

# The name of reference steps of retrieval, which the config needs before anything is matched.
RETRIEVAL: Final = "retrieval"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedWhere:
    """Selects reference steps that have a kind only if the kind can read their output.

    Attributes:
        name: The name of the steps; None: any steps with ``media_type``.
        media_type: The media type of the steps; None: steps without one that have ``name``.
        key: A key that the step must have, not as null; None: no key.
        reads: A function that parses an output, and raises UnreadableOutput if it is of another kind.

    Example:
        >>> ServedWhere(media_type="application/json", key="required_columns", reads=str).served
        (None, 'application/json')
    """

    name: str | None = None
    media_type: str | None = None
    key: str | None = None
    reads: Parse

    def __post_init__(self) -> None:
        if self.name is None and self.media_type is None:
            hint = 'Give name="…" for steps without a media type, or media_type="…" and key="…".'
            raise MatcherError("ServedWhere is for a name or for a media type", hint=hint)

    @property
    def served(self) -> MatcherKey:
        """The name or the media type, as a pair with None."""
        return self.name, self.media_type


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The form of a kind's outputs for one of its media types.

    Attributes:
        media_type: The media type; None: none.
        title: What the outputs are, for people, such as "CSV".
        parse: A function that parses such an output, and raises UnreadableOutput if it is of another form.

    Example:
        >>> Form(media_type="text/csv", title="CSV", parse=str.splitlines).title
        'CSV'
    """

    media_type: str | None
    title: str
    parse: Parse


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepKind:
    """The declaration of a kind of steps; matching, ``validate``, ``dataset draft`` and reports derive from it.

    Its functions take steps as read-only mappings; those of ``matcher`` and ``check`` also have ``step.parsed(parse)``,
    which parses an output at most once. All but the first three attributes have a default.

    Attributes:
        key: Its name; if several registered kinds have the same key, the last one counts.
        serves: The reference steps that have this kind, as pairs of a step name and a media type, with None for any. A
            kind for a name and a media type overrides one for the name, which overrides one for the media type. Steps
            that no kind serves are compared as texts.
        serves_where: Further reference steps that have this kind if it can read their output. They are tried after
            kinds for their name, and before kinds for their media type.
        forms: The forms of its outputs with media types for which ``title`` and ``parse`` do not apply.
        matcher: A function of a reference step and an actual step that returns a score from 0 to 1, or a StepScore.
        title: What its outputs are, for people, such as "SPARQL results"; empty: its key.
        fulfilled_by: The names of the actual steps that may fulfil its reference steps; empty: the same name.
        reads: What its matcher compares: the ``output`` of the steps, or their ``args``.
        parse: A function that parses an output, and raises UnreadableOutput if it is of another kind. With it
            ``validate`` finds unreadable references, and ``dataset draft`` finds the kind of an output.
        check: A function of a reference step that returns Findings for ``validate``, with locations that begin in the
            step; UnreadableOutput becomes a Finding. None: check for ``args``, or for an output that ``parse`` takes.
        draft: A function of an actual step (under the name of its reference steps) and the successful steps after it
            that returns a reference step for ``dataset draft``, or None for no step. None: draft the step's name and
            ``args``, and if the output is compared, the output with the media type that this kind serves; without
            ``parse`` the form of the output decides whether another kind drafts it.
        drafted_from: The names of the actual steps from which it is drafted; empty: the names that it serves.
        drafts_each: Whether all drafted steps with different outputs are kept, not only the last of its tool.
        shown_as: How reports treat its reference steps: ``rows`` for a query of the graph, ``iri`` for an identifier
            that must be found before a query, otherwise ``text``.
        names: The names of the reference steps that it serves, with or without a media type; computed.

    Example:
        >>> kind = StepKind(key="count", serves=(("count_rows", None),), matcher=lambda reference, actual: 1.0)
        >>> kind.names, kind.title, kind.reads
        (frozenset({'count_rows'}), 'count', 'output')
    """

    key: str
    serves: tuple[MatcherKey, ...]
    matcher: Callable[[Any, Any], Any]
    title: str = ""
    serves_where: tuple[ServedWhere, ...] = ()
    forms: tuple[Form, ...] = ()
    fulfilled_by: tuple[str, ...] = ()
    reads: Reads = "output"
    parse: Parse | None = None
    check: Check | None = None
    draft: Draft | None = None
    drafted_from: tuple[str, ...] = ()
    drafts_each: bool = False
    shown_as: ShownAs = "text"
    names: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.title:
            object.__setattr__(self, "title", self.key)
        if not self.serves or not all(map(_is_pair, self.serves)):
            what = f"the step kind {self.key} serves {self.serves!r:.80}"
            raise MatcherError(what, hint='Give pairs of a step name and a media type: serves=(("count_rows", None),).')
        served = (*self.serves, *(each.served for each in self.serves_where))
        object.__setattr__(self, "names", frozenset(name for name, _ in served if name is not None))
        if self.fulfilled_by and not self.names:
            raise MatcherError("fulfilled_by needs the name of the reference steps", hint="Add name=….")
        if self.reads not in ("output", "args"):
            what = f"the step kind {self.key} reads {self.reads!r:.40}"
            raise MatcherError(what, hint='A matcher reads "output" or "args".')

    def title_for(self, media_type: str | None) -> str:
        """Return the name for people of its outputs with a media type, such as "CSV"."""
        return next((form.title for form in self.forms if form.media_type == media_type), self.title)

    def parse_for(self, media_type: str | None) -> Parse | None:
        """Return the function that parses its outputs with a media type."""
        return next((form.parse for form in self.forms if form.media_type == media_type), self.parse)

    def media_type_for(self, name: str) -> str | None:
        """Return the media type that steps of a name need for this kind; None if they need none."""
        media_types = [media_type for served, media_type in self.serves if served in (name, None)]
        return None if not media_types or (name in self.names and None in media_types) else media_types[0]


def _is_pair(key: object) -> bool:
    return isinstance(key, tuple) and len(key) == 2 and all(part is None or isinstance(part, str) for part in key)


def bare_media_type(media_type: str) -> str:
    """Return a media type in lower case and without its parameters.

    Example:
        >>> bare_media_type("Application/JSON; charset=utf-8")
        'application/json'
    """
    return media_type.partition(";")[0].strip().lower()


class _Served:
    """All kinds by (step name, media type), with lookups that are computed once."""

    def __init__(self, of_users: Mapping[MatcherKey, StepKind]) -> None:
        self.of_users = dict(of_users)
        built_in = frozenset(built_in_step_kinds.values())
        self.kinds = {key: kind for key, kind in built_in_step_kinds.items() if key not in of_users} | self.of_users
        known = [*self.kinds, *(each.served for kind in self.kinds.values() for each in kind.serves_where)]
        media_types = [media_type for _, media_type in known if media_type is not None]
        self.media_types = {bare_media_type(each): each for each in media_types} | {each: each for each in media_types}
        where = {
            (each.served, each.key): (each, kind)
            for kind in dict.fromkeys(self.kinds.values())
            for each in kind.serves_where
            if kind not in built_in or each.served not in self.kinds or self.kinds[each.served] in built_in
        }
        self.where: dict[MatcherKey, list[tuple[ServedWhere, StepKind]]] = {}
        for (served, _), found in where.items():
            self.where.setdefault(served, []).append(found)
        named = {name: kind for kind in self.kinds.values() for name in kind.names}
        named |= {name: kind for (name, _), kind in self.kinds.items() if name is not None}
        self.fulfilled_by = {name: frozenset(kind.fulfilled_by or (name,)) for name, kind in named.items()}
        others = (other for kind in named.values() for other in kind.fulfilled_by)
        self.names_with_a_meaning = frozenset((*named, *others))

    def where_for(self, name: str | None, media_type: str | None) -> list[tuple[ServedWhere, StepKind]]:
        """Return the ``ServedWhere`` entries for a name and a media type, each with its kind."""
        anyone = [] if media_type is None else self.where.get((None, media_type), [])
        return [*self.where.get((name, media_type), ()), *anyone] if name is not None else anyone


# The kinds of this package, and those of users, by what they serve.
built_in_step_kinds: Final[dict[MatcherKey, StepKind]] = {}
_of_users: Final[dict[MatcherKey, StepKind]] = declared["step kind"]
_computed: list[_Served] = []  # at most one entry, replaced when the kinds change


def _served() -> _Served:
    if not _computed or _computed[0].of_users != _of_users:
        _computed[:] = [_Served(_of_users)]
    return _computed[0]


def declare_step_kinds(kinds: Iterable[StepKind]) -> None:
    """Declare the kinds of this package."""
    for kind in kinds:
        built_in_step_kinds.update(dict.fromkeys(kind.serves, kind))
    _computed.clear()


def register_step_kind(kind: StepKind) -> StepKind:
    """Register a kind of steps, which replaces the kinds that have served these steps so far.

    An earlier kind with the same key is forgotten, for example when a module is reloaded.

    Returns:
        The kind.

    Raises:
        MatcherError: It serves every step.

    Example:
        >>> from graphrag_eval_lc.matching import StepKind, register_step_kind
        >>> kind = StepKind(key="count", serves=(("count_rows", None),), matcher=lambda reference, actual: 1.0)
        >>> register_step_kind(kind).key
        'count'
    """
    if (None, None) in kind.serves:
        raise MatcherError(f"the step kind {kind.key} serves every step", hint="Give a name or a media type.")
    for key in [key for key, earlier in _of_users.items() if earlier.key == kind.key or key in kind.serves]:
        del _of_users[key]
    _of_users.update(dict.fromkeys(kind.serves, kind))
    return kind


def custom_step_kinds() -> dict[MatcherKey, StepKind]:
    """Return the kinds that users registered, by (step name, media type), including replacements of built-in kinds."""
    return dict(_of_users)


def has_own_check(kind: StepKind) -> bool:
    """Return whether a kind has a ``check`` that is not one of this package."""
    return kind.check is not None and all(kind.check is not each.check for each in built_in_step_kinds.values())


def step_kind_for(name: str | None, media_type: str | None) -> StepKind:
    """Return the most specific kind for reference steps with a name and a media type."""
    kinds = _served().kinds
    return (
        kinds.get((name, media_type)) or kinds.get((name, None)) or kinds.get((None, media_type)) or kinds[None, None]
    )


def step_kind_of(
    name: str | None, media_type: str | None, step: Mapping[str, Any], is_read_by: Callable[[Parse], bool]
) -> StepKind:
    """Return the most specific kind for a reference step, also considering ``serves_where``.

    ``is_read_by`` returns whether a parse function can read the step's output.
    """
    kinds = _served().kinds
    kind = kinds.get((name, media_type)) or kinds.get((name, None))
    if kind is not None:
        return kind
    for each, kind in _served().where_for(name, media_type):
        if (each.key is None or step.get(each.key) is not None) and is_read_by(each.reads):
            return kind
    return kinds.get((None, media_type)) or kinds[None, None]


def step_kinds_by_key() -> dict[str, StepKind]:
    """Return the kinds of this package and of users by key; if users' kinds share a key, the last one."""
    if not built_in_step_kinds:
        import_module(_HOME)
    return {kind.key: kind for kind in (*built_in_step_kinds.values(), *_served().kinds.values())}


def kind_if_readable(name: str | None, media_type: str | None, step: Mapping[str, Any]) -> StepKind | None:
    """Return the kind that a reference step would have if its output were readable; None if no kind depends on that."""
    where = _served().where_for(name, media_type)
    return next((kind for each, kind in where if each.key is None or step.get(each.key) is not None), None)


def meant_media_type(name: str | None, media_type: str | None, is_read_by: Callable[[Parse], bool]) -> str | None:
    """Return the media type that a reference step means by the one it has.

    A media type that some kind serves is returned unchanged. Otherwise, case and parameters are ignored, a misspelt
    media type is corrected if its kind can read the output, and any other that ends in ``+json`` is JSON. A step
    without a media type whose name belongs to one in this package (``sparql_query``) has that one, if the output can be
    read as such. Everything else is returned unchanged.
    """
    kinds, known = _served().kinds, _served().media_types
    if media_type is not None and (found := known.get(media_type) or known.get(bare_media_type(media_type))):
        return found
    if (name, None) in kinds:  # compared by its name, whatever its media type
        return media_type
    for key, kind in built_in_step_kinds.items() if media_type is None else kinds.items():
        if key[0] != name and (media_type is None or key[0] is not None):
            continue
        if key[1] is None or kinds.get(key) is None:
            continue
        is_meant = key[0] == name if media_type is None else is_misspelt_media_type(media_type, key[1])
        if is_meant and (parse := kind.parse_for(key[1])) is not None and is_read_by(parse):
            return key[1]
    whole = f"application/{bare_media_type(media_type).rpartition('+')[2]}" if media_type and "+" in media_type else ""
    return whole if media_type and (None, whole) in kinds and not near_media_types(media_type) else media_type


def near_media_types(media_type: str) -> list[str]:
    """Return the known media types of which an unknown one may be a misspelling, the nearest first."""
    media_types = _served().media_types
    if bare_media_type(media_type) in media_types:
        return []
    near = [known for known in dict.fromkeys(media_types.values()) if is_misspelt_media_type(media_type, known)]
    given = bare_media_type(media_type)[:_LONGEST_MEDIA_TYPE]
    return sorted(near, key=lambda known: edit_distance(given, known))


@lru_cache(maxsize=1024)
def is_misspelt_media_type(given: str, known: str) -> bool:
    """Return whether a media type is similar to a known one: up to two wrong letters, or two words in common.

    Example:
        >>> is_misspelt_media_type("application/sparql+json", "application/sparql-results+json")
        True
        >>> is_misspelt_media_type("application/ld+json", "application/json")
        False
    """
    given, known = bare_media_type(given)[:_LONGEST_MEDIA_TYPE], bare_media_type(known)[:_LONGEST_MEDIA_TYPE]
    if given in _NO_MISSPELLINGS:
        return False
    if abs(len(given) - len(known)) <= _MISSPELT and edit_distance(given, known) <= _MISSPELT:
        return True
    words = [set(_WORD.findall(each.rpartition("/")[2])) for each in (given, known)]
    return len(words[0] & words[1]) > 1


def shown_as(name: str, kind: StepKind) -> ShownAs:
    """Return how reports treat reference steps with a name and a kind; a name that some kind serves decides alone."""
    if name not in _served().names_with_a_meaning or name in kind.names:
        return kind.shown_as
    return next((each.shown_as for each in _served().kinds.values() if name in each.names), "text")


def drafting_kinds(name: str) -> list[StepKind]:
    """Return the kinds that draft from actual steps with a name, those for any media type first.

    If a kind cannot draft, the form of the output decides which kind does.
    """
    ranked = sorted(_served().kinds.items(), key=lambda each: each[0][1] is not None)
    kinds = dict.fromkeys(kind for _, kind in ranked if name in (kind.drafted_from or kind.names))
    return [kind for kind in kinds if kind.draft or kind.parse or kind.reads == "args"]


def drafting_kinds_by_form() -> list[StepKind]:
    """Return the kinds that serve a media type for any name, those with users' media types first."""
    kinds, places = _served().kinds, {key: place for place, key in enumerate(built_in_step_kinds)}

    def place(key: MatcherKey) -> int:
        built_in = built_in_step_kinds.get(key)
        if built_in is None or (kinds[key] is not built_in and built_in.parse_for(key[1]) is not built_in.parse):
            return -1  # this package drafts none with that media type by its form
        return places[key]

    keys = [key for key in kinds if key[0] is None and key[1] is not None]
    return list(dict.fromkeys(kinds[key] for key in sorted(keys, key=place)))


def names_that_fulfil(name: str) -> frozenset[str]:
    """Return the names of the actual steps that may fulfil a reference step with this name."""
    return _served().fulfilled_by.get(name) or frozenset({name})


def have_other_meanings(name: str, other: str) -> bool:
    """Return whether kinds serve both names, but no single kind serves the two of them."""
    if not {name, other} <= _served().names_with_a_meaning:
        return False
    return not any({name, other} <= kind.names for kind in _served().kinds.values())
