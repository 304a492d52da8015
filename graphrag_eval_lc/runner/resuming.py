"""Whether a folder's run can go on: what changed since, and which questions are to be asked again for it."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_eval_lc.config import CaptureConfig
from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.runner.missing_scorers import Missing, missing_scorers, refuse_missing
from graphrag_eval_lc.texts import counted, listed

if TYPE_CHECKING:  # scoring recorded responses loads no agent framework, which the options know
    from graphrag_eval_lc.runner.options import BenchmarkOptions


def changed_questions(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> frozenset[str]:
    """Give the ids of the questions whose text is another one now.

    Args:
        earlier: The run.json of the run.
        now: The same as this session would write it.
    """
    before, after = {**_questions(earlier, "earlier_questions"), **_questions(earlier)}, _questions(now)
    return frozenset(key for key in after.keys() & before.keys() if after[key] != before[key])


def refuse_changes(earlier: Mapping[str, Any], now: Mapping[str, Any], folder: Path) -> None:
    """Refuse to go on with a run of other questions, of another agent, or of which other things are kept.

    A mended reference and another configuration of the scoring are no such change: all is scored anew anyway.

    Args:
        earlier: The run.json of the run.
        now: The same as this session would write it.
        folder: Where the run is.

    Raises:
        RunFolderError: With everything that changed.
    """
    changes = [*_agent_changes(earlier, now), *_capture_changes(earlier, now), *_question_changes(earlier, now)]
    if changes:
        raise RunFolderError(
            f"the folder holds a run that differs from this one: {'; '.join(changes)}",
            path=folder,
            mend="Give another folder; or --force (force=True) to go on nevertheless, with the answers of unchanged "
            "questions kept; or --overwrite (overwrite=True) to start anew.",
        )


def missing_in_session(earlier: Mapping[str, Any], folder: Path, options: "BenchmarkOptions") -> list[Missing]:
    """Give what scored the run in earlier sessions and would not score it in this one, which scores all anew.

    Args:
        earlier: The run.json of the run.
        folder: Where the run is.
        options: Those of this session.

    Raises:
        RunFolderError: Something is missing, and is not to be done without (``force``).
    """
    missing = missing_scorers(
        earlier,
        folder,
        options.config,
        evaluators=options.evaluators,
        llm=options.llm,
        embeddings=options.embeddings,
    )
    if not options.force:
        refuse_missing(missing, folder, "--force (force=True) to go on without")
    return missing


def _agent_changes(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> Iterable[str]:
    names = {"agent": "the agent", "agent_source": "what it stands for", "agent_config": "the agent's config"}
    for key, name in names.items():
        before, after = earlier.get(key), now.get(key)
        if before != after:
            yield f"{name} was {'none' if before is None else before} and is {'none' if after is None else after}"


def _capture_changes(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> Iterable[str]:
    """Give what is kept of the agent's runs otherwise; answers of both kinds would be scored beside each other."""
    defaults = CaptureConfig().model_dump()
    before, after = ({**defaults, **_part(run, "capture")} for run in (earlier, now))
    for key in defaults:
        if before[key] != after[key]:
            yield f"capture.{key} was {_shown(before[key])} and is {_shown(after[key])}"


def capture_warnings(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Say which options of the capture the answers of earlier sessions were recorded with, where they were others."""
    changes = "; ".join(_capture_changes(earlier, now))
    return [f"answers of earlier sessions are kept as they were recorded: {changes}"] if changes else []


def _shown(value: Any) -> str:
    return "none" if value is None else json_text(value)


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
            yield f"{counted(len(ids), 'question')} {kind}: {listed(ids)}"


def _questions(run: Mapping[str, Any], key: str = "questions") -> Mapping[str, Any]:
    return _part(run, key)


def _part(run: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = run.get(key)
    return part if isinstance(part, Mapping) else {}
