"""Values of a property graph that stand in a cell as a text: JSON, Python's repr, or agtype of Apache AGE."""

import re
from typing import Any, Final

from graphrag_eval_lc.json_values import parse_json
from graphrag_eval_lc.matching.outputs import UnreadableOutput
from graphrag_eval_lc.matching.rows.graph_repr import graph_repr_value
from graphrag_eval_lc.matching.rows.graph_values import STRUCTURES, GraphReader, GraphValue

_LONGEST: Final = 100_000
_BEGINNINGS: Final = {"{": "}", "[": "]", "(": ")", "<": ">"}
_AGTYPE: Final = re.compile(r"(?<=[}\]])::(?:vertex|edge|path)")


def structure_from_text(text: str, reader: GraphReader) -> GraphValue | None:
    """Return the list, map, node, relationship or path that a text writes; None where it writes none.

    Example:
        >>> structure_from_text('{"name": "Oslo"}', GraphReader()), structure_from_text("[sic]", GraphReader())
        ({'name': 'Oslo'}, None)
    """
    text = text.strip()
    end = _BEGINNINGS.get(text[:1])
    if end is None or len(text) > _LONGEST:
        return None
    if text.endswith(("::vertex", "::edge", "::path")):
        text = _AGTYPE.sub("", text)
    if not text.endswith(end):
        return None
    try:
        value = reader.read(_parsed(text))
    except (UnreadableOutput, RecursionError):
        return None
    return value if isinstance(value, STRUCTURES) else None


def _parsed(text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError:
        return graph_repr_value(text)
