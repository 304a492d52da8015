"""Replace outputs in the text of a YAML or JSON dataset, with comments, order and anchors as they are."""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import yaml

from graphrag_eval_lc.errors import DatasetError
from graphrag_eval_lc.files.reading import TextFile, parse_yaml

Location: TypeAlias = tuple[str | int, ...]
"""The keys and indices that lead to a reference step."""

SOURCE_KEY = "output_source"
_LINE_END = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_ANCHOR = re.compile(r"(&\S+\s+|!\S*\s+)*")
_COMMENT = re.compile(r"(?:^|\s)(#.*)$")
_ALIAS = re.compile(r"\s*\*[^\s,\]}]+")
_Loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class NewOutput:
    """A new output of a reference step.

    Attributes:
        step: The place of the step.
        output: The text.
        source: Its origin: endpoint, date and digest.
    """

    step: Location
    output: str
    source: Mapping[str, str]


def with_new_outputs(file: TextFile, outputs: Sequence[NewOutput]) -> str:
    """Return the text of a dataset with other outputs of some reference steps, and where these come from.

    Args:
        file: The dataset: YAML or JSON.
        outputs: The new outputs. Their steps have an ``output``.

    Raises:
        DatasetError: A step has no output, or the text cannot be changed without changing something else, as with an
            anchor that other steps use.
    """
    before = parse_yaml(file, DatasetError, what="reference dataset")
    lines = _Lines(file.text)
    root = yaml.compose(file.text, Loader=_Loader)
    edits = sorted((edit for each in outputs for edit in _edits(each, root, lines, file)), reverse=True)
    text = file.text
    for start, end, new in edits:
        text = text[:start] + new + text[end:]
    after = parse_yaml(TextFile(text, file.path, file.format), DatasetError, what="reference dataset")
    for each in outputs:
        _value_at(before, each.step).update({"output": each.output, SOURCE_KEY: dict(each.source)})
    if before != after:
        hint = "Write the output without an anchor (&) or an alias (*) first."
        raise DatasetError("the outputs cannot be replaced without changing other values", path=file.path, hint=hint)
    return text


def _value_at(value: Any, location: Location) -> Any:
    for key in location:
        value = value[key]
    return value


class _Lines:
    """Finds the index of a YAML mark in a text, and the column of an index."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(found.end() for found in _LINE_END.finditer(text))]

    def at(self, mark: yaml.Mark) -> int:
        """Return the index of a mark."""
        return self._starts[mark.line] + mark.column if mark.line < len(self._starts) else len(self.text)

    def indent(self, index: int) -> int:
        """Return the column of an index."""
        return index - self._starts[bisect_right(self._starts, index) - 1]


def _edits(each: NewOutput, root: yaml.Node | None, lines: _Lines, file: TextFile) -> Iterator[tuple[int, int, str]]:
    """Yield what to replace: start, end, new text."""
    step = _node_at(root, each.step)
    pairs = {key.value: (key, value) for key, value in step.value} if isinstance(step, yaml.MappingNode) else {}
    if "output" not in pairs or not isinstance(step, yaml.MappingNode):
        where = ".".join(map(str, each.step))
        raise DatasetError("the step has no output in the file", path=file.path, key=where)
    source = json.dumps(dict(each.source), ensure_ascii=False)
    key, value = pairs["output"]
    start, end = _span(key, value, lines)
    if step.flow_style or file.format == "json":
        more = "" if SOURCE_KEY in pairs else f", {json.dumps(SOURCE_KEY)}: {source}"
        yield start, end, json.dumps(each.output, ensure_ascii=False) + more
    else:
        column = lines.indent(lines.at(key.start_mark))
        more = "" if SOURCE_KEY in pairs else f"{' ' * column}{SOURCE_KEY}: {source}\n"
        end, comment = _rest_of_line(lines.text, start, end)
        newline = "\r\n" if "\r\n" in lines.text else "\n"
        yield start, end, f"{_block(each.output, column + 2, comment)}\n{more}".replace("\n", newline)
    if SOURCE_KEY in pairs:
        key, value = pairs[SOURCE_KEY]
        start, end = _span(key, value, lines)
        is_line = lines.text[end - 1 : end] == "\n"
        yield start, end, source + ("\n" if is_line else "")


def _node_at(node: yaml.Node | None, location: Location) -> yaml.Node | None:
    for key in location:
        if isinstance(node, yaml.MappingNode):
            node = next((value for name, value in node.value if name.value == str(key)), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
            node = node.value[key]
        else:
            return None
    return node


def _span(key: yaml.Node, value: yaml.Node, lines: _Lines) -> tuple[int, int]:
    """Return the start and end of a value without its anchor and tag; of an alias, those of the alias."""
    after_key = lines.at(key.end_mark)
    colon = lines.text.index(":", after_key) + 1
    if (alias := _ALIAS.match(lines.text, colon)) is not None:
        return alias.start() + len(alias[0]) - len(alias[0].lstrip()), alias.end()
    start = lines.at(value.start_mark)
    anchor = _ANCHOR.match(lines.text, start)
    return (anchor.end() if anchor else start), lines.at(_last(value).end_mark)


def _last(node: yaml.Node) -> yaml.Node:
    """Return the last part of a value, as a block only ends at the beginning of the next thing."""
    if isinstance(node, yaml.MappingNode | yaml.SequenceNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _last(last[1] if isinstance(last, tuple) else last)
    return node


def _rest_of_line(text: str, start: int, end: int) -> tuple[int, str]:
    """Return the beginning of the line after a value, and the comment on the value's first or last line."""
    is_block = text[start : start + 1] in ("|", ">")
    place = text.find("\n", start) if is_block else _line_end(text, end)
    found = _COMMENT.search(text[start if is_block else end : place].rstrip())
    after = end if text[end - 1 : end] == "\n" else min(_line_end(text, end) + 1, len(text))
    return after, "" if found is None else f"  {found[1]}"


def _line_end(text: str, index: int) -> int:
    at = text.find("\n", index)
    return len(text) if at < 0 else at


def _block(text: str, indent: int, comment: str) -> str:
    """Return a text as YAML: in lines if it has some that YAML would keep, else in double quotes."""
    lines = text.split("\n")
    if len(lines) > 1 and lines[0].strip() == lines[0] != "" and lines[-1] and all(map(str.isprintable, lines)):
        return f"|-{comment}\n" + "\n".join(f"{' ' * indent}{line}" if line else "" for line in lines)
    return json.dumps(text, ensure_ascii=False) + comment


def result_text(results: Any) -> str:
    """Return SPARQL JSON results as they are written in a dataset: a line for each row.

    Example:
        >>> rows = [{"n": {"type": "uri", "value": "u"}}]
        >>> print(result_text({"head": {"vars": ["n"]}, "results": {"bindings": rows}}))
        {"head":{"vars":["n"]},"results":{"bindings":[
        {"n":{"type":"uri","value":"u"}}
        ]}}
    """

    def compact(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    bindings = results.get("results", {}).get("bindings") if isinstance(results, Mapping) else None
    if not bindings:
        return compact(results)
    rows = ",\n".join(map(compact, bindings))
    head = {key: value for key, value in results["head"].items() if key == "vars"}
    return f'{{"head":{compact(head)},"results":{{"bindings":[\n{rows}\n]}}}}'
