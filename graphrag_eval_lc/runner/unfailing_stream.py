"""A text stream that nothing written to it can break, since a lost terminal must not end a run."""

import contextlib
from typing import TextIO


class UnfailingStream:
    """Hand text on to a stream, and drop what cannot be written: the terminal is gone, the disk is full, it is closed.

    Args:
        stream: Where the text goes. Letters that its encoding lacks are escaped.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @property
    def encoding(self) -> str:
        """The encoding of the stream."""
        return getattr(self._stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        """Write what can be written, and give the number of letters as if it all was."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text.encode(self.encoding, "backslashreplace").decode(self.encoding))
        return len(text)

    def flush(self) -> None:
        """Give what was written to the system."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()

    def isatty(self) -> bool:
        """Give whether a person may be reading."""
        with contextlib.suppress(OSError, ValueError):
            return self._stream.isatty()
        return False

    def fileno(self) -> int:
        """Give the stream's number, which rich asks for on Windows."""
        return self._stream.fileno()
