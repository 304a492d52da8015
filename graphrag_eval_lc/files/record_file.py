"""Records in memory, with the line of each value, and what breaks their format."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import TypeAdapter, ValidationError

from graphrag_eval_lc.deprecation import renamed_attribute
from graphrag_eval_lc.errors import GraphRAGEvalError
from graphrag_eval_lc.files.reading import (
    LineIndex,
    Source,
    TextFile,
    parse_json_at,
    parse_yaml,
    read_text,
)
from graphrag_eval_lc.texts import counted

Location = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """A mistake in a record.

    Attributes:
        what: What is wrong.
        hint: How to put it right.
        location: The keys and indices that lead to it.
        line: The line, if it is known more exactly than by the location.
    """

    what: str
    hint: str
    location: Location = ()
    line: int | None = None
    mend = renamed_attribute("mend", "hint")


class RecordFile:
    """Records and where they come from.

    Attributes:
        values: What the file holds; a list where the format is kept.
        file: The file's text; None for records that were made in Python.
    """

    def __init__(self, values: Any, file: TextFile | None = None, lines: Sequence[int] | None = None) -> None:
        self.values = values
        self.file = file
        self._lines = lines

    @cached_property
    def line_index(self) -> LineIndex | None:
        """The lines of a YAML or JSON file; None for the other formats."""
        return LineIndex(self.file) if self.file and self._lines is None else None

    def line_of(self, location: Location) -> int | None:
        """Return the line of the value at ``location``; None for records made in Python."""
        if self._lines is not None and location and isinstance(location[0], int):
            return self._lines[location[0]]
        return self.line_index.line_of(location) if self.line_index else None

    def place_of(self, finding: Finding) -> dict[str, Any]:
        """Return the place of a finding, as arguments of an exception of this package."""
        return {
            "path": self.file.path if self.file else None,
            "line": finding.line if finding.line is not None else self.line_of(finding.location),
            "question_id": self._question_id_at(finding.location),
            "key": key_text(finding.location) or None,
        }

    def check(self, records: TypeAdapter[Any], error: type[GraphRAGEvalError]) -> None:
        """Raise the first mistake of the format, and say how many more there are."""
        findings = list(format_findings(records, self.values))
        if not findings:
            return
        hint, more = findings[0].hint, len(findings) - 1
        if more:
            hint += f" ({counted(more, 'more mistake')} of the format)"
        raise error(findings[0].what, hint=hint, **self.place_of(findings[0]))

    def _question_id_at(self, location: Location) -> str | None:
        """Return the id of the question that holds a location."""
        found: str | None = None
        value = self.values
        for part in location:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                break
            if isinstance(value, Mapping):
                identifier = value.get("question_id", value.get("id") if "question_text" in value else None)
                found = str(identifier) if identifier is not None else found
        return found


def read_records(source: Source, error: type[GraphRAGEvalError], *, what: str) -> RecordFile:
    """Read YAML, JSON or JSON Lines.

    Args:
        source: A path or a file open for reading.
        error: The exception to raise.
        what: What the file holds, for messages: "reference dataset".

    Raises:
        GraphRAGEvalError: Of the class ``error``; the file cannot be read or parsed.
    """
    file = read_text(source, error, what=what)
    if file.format == "jsonl":
        lines = [(line, text) for line, text in enumerate(file.text.split("\n"), start=1) if text.strip()]
        values = [parse_json_at(text, error, what=what, path=file.path, line=line) for line, text in lines]
        return RecordFile(values, file, [line for line, _ in lines])
    if file.format == "json":
        return RecordFile(parse_json_at(file.text, error, what=what, path=file.path), file)
    return RecordFile(parse_yaml(file, error, what=what), file)


def format_findings(records: TypeAdapter[Any], values: Any) -> Iterator[Finding]:
    """Yield all mistakes of the format, in the order of the records."""
    if not isinstance(values, list):
        yield from _findings_in(records, values, 0)
        return
    for index, value in enumerate(values):  # one at a time, as pydantic makes an object of each
        yield from _findings_in(records, [value], index)


def _findings_in(records: TypeAdapter[Any], values: Any, first: int) -> Iterator[Finding]:
    """Yield the mistakes of some records; the first one has the index ``first``."""
    try:
        records.validate_python(values)
    except ValidationError as problem:
        for mistake in problem.errors(include_url=False, include_context=False):
            index, *inside = mistake["loc"] or (None,)
            yield _described(mistake, (index + first, *inside) if isinstance(index, int) else mistake["loc"])


def _described(mistake: Mapping[str, Any], location: Location) -> Finding:
    """Describe a mistake in the format's words, not pydantic's."""
    kind, value = mistake["type"], mistake["input"]
    if not location:
        what = f"a list is needed at the top, not {type(value).__name__}"
        return Finding(what, "Begin each entry with a dash (YAML), or put the entries into [ ] (JSON).")
    name = location[-1]
    if kind == "missing":
        return Finding(f"the key {name} is missing", f"Add {name}.", location)
    if kind in {"model_type", "dict_type"}:
        what = f"a mapping of keys to values is needed here, not {type(value).__name__}"
        return Finding(what, "Check the indentation.", location)
    if kind == "list_type":
        hint = "Groups of reference steps are a list of lists." if "reference_steps" in location else "Make it a list."
        return Finding(f"a list is needed here, not {type(value).__name__}", hint, location)
    if kind == "string_type":
        return Finding(f"{_shown(value)} is not a text", "Put it in quotes.", location)
    return Finding(f"{_shown(value)} is not allowed here", f"{mistake['msg']}.", location)


def _shown(value: Any) -> str:
    try:
        return f"{value!r:.80}"
    except ValueError:  # an integer with more digits than Python writes
        return f"a very large {type(value).__name__}"


def key_text(location: Location) -> str:
    """Write a location as a path: ``[0].questions[2].id``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")
