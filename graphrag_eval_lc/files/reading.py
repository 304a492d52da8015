"""Reads YAML, JSON and JSON Lines, including untrusted files, with errors that name the line; and long cells of CSV."""

import csv
import errno
import json
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import IO, Any, NamedTuple

import yaml

from graphrag_eval_lc.errors import GraphRAGEvalError, no_path
from graphrag_eval_lc.files.opening import is_of_run, open_to_read
from graphrag_eval_lc.json_values import parse_json
from graphrag_eval_lc.texts import shortened

Source = str | PathLike[str] | IO[str] | IO[bytes]
PART_CHARACTERS = 200_000
# Marks of documents and directives. The first line may begin the only document.
_MARK = re.compile(r"^(?:---|\.\.\.|%)", re.MULTILINE)
_ITEM = "\n- "
_LONGEST_CELL = min(sys.maxsize, 2**31 - 1)  # a C long, which has 32 bits on Windows


class TextFile(NamedTuple):
    """A file's text, its path for messages, its format (yaml, json or jsonl), and its bytes if known."""

    text: str
    path: str | None
    format: str
    raw: bytes | None = None


def read_text(source: Source, error: type[GraphRAGEvalError], *, what: str) -> TextFile:
    """Read a whole file as UTF-8, and detect its format by its name or its first character.

    ``what`` says what the file holds, such as "reference dataset", for messages. ``error`` is raised if the file cannot
    be read, is not UTF-8 or is empty.
    """
    name = str(source) if isinstance(source, str | PathLike) else getattr(source, "name", None)
    path = name if isinstance(name, str) else None
    if not isinstance(source, str | PathLike) and not hasattr(source, "read"):
        raise error(f"a {what} cannot be read from {type(source).__name__}", hint="Give a path or an open file.")
    try:
        raw = _bytes_of(Path(source)) if isinstance(source, str | PathLike) else source.read()
    except ValueError as problem:
        if isinstance(source, str | PathLike):
            missing = no_path(source)
            raise error(missing.what, path=missing.path, hint=missing.hint) from problem
        raise
    except (OSError, MemoryError) as problem:
        is_absent = isinstance(problem, FileNotFoundError)
        reason = "it is larger than the memory" if isinstance(problem, MemoryError) else problem.strerror or problem
        raise error(
            f"the {what} cannot be read ({'the file does not exist' if is_absent else reason})",
            path=path,
            hint="Fix the path." if is_absent else "Check the path and the permissions.",
        ) from problem
    text = raw if isinstance(raw, str) else _decoded(raw, path, error, what)
    if not text or text.isspace():
        raise error(f"the {what} is empty", path=path, hint=f"Give a file that holds a {what}.")
    return TextFile(text, path, _format_of(text, path), raw if isinstance(raw, bytes) else None)


def _bytes_of(path: Path) -> bytes:
    with open_to_read(path) if is_of_run(path) else path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if (stat.S_ISBLK(mode) or stat.S_ISCHR(mode)) and not file.isatty() and file.read(1):
            raise OSError(errno.EINVAL, "it is a device, not a file")  # /dev/zero has no end
        return file.read()


