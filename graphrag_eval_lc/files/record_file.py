"""Reads files of records, checks their format, and reports each mistake with its line and key."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from graphrag_eval_lc.errors import GraphRAGEvalError
from graphrag_eval_lc.files.reading import (
    LineIndex,
    Source,
    TextFile,
    parse_json_at,
    parse_yaml_noting_keys,
    read_text,
)
from graphrag_eval_lc.texts import counted, shortened

_NO_TEXT = " is not a text"
# Names that other tools use for these keys.
_OTHER_NAMES: Mapping[str, Sequence[str]] = {
    "question_text": ("question", "text", "query", "input"),
    "template_id": ("template", "id"),
    "id": ("question_id",),
    "question_id": ("id",),
}
Location = tuple[str | int, ...]
Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A mistake in a record: what is wrong, how to fix it, and its location as keys and indices.

    ``line`` is set if it is known more precisely than by the location. It is a ``warning`` if the record can be
    evaluated nevertheless.
    """

    what: str
    hint: str
    location: Location = ()
    line: int | None = None
    severity: Severity = "error"


class RecordFile:
    """Records (a list, unless the format is broken) and their file; ``file`` is None for records made in Python."""

    def __init__(
        self,
        values: Any,
        file: TextFile | None = None,
        lines: Sequence[int] | None = None,
        *,
        may_repeat_keys: bool = True,
    ) -> None:
        self.values = values
        self.file = file
        self._lines = lines
        self._may_repeat_keys = may_repeat_keys
        self._id_key: str | None = None

    @cached_property
    def line_index(self) -> LineIndex | None:
        """The lines of a YAML or JSON file; None for the other formats."""
        index = LineIndex(self.file) if self.file and self._lines is None else None
        if index is not None and self._id_key is not None:
            index.list_by_key(self._id_key, len(self.values))
        return index

    def list_by_key(self, name: str, values: list[Any]) -> None:
        """Replace a mapping of ids to records by a list of records in its order, with their ids under ``name``."""
        self.values = values
        self._id_key = name

    @property
    def has_records_by_id(self) -> bool:
        """Whether the file is a mapping of ids to records; its keys were converted to texts."""
        return self._id_key is not None

    def written(self, location: Location) -> str | None:
        """Return the YAML source of an unquoted value that is not read as a text; else None."""
        is_yaml = self.file is not None and self.file.format == "yaml"
        return self.line_index.written(location) if is_yaml and self.line_index is not None else None

    def repeated_keys(self) -> Iterator[tuple[str, int]]:
        """Yield each repeated key of a mapping in the file, with its second line; only the last value is kept."""
        if self.file is None or not self._may_repeat_keys:
            return
        if self.file.format == "yaml":
            yield from self.line_index.repeated_keys() if self.line_index is not None else ()
        elif self._lines is None:
            yield from repeated_json_keys([(1, self.file.text)])
        else:
            yield from repeated_json_keys(_numbered_lines(self.file.text))

    def format_findings(self, records: TypeAdapter[Any], mistaken: Finding | None = None) -> Iterator[Finding]:
        """Yield all format mistakes in the order of the records, with a note if YAML did not read a value as a text.

        ``mistaken`` is a mistake of the records as a whole; if there is one, only it is reported.
        """
        if mistaken is not None:
            yield mistaken
            return
        # Records are checked one at a time, as pydantic creates an object for each.
        parts: Iterable[Any] = ([each] for each in self.values) if isinstance(self.values, list) else (self.values,)
        for first, part in enumerate(parts):
            try:
                records.validate_python(part)
                continue
            except ValidationError as problem:
                mistakes = problem.errors(include_url=False, include_context=False)
            for mistake in mistakes:
                index, *inside = mistake["loc"] or (None,)
                location = (index + first, *inside) if isinstance(index, int) else mistake["loc"]
                finding = _described(mistake, location)
                written = self.written(location) if finding.what.endswith(_NO_TEXT) else None
                value = finding.what.removesuffix(_NO_TEXT)
                if not written or written == value:
                    yield finding
                else:
                    what = f"YAML reads {shortened(written, 60)} as {value}, which{_NO_TEXT}"
                    yield replace(finding, what=what, hint=f"Put it in quotes: {quoted(written)}.")

    def line_of(self, location: Location) -> int | None:
        """Return the line of the value at ``location``; None for records made in Python."""
        if self._lines is not None and location and isinstance(location[0], int):
            return self._lines[location[0]]
        return self.line_index.line_of(location) if self.line_index else None

    def place_of(self, finding: Finding) -> dict[str, Any]:
        """Return the place of a finding, as keyword arguments for an exception of this package."""
        return {
            "path": self.file.path if self.file else None,
            "line": finding.line if finding.line is not None else self.line_of(finding.location),
            "question_id": self._question_id_at(finding.location),
            "key": key_text(finding.location) or None,
        }

    def check(self, records: TypeAdapter[Any], error: type[GraphRAGEvalError], mistaken: Finding | None = None) -> None:
        """Raise the first format mistake, and say how many more there are."""
        findings = list(self.format_findings(records, mistaken))
        if not findings:
            return
        hint, more = findings[0].hint, len(findings) - 1
        if more:
            hint += f" ({counted(more, 'more mistake')} of the format)"
        raise error(findings[0].what, hint=hint, **self.place_of(findings[0]))

    def _question_id_at(self, location: Location) -> str | None:
        """Return the id of the question at a location."""
        found: str | None = None
        value = self.values
        before: str | int | None = None
        for part in location:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                break
            if isinstance(value, Mapping):
                is_question = before == "questions" or "question_text" in value
                identifier = value.get("question_id", value.get("id") if is_question else None)
                found = str(identifier) if identifier is not None else found
            before = part
        return found


