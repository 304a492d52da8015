"""Whether a folder's run is the same as another one: questions, agent, source, capture; and answers kept anyway."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from graphrag_eval_lc.config import CaptureConfig
from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.evaluation.samples import Shard
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.texts import counted, listed

Run = Mapping[str, Any]
"""What run.json holds; one that was changed by hand may lack any key."""

DATASET = "dataset"
CONFIG = "config"
SELECTION = "selection"
REPEATS = "repeats"
LIMITS = "limits"
DIGESTS = "agent_digests"
KEPT = "keep_answers"
_AGENT = {"agent": "the agent", "agent_source": "what it resolves to", "agent_config": "the agent's config"}


# --- questions, agent and capture ------------------------------------------------------------------------------------


def changed_questions(earlier: Run, now: Run) -> frozenset[str]:
    """Return the ids of the questions whose text is another one now."""
    before = earlier.get("questions") or {}
    return frozenset(key for key, digest in (now.get("questions") or {}).items() if before.get(key, digest) != digest)


def refuse_changes(earlier: Run, now: Run, folder: Path, *, is_other_agent_fine: bool = False) -> None:
    """Refuse to resume a run of other questions, of another agent, or of which other things are kept.

    A fixed reference and another configuration of the scoring do not matter: all is scored again anyway.

    Args:
        earlier: The run.json of the run.
        now: The same as this session would write it.
        folder: The run folder.
        is_other_agent_fine: Whether the answers of another agent are kept.

    Raises:
        RunFolderError: With everything that changed.
    """
    agent = () if is_other_agent_fine else agent_changes(earlier, now)
    changes = [*agent, *_capture_changes(earlier, now), *_question_changes(earlier, now)]
    if changes:
        raise RunFolderError(
            f"the folder holds a run that differs from this one: {'; '.join(changes)}",
            path=folder,
            hint="Give another folder; or --force (force=True) to resume nevertheless, with the answers of unchanged "
            "questions kept; or --overwrite (overwrite=True) to start over.",
        )


def refuse_other_part(earlier: Run, now: Run, folder: Path) -> None:
    """Refuse to resume another shard than the folder holds, or with a shard as with a whole run.

    Raises:
        RunFolderError: It is another one.
    """
    before, after = Shard.in_record(earlier), Shard.in_record(now)
    if before == after:
        return
    holds = "a whole run" if before is None else f"shard {before} of a run"
    wanted = "the whole run" if after is None else f"shard {after}"
    ways = ["Give another folder"]
    ways += [] if before is None else [f"--shard {before} (shard='{before}') to resume this one"]
    ways += [] if before is None or after is not None else ["merge to put all shards together first"]
    hint = f"{', or '.join(ways)}; or --overwrite (overwrite=True) to start over."
    raise RunFolderError(f"the folder holds {holds}, and {wanted} was to be asked into it", path=folder, hint=hint)


def capture_warnings(earlier: Run, now: Run) -> list[str]:
    """Say which options of the capture the answers of earlier sessions were recorded with, if they were others."""
    changes = "; ".join(_capture_changes(earlier, now))
    return [f"answers of earlier sessions are kept as they were recorded: {changes}"] if changes else []


def question_warnings(earlier: Run, now: Run) -> Iterator[str]:
    """Say which questions of a run have another text now, and which the dataset has no more."""
    if changed := sorted(changed_questions(earlier, now)):
        yield f"{counted(len(changed), 'question')} with another text than was asked: {listed(changed)}"
    if gone := [key for key in earlier.get("questions") or () if key not in (now.get("questions") or ())]:
        yield f"{counted(len(gone), 'question')} of the run no longer in the dataset: {listed(gone)}"


def agent_changes(earlier: Run, now: Run) -> Iterator[str]:
    """Yield which of the agent's spec, what it resolves to, and its config changed."""
    for key, name in _AGENT.items():
        before, after = earlier.get(key), now.get(key)
        if before != after:
            yield f"{name} was {'none' if before is None else before} and is {'none' if after is None else after}"


def _capture_changes(earlier: Run, now: Run) -> Iterator[str]:
    """Yield what is kept of the agent's runs otherwise; answers of both kinds would be scored next to each other."""
    defaults = CaptureConfig().model_dump()
    before, after = ({**defaults, **(run.get("capture") or {})} for run in (earlier, now))
    for key in defaults:
        if before[key] != after[key]:
            was, is_now = ("none" if value is None else json_text(value) for value in (before[key], after[key]))
            yield f"capture.{key} was {was} and is {is_now}"


def _question_changes(earlier: Run, now: Run) -> Iterator[str]:
    changed = changed_questions(earlier, now)
    before, after = earlier.get("questions") or {}, now.get("questions") or {}
    kinds = {
        "with another text": [key for key in after if key in changed],
        "added": [key for key in after if key not in before],
        "left out": [key for key in before if key not in after],
    }
    for kind, ids in kinds.items():
        if ids:
            yield f"{counted(len(ids), 'question')} {kind}: {listed(ids)}"


# --- answers of an agent whose source changed -------------------------------------------------------------------------


def source_changes(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return which files and functions that an agent was made from changed since or are gone.

    Args:
        earlier: The run.json of the run; nothing is known of one without digests.
        now: The same as this session would write it.

    Returns:
        A phrase such as ``agent.py changed``, or nothing.
    """
    before, after = earlier.get(DIGESTS) or {}, now.get(DIGESTS) or {}
    changed = [name for name in before if after.get(name) != before[name]]
    files = [name for name in changed if ":" not in name]  # functions change with their files
    return [f"{listed(sorted(files or changed))} changed"] if changed else []


def refuse_other_source(answers: Mapping[str, Any], folder: Path) -> NoReturn:
    """Refuse to reuse answers of an agent whose source changed.

    Args:
        answers: How many there are (``answers``), from when (``asked``), and what changed since (``changes``).
        folder: The run folder.

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
    for kept in record.get(KEPT) or []:
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