def _decoded(raw: bytes, path: str | None, error: type[GraphRAGEvalError], what: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise error(
            f"the {what} is not UTF-8: byte 0x{raw[problem.start]:02x} cannot be read",
            path=path,
            line=raw.count(b"\n", 0, problem.start) + 1,
            hint="Save the file as UTF-8.",
        ) from problem


_FORMATS = {".yaml": "yaml", ".yml": "yaml", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json"}


def _format_of(text: str, path: str | None) -> str:
    suffix = Path(path).suffix.lower() if path else ""
    if suffix in _FORMATS:
        return _FORMATS[suffix]
    text = text.lstrip()
    if not text.startswith("{"):
        return "json" if text.startswith("[") else "yaml"
    try:
        parse_json(text.split("\n", 1)[0])
    except (ValueError, RecursionError):
        return "json"
    return "jsonl"


def parse_json_at(text: str, error: type[GraphRAGEvalError], *, what: str, path: str | None, line: int = 1) -> Any:
    """Parse one JSON value that begins on a line of a file; the error names the line at which the parser stopped."""
    try:
        return parse_json(text)
    except json.JSONDecodeError as problem:
        raise error(
            f"the {what} is not valid JSON: {problem.msg}",
            path=path,
            line=line + problem.lineno - 1,
            hint="Fix the JSON here; a line that ends too early was cut off while it was written.",
        ) from problem
    except (RecursionError, ValueError) as problem:
        raise error(
            f"the {what} cannot be read: it is nested too deeply or holds a number with too many digits",
            path=path,
            line=line,
            hint="Check this value.",
        ) from problem


# libyaml recurses in C and crashes the process when the stack is full; records have fewer than 20 levels.
MAX_DEPTH = 200
# A dataset of 100,000 questions has about ten million values; nested aliases quickly reach billions.
MAX_EXPANDED_VALUES = 50_000_000
MAX_MERGED_KEYS = 100_000
_LONGEST_KEY = 40

_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
# Each block level needs a column, so only a line that begins with that many blanks and indicators can be too deep.
_INDENTS = bytes.maketrans(b"\t?:-", b"    ")

_MERGE_TAG = "tag:yaml.org,2002:merge"
_YAML_BASE: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _RecordLoader(_YAML_BASE):  # type: ignore[misc, valid-type]
    """PyYAML's safe loader (in C if available), which keeps times as texts, as in JSON."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own class attribute
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in _YAML_BASE.yaml_implicit_resolvers.items()
    }

    repeats_keys = False  # set on a subclass that is made for one file

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Construct a mapping; record on the class if it has repeated or merged keys."""
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        if len(mapping) < len(node.value):
            type(self).repeats_keys = True
        return mapping

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Resolve ``<<`` keys, up to a limit, as they may double a mapping at each level.

        A mapping's own keys override merged ones, and the first merged mapping overrides later ones
        (https://yaml.org/type/merge.html). In PyYAML 6.0.4 the last one wins.
        """
        merged = [value for key, value in node.value if key.tag == _MERGE_TAG]
        if not merged:
            super().flatten_mapping(node)
            return
        own = node.value = [pair for pair in node.value if pair[0].tag != _MERGE_TAG]
        pairs: list[tuple[yaml.Node, yaml.Node]] = []
        for mapping in (each for value in merged for each in reversed(_mappings_of(value))):
            self.flatten_mapping(mapping)
            pairs.extend(mapping.value)
            if len(pairs) > MAX_MERGED_KEYS:
                raise yaml.constructor.ConstructorError(
                    None, None, "merge keys (<<) make this mapping too large", node.start_mark
                )
        node.value = pairs + own
        super().flatten_mapping(node)


def _mappings_of(value: yaml.Node) -> Sequence[yaml.MappingNode]:
    """Return the mappings that a ``<<`` key merges: one, or those in a list."""
    named: list[Any] = value.value if isinstance(value, yaml.SequenceNode) else [value]
    for each in named:
        if not isinstance(each, yaml.MappingNode):
            what = f"a merge key (<<) needs a mapping or a list of mappings, not a {each.id}"
            raise yaml.constructor.ConstructorError(None, None, what, each.start_mark)
    return named


def _text(loader: _RecordLoader, node: yaml.ScalarNode) -> str:
    """Return a text; short texts, such as keys, are interned to save memory."""
    value = str(loader.construct_scalar(node))
    return sys.intern(value) if len(value) <= _LONGEST_KEY else value


def _reading(kind: str) -> Callable[[_RecordLoader, yaml.ScalarNode], Any]:
    """Return a function that reads numbers or booleans as the safe loader does; its errors name the line."""
    construct = getattr(_YAML_BASE, f"construct_yaml_{kind}")

    def read(loader: _RecordLoader, node: yaml.ScalarNode) -> Any:
        try:
            return construct(loader, node)
        except (ValueError, LookupError, OverflowError) as problem:
            what = f"{shortened(str(node.value), _LONGEST_KEY)} cannot be read as {kind}"
            raise yaml.constructor.ConstructorError(None, None, what, node.start_mark) from problem

    return read


def _refused(_: _RecordLoader, node: yaml.Node) -> None:
    """Raise for types that JSON does not have, such as bytes."""
    kind = node.tag.rpartition(":")[2]
    what = f"the tag !!{kind} is not supported; write a text, number, list or mapping without it"
    raise yaml.constructor.ConstructorError(None, None, what, node.start_mark)


_RecordLoader.add_constructor("tag:yaml.org,2002:str", _text)
_RecordLoader.add_constructor("tag:yaml.org,2002:timestamp", _text)
for _tag in ("int", "float", "bool"):
    _RecordLoader.add_constructor(f"tag:yaml.org,2002:{_tag}", _reading(_tag))
for _tag in ("binary", "set", "omap", "pairs"):
    _RecordLoader.add_constructor(f"tag:yaml.org,2002:{_tag}", _refused)


def parse_yaml(file: TextFile, error: type[GraphRAGEvalError], *, what: str) -> Any:
    """Parse YAML into dicts, lists, strings, numbers, booleans and None; an error names the line.

    It is also an error if the text is nested too deeply, or if its aliases expand to more than fits into memory.
    """
    return parse_yaml_noting_keys(file, error, what=what)[0]


def parse_yaml_noting_keys(file: TextFile, error: type[GraphRAGEvalError], *, what: str) -> tuple[Any, bool]:
    """Parse YAML as ``parse_yaml`` does; also return whether a mapping may repeat a key."""
    loader: type[_RecordLoader] = type("_Loader", (_RecordLoader,), {})
    try:
        check_yaml_depth(file, error, what)
        value = list_in_parts(file.text, loader)
        if value is None:
            value = yaml.load(file.text if file.raw is None else file.raw, Loader=loader)
    except GraphRAGEvalError:
        raise
    except yaml.YAMLError as problem:
        raise _syntax_error(problem, file, error, what) from problem
    except Exception as problem:  # PyYAML may raise any exception for a value that does not fit its tag
        raise error(f"the {what} cannot be read: {problem!s:.200}", path=file.path, hint="Check the YAML.") from problem
    if "*" in file.text and "&" in file.text:
        _check_aliases(value, file, error, what)
    return value, loader.repeats_keys


# The tag of texts, and the styles of scalars that are texts whatever they look like.
_TEXT_TAG = "tag:yaml.org,2002:str"
_QUOTES = ("'", '"', "|", ">")


class LineIndex:
    """Finds the line on which a value of a YAML or JSON file begins; only for messages, as it parses the text again."""

    def __init__(self, file: TextFile) -> None:
        try:
            self._root: yaml.Node | None = yaml.compose(file.text, Loader=_RecordLoader)
        except yaml.YAMLError:
            self._root = None

    def line_of(self, location: Sequence[str | int]) -> int | None:
        """Return the line of the value at ``location`` (keys and indices), or of its nearest parent."""
        node = self._root
        for part in location:
            child = _child(node, part)
            if child is None:
                break
            node = child
        return node.start_mark.line + 1 if node is not None and node.start_mark else None

    def written(self, location: Sequence[str | int]) -> str | None:
        """Return the source text of the value at ``location`` if it is unquoted and YAML does not read it as a string.

        Example:
            >>> LineIndex(TextFile("- id: 0123", None, "yaml")).written((0, "id"))
            '0123'
        """
        node = self._root
        for part in location:
            node = _child(node, part)
        is_plain = isinstance(node, yaml.ScalarNode) and node.style not in _QUOTES
        return str(node.value) if is_plain and node is not None and node.tag != _TEXT_TAG else None

    def list_by_key(self, name: str, length: int) -> None:
        """Treat a mapping of ids to records as a list of records with their ids under ``name``.

        A mapping whose length differs from ``length``, for example because it repeats keys, is not changed.
        """
        root = self._root
        if not isinstance(root, yaml.MappingNode) or len(root.value) != length:
            return
        named = yaml.ScalarNode(_TEXT_TAG, name)
        records = [
            yaml.MappingNode(
                value.tag,
                [*(value.value if isinstance(value, yaml.MappingNode) else ()), (named, key)],
                start_mark=key.start_mark,
            )
            for key, value in root.value
        ]
        self._root = yaml.SequenceNode("tag:yaml.org,2002:seq", records, start_mark=root.start_mark)

    def repeated_keys(self) -> Iterator[tuple[str, int]]:
        """Yield each repeated key of a mapping, with its second line; YAML keeps only the last value."""
        nodes = [self._root] if self._root is not None else []
        seen_nodes: set[int] = set()
        while nodes:
            node = nodes.pop()
            if id(node) in seen_nodes or not isinstance(node, yaml.CollectionNode):
                continue
            seen_nodes.add(id(node))
            if isinstance(node, yaml.SequenceNode):
                nodes.extend(reversed(node.value))
                continue
            keys: set[str] = set()
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode) and key.value in keys and key.start_mark:
                    yield key.value, key.start_mark.line + 1
                if isinstance(key, yaml.ScalarNode):
                    keys.add(key.value)
            nodes.extend(value for _, value in reversed(node.value))


def line_of(file: TextFile, location: Sequence[str | int]) -> int | None:
    """Return ``LineIndex.line_of``, for a single message."""
    return LineIndex(file).line_of(location)


def _child(node: yaml.Node | None, part: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part]  # type: ignore[no-any-return]
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == part:
                return value  # type: ignore[no-any-return]
    return None


def _syntax_error(
    problem: yaml.YAMLError, file: TextFile, error: type[GraphRAGEvalError], what: str
) -> GraphRAGEvalError:
    mark = getattr(problem, "problem_mark", None)
    text = getattr(problem, "problem", None) or str(problem).split("\n", 1)[0]
    return error(
        f"the {what} is not valid YAML: {text}",
        path=file.path,
        line=mark.line + 1 if mark else None,
        hint="Check the indentation, the quotes and the tags around this place.",
    )


def check_yaml_depth(file: TextFile, error: type[GraphRAGEvalError], what: str) -> None:
    """Raise if YAML is nested so deeply that libyaml may crash the process; the error names the line."""
    text = file.text.encode("utf-8", "replace") if file.raw is None else file.raw
    if b" " * MAX_DEPTH not in text.translate(_INDENTS) and _bracket_depth(text) <= MAX_DEPTH:
        return
    is_too_deep, mark = False, None
    depth = 0
    try:
        for event in yaml.parse(file.text, Loader=_RecordLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                is_too_deep, mark = True, event.start_mark
                break
    except yaml.YAMLError as problem:
        if "nesting depth" not in str(problem):  # newer versions of libyaml have a limit
            raise
        is_too_deep, mark = True, getattr(problem, "problem_mark", None)
    if is_too_deep:
        raise error(
            f"the {what} is nested more than {MAX_DEPTH} levels deep",
            path=file.path,
            line=mark.line + 1 if mark else None,
            hint="Look for brackets or dashes that open and never close.",
        )


def _bracket_depth(text: bytes) -> int:
    """Return an upper bound of the depth of brackets, including those inside strings.

    Innermost pairs are removed level by level. The remaining brackets, which have no partner, may all be nested.
    """
    brackets = text.translate(None, _NO_BRACKETS)
    depth = 0
    while depth <= MAX_DEPTH:
        inner = brackets.replace(b"[]", b"").replace(b"{}", b"")
        if len(inner) == len(brackets):
            return depth + inner.count(b"[") + inner.count(b"{")
        brackets = inner
        depth += 1
    return depth


def _check_aliases(value: Any, file: TextFile, error: type[GraphRAGEvalError], what: str) -> None:
    """Raise if aliases contain themselves, or would fill the memory when they are expanded."""
    sizes: dict[int, int | None] = {}
    stack: list[tuple[Any, bool]] = [(value, False)]
    while stack:
        item, seen = stack.pop()
        children = item.values() if isinstance(item, dict) else item if isinstance(item, list) else None
        if children is None or (not seen and sizes.get(id(item)) is not None):
            continue
        if not seen:
            if id(item) in sizes:
                raise error(f"the {what} has an alias that contains itself", path=file.path, hint="Write it out.")
            sizes[id(item)] = None
            stack.append((item, True))
            stack.extend((child, False) for child in children)
            continue
        size = 1 + sum(sizes.get(id(child)) or 1 for child in children)
        if size > MAX_EXPANDED_VALUES:
            raise error(
                f"the {what} has aliases that expand to more than {MAX_EXPANDED_VALUES:,} values",
                path=file.path,
                hint="Write the values out, or use fewer aliases of aliases.",
            )
        sizes[id(item)] = size


def list_in_parts(text: str, loader: type[yaml.SafeLoader]) -> list[Any] | None:
    r"""Read a YAML list whose items begin at the start of a line, a part at a time.

    PyYAML's nodes need many times the memory of the values, so a part has only some items of the list. Returns None if
    the text must be read as a whole: it is short or not such a list, or a part is not valid YAML alone. That happens if
    an item has a line that looks like the next item, as a quoted text can, or refers to an anchor in an earlier part.

    Example:
        >>> len(list_in_parts(f"- {'a' * 1_000}\n" * 250, yaml.SafeLoader))
        250
        >>> list_in_parts("- a", yaml.SafeLoader) is None
        True
    """
    if len(text) <= PART_CHARACTERS or _MARK.search(text, 1) is not None:
        return None
    items: list[Any] = []
    start = 0
    try:
        while start < len(text):
            end = text.find(_ITEM, start + PART_CHARACTERS) + 1 or len(text)
            read = yaml.load(text[start:end], Loader=loader)
            start = end
            if read is not None and not isinstance(read, list):
                return None
            items += read or ()  # None if the part has only comments
    except Exception:  # PyYAML may raise any exception; reading the whole text reports it with its line
        return None
    return items or None


@contextmanager
def cells_of_any_length() -> Iterator[None]:
    """Let csv read cells beyond its 128 KiB, such as query results; restore the previous limit at the end."""
    earlier = csv.field_size_limit(_LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(earlier)