def read_records(source: Source, error: type[GraphRAGEvalError], *, what: str) -> RecordFile:
    """Read YAML, JSON or JSON Lines; see ``read_text``."""
    file = read_text(source, error, what=what)
    if file.format == "jsonl":
        values: list[Any] = []
        lines: list[int] = []
        for line, text in _numbered_lines(file.text):
            values.append(parse_json_at(text, error, what=what, path=file.path, line=line))
            lines.append(line)
        return RecordFile(values, file, lines)
    if file.format == "json":
        return RecordFile(parse_json_at(file.text, error, what=what, path=file.path), file)
    read, may_repeat_keys = parse_yaml_noting_keys(file, error, what=what)
    return RecordFile(read, file, may_repeat_keys=may_repeat_keys)


def _numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the non-blank lines of JSON Lines with their numbers from 1."""
    start, line = 0, 1
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        found = text[start:end]
        if found.strip():
            yield line, found
        start, line = end + 1, line + 1


def quoted(text: str) -> str:
    """Return a text in single quotes, so that YAML reads it as a text.

    Example:
        >>> print(quoted("0123"), quoted("it's"))
        '0123' 'it''s'
    """
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


def _described(mistake: Mapping[str, Any], location: Location) -> Finding:
    """Describe a mistake in the format's words, not pydantic's."""
    kind, value = mistake["type"], mistake["input"]
    if not location:
        what = f"a list is needed at the top, not {type(value).__name__}"
        return Finding(what, "Begin each entry with a dash (YAML), or put the entries into [ ] (JSON).")
    name = location[-1]
    if kind == "missing":
        other = _other_name(str(name), value)
        hint = f"Rename {other} to {name}." if other else f"Add {name}."
        return Finding(f"the key {name} is missing", hint, location)
    if kind in {"model_type", "dict_type"}:
        what = f"a mapping of keys to values is needed here, not {type(value).__name__}"
        return Finding(what, "Check the indentation.", location)
    if kind == "list_type":
        is_group = "reference_steps" in location[-2:]
        hint = "Groups of reference steps are a list of lists." if is_group else "Make it a list."
        return Finding(f"a list is needed here, not {type(value).__name__}", hint, location)
    if kind == "string_type":
        hint = "Give a text, in quotes." if value is None or isinstance(value, Mapping | list) else "Put it in quotes."
        return Finding(f"{_shown(value)}{_NO_TEXT}", hint, location)
    return Finding(f"{_shown(value)} is not allowed here", f"{mistake['msg']}.", location)


def _other_name(name: str, record: Any) -> str | None:
    """Return the key in a record that was most likely meant for a missing key."""
    keys = [key for key in record if isinstance(key, str)] if isinstance(record, Mapping) else []
    known = next((other for other in _OTHER_NAMES.get(name, ()) if other in keys), None)
    return known or next(iter(get_close_matches(name, keys, n=1, cutoff=0.8)), None)


def _shown(value: Any) -> str:
    try:
        return f"{value!r:.80}"
    except ValueError:  # an integer with more digits than Python writes
        return f"a very large {type(value).__name__}"


def key_text(location: Location) -> str:
    """Write a location as a path: ``[0].questions[2].id``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")


# --- keys that an object repeats --------------------------------------------------------------------------------------

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:\n]', re.DOTALL)


def repeated_json_keys(texts: Iterable[tuple[int, str]]) -> Iterator[tuple[str, int]]:
    r"""Yield each repeated key of an object, with its line. Each text is given with the line on which it begins.

    A text without such keys (nearly all of them) is only parsed one more time.

    Example:
        >>> list(repeated_json_keys([(1, '{"id": 1,\n "id": 2}')]))
        [('id', 2)]
    """
    for line, text in texts:
        if _has_repeated_keys(text):
            yield from _repeated_keys_in(text, line)


def _has_repeated_keys(text: str) -> bool:
    found = False

    def note(pairs: list[tuple[str, Any]]) -> None:
        nonlocal found
        found = found or len(dict(pairs)) < len(pairs)

    try:
        json.loads(text, object_pairs_hook=note)
    except (ValueError, RecursionError):
        return False
    return found


def _repeated_keys_in(text: str, line: int) -> Iterator[tuple[str, int]]:
    """Scan the tokens of a valid JSON text; a string before a colon is a key of the innermost object."""
    open_objects: list[set[str]] = []
    last, last_line = "", line
    for token in _TOKEN.findall(text):
        if token == "\n":
            line += 1
            continue
        if token in "{[":
            open_objects.append(set())
        elif token in "}]":
            open_objects.pop()
        elif token == ":":
            key = json.loads(last)
            if key in open_objects[-1]:
                yield key, last_line
            open_objects[-1].add(key)
        last, last_line = token, line
