"""Mending the journal that an earlier session left: lines that cannot be read are set aside, never dropped."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from graphrag_eval_lc.append_file import AppendFile
from graphrag_eval_lc.file_problems import cannot_read, cannot_write
from graphrag_eval_lc.run_folder.atomic import replace_file, sync
from graphrag_eval_lc.run_folder.journal_lines import JournalLine


def torn_file(journal: Path) -> Path:
    """Give the file to which the lines of a journal that cannot be read are moved."""
    return journal.with_name(f"{journal.name}.torn")


def set_aside(journal: Path, lines: Sequence[JournalLine], good_length: int) -> list[str]:
    """Move lines that cannot be read out of a journal.

    Args:
        journal: The journal; nobody else may have it open.
        lines: The lines that cannot be read, in their order.
        good_length: Where the last line that can be read ends, in bytes: what follows is only cut off.

    Returns:
        A sentence for each line: which it was, and where it is now.

    Raises:
        RunFolderError: A file cannot be read or written; no byte is lost then.
    """
    target = torn_file(journal)
    torn = AppendFile(target)
    try:
        for line in lines:
            torn.append(_bytes_of(journal, line).rstrip(b"\n") + b"\n")
        sync(torn.descriptor)
        if lines[0].offset >= good_length:
            os.truncate(journal, good_length)
        else:
            replace_file(journal, _bytes_without(journal, lines))
    except OSError as problem:
        raise cannot_write(journal, problem) from problem
    finally:
        torn.close()
    return [_sentence(line, target) for line in lines]


def end_last_line(journal: Path) -> None:
    """Add the newline that a last line lacks, so that the next record gets a line of its own.

    Raises:
        RunFolderError: The file cannot be read or written.
    """
    try:
        with journal.open("rb") as file:
            length = file.seek(0, os.SEEK_END)
            file.seek(max(length - 1, 0))
            is_ended = length == 0 or file.read(1) == b"\n"
    except OSError as problem:
        raise cannot_read(journal, problem) from problem
    if not is_ended:
        appended = AppendFile(journal)
        appended.append(b"\n")
        appended.close()


def _bytes_of(journal: Path, line: JournalLine) -> bytes:
    with journal.open("rb") as file:
        file.seek(line.offset)
        return file.read(line.length)


def _bytes_without(journal: Path, lines: Sequence[JournalLine]) -> Iterator[bytes]:
    left_out = {line.number for line in lines}
    with journal.open("rb") as file:
        yield from (line for number, line in enumerate(file, start=1) if number not in left_out)


def _sentence(line: JournalLine, target: Path) -> str:
    why = "holds no response" if line.has_newline else "was cut off while it was written"
    return f"Line {line.number} ({line.length:,} bytes) {why}; it stands in {target} now."
