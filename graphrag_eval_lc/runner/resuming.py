"""Whether a folder's run can go on: what changed since, and which questions are to be asked again for it."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from graphrag_eval_lc.errors import RunFolderError

_MOST_NAMED = 5


def changed_questions(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> frozenset[str]:
    """Give the ids of the questions whose text is another one now.

    Args:
        earlier: The run.json of the run.
        now: The same as this session would write it.
    """
    before, after = {**_questions(earlier, "earlier_questions"), **_questions(earlier)}, _questions(now)
    return frozenset(key for key in after.keys() & before.keys() if after[key] != before[key])


def refuse_changes(earlier: Mapping[str, Any], now: Mapping[str, Any], folder: Path) -> None:
    """Refuse to go on with a run of other questions or of another agent.

    A mended reference and another configuration of the scoring are no such change: all is scored anew anyway.

    Args:
        earlier: The run.json of the run.
        now: The same as this session would write it.
        folder: Where the run is.

    Raises:
        RunFolderError: With everything that changed.
    """
    changes = [*_agent_changes(earlier, now), *_question_changes(earlier, now)]
    if changes:
        raise RunFolderError(
            f"the folder holds a run that differs from this one: {'; '.join(changes)}",
            path=folder,
            mend="Give another folder; or --force (force=True) to go on nevertheless, with the answers of unchanged "
            "questions kept; or --overwrite (overwrite=True) to start anew.",
        )


def _agent_changes(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> Iterable[str]:
    for key, name in (("agent", "the agent"), ("agent_config", "the agent's config")):
        before, after = earlier.get(key), now.get(key)
        if before != after:
            yield f"{name} was {'none' if before is None else before} and is {'none' if after is None else after}"


def _question_changes(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> Iterable[str]:
    before, after = _questions(earlier), _questions(now)
    changed = changed_questions(earlier, now)
    kinds = {
        "with another text": [key for key in after if key in changed],
        "added": [key for key in after if key not in before],
        "left out": [key for key in before if key not in after],
    }
    for kind, ids in kinds.items():
        if ids:
            more = f" and {len(ids) - _MOST_NAMED:,} more" if len(ids) > _MOST_NAMED else ""
            plural = "question" if len(ids) == 1 else "questions"
            yield f"{len(ids):,} {plural} {kind}: " + (f"{', '.join(ids[:_MOST_NAMED])}{more}")


def _questions(run: Mapping[str, Any], key: str = "questions") -> Mapping[str, Any]:
    questions = run.get(key)
    return questions if isinstance(questions, Mapping) else {}
