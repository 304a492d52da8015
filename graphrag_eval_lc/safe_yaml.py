"""Parsing YAML that may come from anywhere: nothing is run, and no trick with depth or aliases holds it up."""

import codecs
import re
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from graphrag_eval_lc.errors import GraphRAGEvalError
from graphrag_eval_lc.reading import TextFile

# libyaml recurses in C for each level and ends the process when the stack is full; records have under 20.
MAX_DEPTH = 200
# A dataset of 100,000 questions has some ten million values; aliases of aliases soon stand for billions.
MAX_EXPANDED_VALUES = 50_000_000
MAX_MERGED_KEYS = 100_000

_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
# A block level takes a column, so only a line that begins with as many blanks and indicators can be too deep. One
# pattern for the last byte of each of YAML's line breaks: with a fixed beginning they are found several times as fast.
_LINE_BREAKS = (b"\n", b"\r", b"\x85", b"\xa8", b"\xa9")
_DEEP_LINE = rb"[ \t?:-]{%d}" % MAX_DEPTH
_DEEP_LINES = {ending: re.compile(re.escape(ending) + _DEEP_LINE) for ending in _LINE_BREAKS}

_YAML_BASE: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _RecordLoader(_YAML_BASE):  # type: ignore[misc, valid-type]
    """PyYAML's safe loader (in C where it is built), with times left as the text that they are in JSON."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own class attribute
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in _YAML_BASE.yaml_implicit_resolvers.items()
    }

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Resolve ``<<`` keys, which may double a mapping at each level, up to a bound."""
        super().flatten_mapping(node)
        if len(node.value) > MAX_MERGED_KEYS:
            raise yaml.constructor.ConstructorError(
                None, None, "merge keys (<<) make this mapping too large", node.start_mark
            )


def parse_yaml(file: TextFile, error: type[GraphRAGEvalError], *, what: str) -> Any:
    """Parse YAML into dicts, lists, strings, numbers, booleans and None.

    Args:
        file: The text and its name.
        error: The exception to raise.
        what: What the file holds, for messages: "reference dataset".

    Raises:
        GraphRAGEvalError: Of the class given; with the line where the parser stopped. Also where the text is
            nested too deeply or its aliases stand for more than memory holds.
    """
    try:
        _check_depth(file, error, what)
        value = yaml.load(file.text if file.raw is None else file.raw, Loader=_RecordLoader)
    except GraphRAGEvalError:
        raise
    except yaml.YAMLError as problem:
        raise _syntax_error(problem, file, error, what) from problem
    except Exception as problem:  # of values that do not fit their tags PyYAML raises what comes
        raise error(f"the {what} cannot be read: {problem!s:.200}", path=file.path, mend="Check the YAML.") from problem
    if "*" in file.text and "&" in file.text:
        _check_aliases(value, file, error, what)
    return value


class LineIndex:
    """The lines on which the values of a YAML or JSON file begin; for messages only.

    It parses the text a second time, so it is made when there is something to tell.

    Args:
        file: The file; JSON is read too, as a kind of YAML.
    """

    def __init__(self, file: TextFile) -> None:
        try:
            self._root: yaml.Node | None = yaml.compose(file.text, Loader=_RecordLoader)
        except yaml.YAMLError:
            self._root = None

    def line_of(self, location: Sequence[str | int]) -> int | None:
        """Give the line of the value at ``location`` (keys and indices), or of its nearest parent."""
        node = self._root
        for part in location:
            child = _child(node, part)
            if child is None:
                break
            node = child
        return node.start_mark.line + 1 if node is not None and node.start_mark else None

    def repeated_keys(self) -> Iterator[tuple[str, int]]:
        """Give each key that stands twice in one mapping, with its second line; YAML keeps only the last value."""
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
    """Find the line on which the value at ``location`` begins, or its nearest parent's; for a single message."""
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
        mend="Check the indentation, the quotes and the tags around this place.",
    )


def _check_depth(file: TextFile, error: type[GraphRAGEvalError], what: str) -> None:
    text = file.text.encode("utf-8", "replace") if file.raw is None else file.raw
    if not _has_deep_line(text) and _bracket_depth(text) <= MAX_DEPTH:
        return
    depth = 0
    for event in yaml.parse(file.text, Loader=_RecordLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise error(
                    f"the {what} is nested more than {MAX_DEPTH} levels deep",
                    path=file.path,
                    line=event.start_mark.line + 1 if event.start_mark else None,
                    mend="Look for brackets or dashes that open and never close.",
                )
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _has_deep_line(text: bytes) -> bool:
    if re.match(_DEEP_LINE, text.removeprefix(codecs.BOM_UTF8)):
        return True
    return any(ending in text and pattern.search(text) for ending, pattern in _DEEP_LINES.items())


def _bracket_depth(text: bytes) -> int:
    """Give an upper bound of the depth by brackets alone, those inside of strings included.

    Innermost pairs are taken away level by level; brackets that find no partner may all be open at once.
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
    """Refuse values that contain themselves, or that would fill the memory when they are written out."""
    sizes: dict[int, int | None] = {}
    stack: list[tuple[Any, bool]] = [(value, False)]
    while stack:
        item, seen = stack.pop()
        children = item.values() if isinstance(item, dict) else item if isinstance(item, list) else None
        if children is None or (not seen and sizes.get(id(item)) is not None):
            continue
        if not seen:
            if id(item) in sizes:
                raise error(f"the {what} has an alias that contains itself", path=file.path, mend="Write it out.")
            sizes[id(item)] = None
            stack.append((item, True))
            stack.extend((child, False) for child in children)
            continue
        size = 1 + sum(sizes.get(id(child)) or 1 for child in children)
        if size > MAX_EXPANDED_VALUES:
            raise error(
                f"the {what} has aliases that stand for more than {MAX_EXPANDED_VALUES:,} values",
                path=file.path,
                mend="Write the values out, or use fewer aliases of aliases.",
            )
        sizes[id(item)] = size
