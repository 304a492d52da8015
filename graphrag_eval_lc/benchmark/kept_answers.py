"""Answers that a folder has already: reused by a run, refused if the agent changed since, or kept anyway."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.texts import counted, listed

if TYPE_CHECKING:
    from graphrag_eval_lc.benchmark.agent_source import AgentSource

DIGESTS = "agent_digests"
LATER_DIGESTS = "agent_digests_later"
KEPT = "keep_answers"


def source_changes(earlier: Mapping[str, Any], now: Mapping[str, Any], source: "AgentSource") -> list[str]:
    """Return which files and functions that an agent was made from, or loaded, changed since or are gone.

    Args:
        earlier: The run.json of the run; nothing is known of one without digests.
        now: The same as this session would write it.
        source: The agent's source.

    Returns:
        A phrase such as ``agent.py changed``, or nothing.
    """
    before, after = {**digests_in(earlier, LATER_DIGESTS), **digests_in(earlier)}, digests_in(now)
    changed = [name for name in before if (after.get(name) or source.digest_now(name)) != before[name]]
    files = [name for name in changed if ":" not in name]  # functions change with their files
    return [f"{listed(sorted(files or changed))} changed"] if changed and digests_in(earlier) else []


def refuse_other_source(answers: Mapping[str, Any], folder: Path) -> NoReturn:
    """Refuse to reuse answers of an agent whose source changed.

    Args:
        answers: How many there are (``answers``), from when (``asked``), and what changed since (``changes``).
        folder: Where they are.

    Raises:
        RunFolderError: With what changed since which answers, and the two ways on.
    """
    raise RunFolderError(
        f"the agent changed since it gave the {_answers(answers).removeprefix('1 ')}: {answers['changes']}",
        path=folder,
        hint="Add --overwrite (overwrite=True) to ask everything again, or --keep-answers (keep_answers=True) to keep "
        "these answers and ask only the rest.",
    )


def kept_notes(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each time that answers were kept although the agent changed, from a run.json."""
    for kept in kept_in(record):
        yield f"{_answers(kept)} kept although the agent changed since: {kept.get('changes')}"


def reuse_text(to_ask: int, reused: int, asked_at: str) -> str:
    """Return how many answers a run reuses, and from when the newest of them is.

    Example:
        >>> reuse_text(0, 48, "2026-11-25 03:26"), reuse_text(12, 36, "")
        ('0 asked, 48 reused from 2026-11-25 03:26 (--overwrite asks again)', '12 to ask, 36 reused (--overwrite ...')
    """
    asked = f"{to_ask:,} to ask" if to_ask else "0 asked"
    return f"{asked}, {reused:,} reused{asked_at and f' from {asked_at}'} (--overwrite asks again)"


def local_minute(*times: object) -> str:
    """Return the first of some times as a person reads it: local, to the minute; empty if none can be read.

    Args:
        *times: ISO 8601 texts, or None.
    """
    for each in times:
        try:
            return f"{datetime.fromisoformat(str(each)).astimezone():%Y-%m-%d %H:%M}"
        except (ValueError, OverflowError):
            continue
    return ""


def _answers(kept: Mapping[str, Any]) -> str:
    number, asked_at = kept.get("answers"), kept.get("asked")
    answers = counted(number, "answer") if isinstance(number, int) else "answers"
    return f"{answers} of {asked_at}" if asked_at else answers


def kept_in(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what run.json says of kept answers, for each time that the agent changed and they were kept."""
    kept = record.get(KEPT)
    return [each for each in kept if isinstance(each, Mapping)] if isinstance(kept, list) else []


def digests_in(record: Mapping[str, Any], key: str = DIGESTS) -> dict[str, str]:
    """Return the digests in a run.json, which may have been changed by hand."""
    digests = record.get(key)
    return {name: str(digest) for name, digest in digests.items()} if isinstance(digests, Mapping) else {}
