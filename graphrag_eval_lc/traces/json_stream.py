"""A streaming JSON reader: the caller chooses which lists and objects to enter; anything else is read as one value."""

import json
from collections.abc import Iterator
from typing import IO, Any, NoReturn

from graphrag_eval_lc.errors import ResponsesError

_CHUNK = 1 << 20
_BLANKS = " \t\n\r"
_DECODER = json.JSONDecoder()
# A parser that fails this close to the end of the buffer may only need more input: -Infinity, escaped surrogates.
_NEAR_THE_END = 12
_SIGNS = frozenset(".eE+-")
_LONGEST_SIGN = 2


class JsonStream:
    """The JSON values of a file, one after the other, with or without lines between them.

    Memory holds only the value that is being read.

    Args:
        file: The file, open for reading as text.
        path: Its name, for messages.

    Example:
        >>> import io
        >>> stream = JsonStream(io.StringIO('{"a": [1, 2]} {"b": 3}'), "x.json")
        >>> [(key, stream.value()) for _ in stream.documents() for key in stream.members()]
        [('a', [1, 2]), ('b', 3)]
    """

    def __init__(self, file: IO[str], path: str) -> None:
        self._file = file
        self._path = path
        self._text = ""
        self._at = 0
        self._lines = 1
        self._has_ended = False

    def documents(self) -> Iterator[None]:
        """Yield before each value at the top; the caller reads it with one of the other methods.

        Raises:
            ResponsesError: The file cannot be read.
        """
        while self.peek():
            yield

    def peek(self) -> str:
        """Return the first character of what comes next; an empty text at the end."""
        while True:
            text, at = self._text, self._at
            while at < len(text):
                if text[at] not in _BLANKS:
                    self._at = at
                    return text[at]
                at += 1
            self._at = at
            if not self._read_more():
                return ""

    def items(self) -> Iterator[None]:
        """Enter a list, and yield before each of its elements; the caller reads it."""
        self._take("[")
        if self.peek() == "]":
            self._at += 1
            return
        while True:
            yield
            if self._take(",]") == "]":
                return

    def members(self) -> Iterator[str]:
        """Enter an object, and yield each key; the caller reads its value."""
        self._take("{")
        if self.peek() == "}":
            self._at += 1
            return
        while True:
            if self.peek() != '"':
                self._refuse("a key in double quotes is missing")
            key = self.value()
            self._take(":")
            yield key
            if self._take(",}") == "}":
                return

    def value(self) -> Any:
        """Read the next value as a whole.

        Raises:
            ResponsesError: It is not JSON, or is cut off.
        """
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as problem:
                is_cut = problem.msg.startswith("Unterminated string") or (
                    problem.pos >= len(self._text) - _NEAR_THE_END
                )
                if is_cut and self._read_more():
                    continue
                if is_cut:
                    self._refuse("it ends in the middle of a value", problem.pos)
                self._refuse(problem.msg, problem.pos)
            except (RecursionError, ValueError):  # ValueError: a number with more digits than Python reads
                self._refuse("a value is nested too deeply or has a number with too many digits")
            following = self._text[end : end + _LONGEST_SIGN + 1]
            may_go_on = len(following) <= _LONGEST_SIGN and _SIGNS.issuperset(following)  # a number, as 1 of 1e+5
            if not may_go_on or not self._read_more():
                self._at = end
                return value

    def _take(self, allowed: str) -> str:
        found = self.peek()
        if not found:
            self._refuse("it ends in the middle of a value")
        if found not in allowed:
            self._refuse(f"{' or '.join(allowed)} is missing")
        self._at += 1
        return found

    def _read_more(self) -> bool:
        """Read more input, and return whether there was any; long values are read in ever larger parts."""
        if self._has_ended:
            return False
        rest = len(self._text) - self._at
        try:
            more = self._file.read(max(_CHUNK, rest))
        except UnicodeDecodeError as problem:
            raise ResponsesError(
                f"the traces are not UTF-8: byte 0x{problem.object[problem.start]:02x} cannot be read",
                path=self._path,
                hint="Traces are read as JSON: export them as JSON (not as protobuf), in UTF-8.",
            ) from problem
        except (OSError, EOFError) as problem:
            raise ResponsesError(
                f"the traces cannot be read ({problem})", path=self._path, hint="Check the path and the permissions."
            ) from problem
        self._lines += self._text.count("\n", 0, self._at)
        self._text = self._text[self._at :] + more
        self._at = 0
        self._has_ended = not more
        return bool(more)

    def _refuse(self, what: str, at: int | None = None) -> NoReturn:
        line = self._lines + self._text.count("\n", 0, self._at if at is None else at)
        raise ResponsesError(
            f"the traces are not valid JSON: {what}",
            path=self._path,
            line=line,
            hint="Fix the JSON here; a file that ends too early was cut off while it was written.",
        )
