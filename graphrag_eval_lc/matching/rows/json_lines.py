"""JSON lines: a row object on each line of a text."""

import re
from collections.abc import Mapping
from typing import Any, Final

from graphrag_eval_lc.json_values import parse_json
from graphrag_eval_lc.matching.outputs import CutOutput, cut_json, cut_mark

_TWO_OBJECTS: Final = re.compile(r"\s{0,100}+\{[^\n]*+\n\s{0,100}+\{")


def may_be_json_lines(text: str) -> bool:
    r"""Return whether a text begins with an object on a line, and another one after it.

    Example:
        >>> may_be_json_lines('{"n": 1}\n{"n": 2}\n'), may_be_json_lines('{"n": 1}\n')
        (True, False)
    """
    return _TWO_OBJECTS.match(text.removeprefix("\ufeff")) is not None


def json_lines(text: str) -> list[Mapping[str, Any]] | None:
    r"""Return the rows of JSON lines; None where a line is something else, or an object that is no row of cells.

    Raises:
        CutOutput: The last line breaks off before its end.

    Example:
        >>> json_lines('{"n": 1}\n{"n": 2}\n')
        [{'n': 1}, {'n': 2}]
    """
    lines = [line for line in text.removeprefix("\ufeff").split("\n") if line.strip()]
    rows: list[Mapping[str, Any]] = []
    for at, line in enumerate(lines, start=1):
        try:
            row = parse_json(line)
        except RecursionError:
            return None
        except ValueError:
            if at == len(lines) and rows and (cut_json(line) or cut_mark(text)):
                raise CutOutput(f"the JSON lines break off in row {at}") from None
            return None
        if not isinstance(row, Mapping) or not row or any(map(_holds_rows, row, row.values())):
            return None
        rows.append(row)
    return rows


_KEYS_OF_RESULTS: Final = frozenset(
    ("head", "results", "bindings", "data", "rows", "columns", "fields", "records", "items", "values", "result", "errors")
)


def _holds_rows(key: str, value: Any) -> bool:
    """Return whether a line is rather results of its own, with rows under this key, than a row with a list or map."""
    return isinstance(value, Mapping | list) and key.lower() in _KEYS_OF_RESULTS
