"""GitHub-flavoured Markdown: texts that cannot break or inject anything, and tables that fit into a size."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from graphrag_eval_lc.texts import counted, one_line

LONGEST_TEXT: Final = 300
LONGEST_NAME: Final = 120

# Characters with a meaning anywhere on a line for GitHub or GitLab: code, links, tables, HTML, formulas, mentions.
_SPECIAL = re.compile(r"[&<>|`\\*\[\]~$#@{}]")
# An underscore after a letter begins nothing; leaving it alone keeps names readable.
_EMPHASIS = re.compile(r"(?<![^\W_])_")
# Addresses, emoji and commands of continuous integration (::error::); escaping one character of each is enough.
_ADDRESS = re.compile(r"\A:(?=:)|:(?=//)|(?<=www)\.|:(?=[\w+-]+:)", re.IGNORECASE)
# GitHub finds mentions and issue numbers in the rendered text, so an entity alone does not prevent them.
_REFERENCE = re.compile(r"(@)(?=[\w-])|([#!])(?=\d)")
_NO_WIDTH: Final = "\u200b"


def md_text(text: object, length: int = LONGEST_TEXT) -> str:
    r"""Return a text on one line, cut at ``length``, escaped so that Markdown shows it literally."""
    marked = _REFERENCE.sub(lambda found: f"{found[0]}{_NO_WIDTH}", one_line(text, length))
    return _escaped(marked).replace(_NO_WIDTH, "&#8203;")


def md_code(text: object, length: int = LONGEST_NAME) -> str:
    """Return a text as inline code, such as an id: it mentions nobody, and it can be copied."""
    return f"<code>{_escaped(one_line(text, length))}</code>"


def _escaped(text: str) -> str:
    for pattern in (_SPECIAL, _EMPHASIS, _ADDRESS):  # in this order: no pattern matches what an earlier one inserted
        text = pattern.sub(lambda found: f"&#{ord(found[0])};", text)
    return text


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a document: lines that stay together, rows of which the last may be left out, and closing lines."""

    head: Sequence[str]
    rows: Sequence[str] = ()
    tail: Sequence[str] = ()


def md_table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> tuple[list[str], list[str]]:
    """Return the first two lines of a table, and its rows. Cells are Markdown; after the first ``left``, numbers."""
    lines = [":---" if index < left else "---:" for index in range(len(headings))]
    head, rule, *body = (f"| {' | '.join(cells)} |" for cells in (headings, lines, *rows))
    return [head, rule], body


_RESERVED: Final = 400


def fitted(blocks: Iterable[Block], most_bytes: int) -> str:
    """Return blocks as a document of at most ``most_bytes`` bytes; a note says what is left out.

    Rows are left out from the end, and so are blocks that do not fit. The first block should fit.
    """
    left = most_bytes - _RESERVED
    parts: list[str] = []
    dropped = 0
    for block in blocks:
        head, tail = ("".join(f"{line}\n" for line in lines) for lines in (block.head, block.tail))
        needed = len(f"{head}{tail}".encode()) + 1
        if needed > left:
            dropped += 1 + len(block.rows)
            continue
        left -= needed
        kept = []
        for row in block.rows:
            left -= len(row.encode()) + 1
            if left < 0:
                break
            kept.append(f"{row}\n")
        dropped += len(block.rows) - len(kept)
        parts.append(f"{head}{''.join(kept)}{tail}")
    if dropped:
        parts.append(f"_Shortened: {counted(dropped, 'line is', 'lines are')} left out here._\n")
    return "\n".join(parts)
