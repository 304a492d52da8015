"""What run.json says of a run: what ran, on what, with what, when, and what it spent."""

import hashlib
import json
import platform
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from typing import Any

from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.dataset import questions_of
from graphrag_eval_lc.records import Template

_PACKAGES = ("graphrag-eval-lc", "langchain-core", "langgraph", "langchain")


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The content of run.json.

    Attributes:
        run_id: Unique for each run.
        label: The run's name, for people.
        dataset: Path, digest, and numbers of templates and questions.
        agent: The agent's spec or name; None where recorded responses were scored.
        versions: Of Python and the packages that matter.
        config: The whole configuration, defaults filled in.
        started_at: When the run began.
        finished_at: When it was scored; None before.
        totals: What it spent; None before it is scored.
    """

    run_id: str
    label: str | None
    dataset: Mapping[str, Any]
    agent: str | None
    versions: Mapping[str, str]
    config: Mapping[str, Any]
    started_at: datetime
    finished_at: datetime | None = None
    totals: Mapping[str, Any] | None = None

    @classmethod
    def begin(
        cls,
        label: str | None,
        dataset: object,
        templates: Sequence[Template],
        config: EvaluationConfig,
        *,
        agent: object = None,
    ) -> "RunRecord":
        """Give the record of a run that begins now."""
        now = datetime.now(UTC)
        return cls(
            run_id=f"{now:%Y%m%dT%H%M%SZ}-{uuid.uuid4().hex[:8]}",
            label=label,
            dataset=_dataset_record(dataset, templates),
            agent=None if agent is None else _agent_name(agent),
            versions=_versions(),
            config=config.model_dump(),
            started_at=now,
        )

    def end(self, totals: Mapping[str, Any]) -> "RunRecord":
        """Give the record of the same run, which ends now."""
        return replace(self, finished_at=datetime.now(UTC), totals=totals)

    def as_dict(self) -> dict[str, Any]:
        """Give the record as it stands in run.json; what is not known is absent."""
        record: dict[str, Any] = {
            "run_id": self.run_id,
            "label": self.label,
            "dataset": dict(self.dataset),
            "agent": self.agent,
            "versions": dict(self.versions),
            "config": dict(self.config),
            "times": self._times(),
            "totals": self.totals,
        }
        return {key: value for key, value in record.items() if value is not None}

    def _times(self) -> dict[str, Any]:
        times: dict[str, Any] = {"started": self.started_at.isoformat(timespec="milliseconds")}
        if self.finished_at is not None:
            times["finished"] = self.finished_at.isoformat(timespec="milliseconds")
            times["elapsed_sec"] = round((self.finished_at - self.started_at).total_seconds(), 3)
        return times


def _dataset_record(source: object, templates: Sequence[Template]) -> dict[str, Any]:
    text = json.dumps(templates, sort_keys=True, default=str)
    record: dict[str, Any] = {"path": str(source)} if isinstance(source, str | PathLike) else {}
    record["sha256"] = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    record["templates"] = len(templates)
    record["questions"] = sum(1 for _ in questions_of(templates))
    return record


def _agent_name(agent: object) -> str:
    """Give the spec of an agent, or what can be said of one that was made in Python."""
    if isinstance(agent, str):
        return agent
    if isinstance(agent, partial):
        arguments = [*map(repr, agent.args), *(f"{key}={value!r}" for key, value in agent.keywords.items())]
        return f"{_agent_name(agent.func)}({', '.join(arguments)})"
    named = agent if hasattr(agent, "__qualname__") else type(agent)
    name = getattr(agent, "name", None)
    return f"{named.__module__}:{named.__qualname__}" + (f" {name}" if isinstance(name, str) else "")


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions
