"""The types of what run.json says, so that nobody who reads it has to look at them again."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

Object = dict[str, Any]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")


class _Scorer(_Part):
    """A matcher, evaluator or plugin."""

    name: str | None = None
    metrics: list[str] | None = None
    gives: list[str] | None = None
    declares: Object | None = None


class _Judges(_Part):
    metrics: list[str] | None = None
    custom_evaluations: list[str] | None = None


class _Config(_Part):
    steps: Object | None = None
    llm: dict[str, Any] | None = None


class _Shard(_Part):
    number: int = Field(ge=1)
    of: int = Field(ge=1)


class _Session(_Part):
    started: str | None = None
    elapsed_sec: float | None = None


class _Times(_Session):
    sessions: list[_Session] = []


class _RunRecord(_Part):
    """What is read of run.json; it has other keys too, and may lack any."""

    run_id: str | None = None
    label: str | None = None
    tags: list[str] | None = None
    shard: _Shard | None = None
    dataset: Object | None = None
    selection: Object | None = None
    repeats: int | None = Field(None, ge=1)
    agent_digests: Object | None = None
    git: Object | None = None
    versions: Object | None = None
    capture: Object | None = None
    limits: Object | None = None
    config: _Config | None = None
    judges: _Judges | None = None
    matchers: list[_Scorer] | None = None
    evaluators: list[_Scorer] | None = None
    plugins: list[_Scorer] | None = None
    merged: list[Object] | None = None
    keep_answers: list[Object] | None = None
    scored_selection: Object | None = None
    times: _Times | None = None
    stopped: Object | None = None
    totals: Object | None = None
    questions: dict[str, str] | None = None


def wrong_key(run: Object) -> tuple[str, str] | None:
    """Return the first key of a run.json whose value has another type than runs write, and what it must be.

    Example:
        >>> wrong_key({"run_id": "r", "tags": ["a", 1]})
        ('tags.1', 'Input should be a valid string')
    """
    try:
        _RunRecord.model_validate(run)
    except ValidationError as problem:
        error = problem.errors(include_url=False)[0]
        return ".".join(map(str, error["loc"])), error["msg"]
    return None
