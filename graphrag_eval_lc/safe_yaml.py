"""Parsing YAML that may come from anywhere: nothing is run, and no trick with depth or aliases holds it up."""

import re
from collections.abc import Sequence
from typing import Any

import yaml

from graphrag_eval_lc.errors import GraphRAGEvalError
from graphrag_eval_lc.reading import TextFile

# libyaml recurses in C for each level and ends the process when the stack is full; records have under 20.
MAX_DEPTH = 200
# A dataset of 100,000 questions has some ten million values; aliases of aliases soon stand for billions.
MAX_EXPANDED_VALUES = 50_000_000
MAX_MERGED_KEYS = 100_000

# A block level takes a column, so only a line with this much indentation or this many dashes can be too deep.
_DEEP_BLOCK = re.compile(rf"^[ \t?:-]{{{MAX_DEPTH},}}", re.MULTILINE)
_BRACKET = re.compile(r"[\[\]{}]")

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
        value = yaml.load(file.text, Loader=_RecordLoader)
    except yaml.YAMLError as problem:
        raise _syntax_error(problem, file, error, what) from problem
    except (RecursionError, ValueError) as problem:
        raise error(f"the {what} cannot be read: {problem}", path=file.path, mend="Check the YAML.") from problem
    if "*" in file.text and "&" in file.text:
        _check_aliases(value, file, error, what)
    return value


def line_of(file: TextFile, location: Sequence[str | int]) -> int | None:
    """Find the line on which the value at ``location`` (keys and indices) begins, or its nearest parent's.

    It parses the text a second time, so it is for error messages only. JSON is found too, as a kind of YAML.
    """
    try:
        node = yaml.compose(file.text, Loader=_RecordLoader)
    except yaml.YAMLError:
        return None
    for part in location:
        child = _child(node, part)
        if child is None:
            break
        node = child
    return node.start_mark.line + 1 if node is not None else None


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
    if not (_DEEP_BLOCK.search(file.text) or _bracket_depth(file.text) > MAX_DEPTH):
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


def _bracket_depth(text: str) -> int:
    """Give an upper bound of the depth by brackets alone, those inside of strings included."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return 0
    deepest = depth = 0
    for match in _BRACKET.finditer(text):
        if match.group() in "[{":
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth = max(0, depth - 1)
    return deepest


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
