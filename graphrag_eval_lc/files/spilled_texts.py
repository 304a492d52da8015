"""Texts that are gathered one by one and read in their order; beyond a megabyte they are on the disk."""

import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path

from graphrag_eval_lc.errors import cannot_write

_IN_MEMORY = 1_000_000


class SpilledTexts:
    """Texts without line breaks, in a temporary file that nobody else can open and that is gone with the object.

    Example:
        >>> texts = SpilledTexts()
        >>> texts.add("one"), texts.add("two"), list(texts), len(texts)
        (None, None, ['one', 'two'], 2)
    """

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115  # it is closed with the object
        self._number = 0
        weakref.finalize(self, self._file.close)

    def __len__(self) -> int:
        return self._number

    def add(self, text: str | bytes) -> None:
        """Add a text; as bytes in UTF-8.

        Raises:
            RunFolderError: It cannot be written.
        """
        line = text.encode("utf-8") if isinstance(text, str) else text
        try:
            self._file.write(line + b"\n")
        except OSError as problem:
            raise cannot_write(Path(tempfile.gettempdir()), problem) from problem
        self._number += 1

    def __iter__(self) -> Iterator[str]:
        """Yield the texts; none may be added any more.

        Raises:
            RunFolderError: They cannot be written, as the disk is full.
        """
        try:
            self._file.seek(0)
            for line in self._file:
                yield line[:-1].decode("utf-8")
        except OSError as problem:
            raise cannot_write(Path(tempfile.gettempdir()), problem) from problem
