"""What run.json says of a run."""

import hashlib
import json
import platform
import re
import time
import uuid
from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_eval_lc.benchmark.git_state import git_state
from graphrag_eval_lc.benchmark.kept_answers import DIGESTS, KEPT, LATER_DIGESTS
from graphrag_eval_lc.benchmark.option_fields import recorded
from graphrag_eval_lc.benchmark.run_identity import shard_record
from graphrag_eval_lc.benchmark.scorers import scored_with
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.evaluation.shards import Shard
from graphrag_eval_lc.json_values import json_text, parse_json
from graphrag_eval_lc.masking import masked_text, masked_values
from graphrag_eval_lc.matching.unknown_tools import reference_names
from graphrag_eval_lc.records import Question, Template
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC
from graphrag_eval_lc.registry.plugins import spec_of

if TYPE_CHECKING:
    from graphrag_eval_lc.benchmark.run_options import CheckedOptions
    from graphrag_eval_lc.capture.handler import CaptureKeywords


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_SCORED_SELECTION = "scored_selection"
_PACKAGES = ("graphrag-eval-lc", "langchain-core", "langgraph", "langchain")


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One stretch of a run, from its start or resumption to its end.

    Attributes:
        started_at: When it began.
        finished_at: When it ended; None before, and for one that was killed.
        stopped: Why it ended before its time, and how many samples it left out; None where it did not.
        elapsed_sec: Seconds from its start to its end, whatever the clock was set to meanwhile; 0 before the end.
    """

    started_at: datetime
    finished_at: datetime | None = None
    stopped: Mapping[str, Any] | None = None

    elapsed_sec: float = 0.0
    _began: float = field(default_factory=time.monotonic, repr=False)

    def end(self, stopped: Mapping[str, Any] | None = None) -> "Session":
        """Return the session, ended now. Its end is not before its start, also where the clock was set back."""
        elapsed = time.monotonic() - self._began
        finished = max(datetime.now(UTC), self.started_at + timedelta(seconds=elapsed))
        return replace(self, finished_at=finished, elapsed_sec=round(elapsed, 3), stopped=stopped)

    def as_dict(self) -> dict[str, Any]:
        """Return the session as it stands in run.json."""
        record: dict[str, Any] = {"started": _time_text(self.started_at)}
        if self.finished_at is not None:
            record |= {"finished": _time_text(self.finished_at), ELAPSED_SEC: self.elapsed_sec}
        if self.stopped is not None:
            record["stopped"] = dict(self.stopped)
        return record


@dataclass(frozen=True, slots=True, kw_only=True)
class RunManifest:
    """What run.json says of a run that this process carries out.

    Attributes:
        run_id: Unique for each run; a resumed run keeps it.
        described: What ran, by the keys of run.json: label, href, tags, dataset, selection, repeats, agent, git,
            capture, limits, matchers, evaluators, versions, config; ``scored_selection``, where only some of the run's
            questions are scored again; ``shard``, where this is one; ``merged``, of what it was put together.
        questions: A digest of each selected question's text, by its id.
        session: The stretch that this process carries out.
        earlier_sessions: Those before it, as run.json has them.
        earlier_questions: Digests of questions that they asked and that are no longer selected.
        totals: What it spent; None before it is scored.
        judges: Who judged, where that was not described when the run began.
        scored_before: The run.json of a run whose responses are only scored again; what is said of its asking stays.
    """

    run_id: str
    described: Mapping[str, Any]
    questions: Mapping[str, str]
    session: Session
    earlier_sessions: Sequence[Mapping[str, Any]] = ()
    earlier_questions: Mapping[str, str] = field(default_factory=dict)
    totals: Mapping[str, Any] | None = None
    judges: Mapping[str, Any] | None = None
    scored_before: Mapping[str, Any] | None = None

    @classmethod
    def begin(
        cls,
        source: object,
        templates: Sequence[Template],
        questions: Iterable[Question],
        config: EvaluationConfig,
        scorers: Mapping[str, Any] | None = None,
        **described: Any,
    ) -> "RunManifest":
        """Return the record of a run that begins now.

        Args:
            source: The dataset's path, or the dataset itself.
            templates: The dataset.
            questions: Those that are selected.
            config: The configuration.
            scorers: What ``scored_with`` gives.
            **described: What else is to stand in run.json, secrets masked; what is None or empty is left out.
        """
        now = datetime.now(UTC)
        known = {key: masked_values(value) for key, value in described.items() if value not in (None, (), [], {})}
        first: dict[str, Any] = {key: known.pop(key) for key in ("label", "href", "tags") if key in known}
        return cls(
            run_id=new_run_id(now),
            described={
                **first,
                "dataset": dataset_record(source, templates),
                **known,
                **(scorers or {}),  # the empty lists too: they say that there are none
                "versions": _versions(),
                "config": config_record(config),
            },
            questions=_Digests(list(questions)),
            session=Session(started_at=now),
        )

    def describing(self, **described: Any) -> "RunManifest":
        """Return the record with more keys that run.json has, as they are."""
        return replace(self, described={**self.described, **described})

    def in_shard(self, shard: Shard) -> "RunManifest":
        """Return the record of a shard, which has the questions and the limits of the whole run."""
        return self.describing(shard=shard_record(shard, self.described))

    def resuming(self, earlier: Mapping[str, Any]) -> "RunManifest":
        """Return the record of the same run as ``earlier``, a run.json, which goes on with this session."""
        self._share_questions(earlier)
        asked = set(self.questions)
        described = ("label", "href", "tags", "merged", KEPT, LATER_DIGESTS)
        kept: dict[str, Any] = {key: earlier[key] for key in described if key in earlier and key not in self.described}
        return replace(
            self,
            run_id=str(earlier.get("run_id") or self.run_id),
            described={**kept, **self.described},
            earlier_sessions=self._earlier_sessions(earlier),
            earlier_questions={
                key: digest
                for digests in (earlier.get("earlier_questions") or {}, earlier.get("questions") or {})
                for key, digest in digests.items()
                if key not in asked
            },
        )

    def _share_questions(self, earlier: Mapping[str, Any]) -> None:
        """Let an earlier run.json have the same object for the same questions, as there may be many."""
        if isinstance(earlier, dict) and earlier.get("questions") == self.questions:
            earlier["questions"] = self.questions

    def _earlier_sessions(self, earlier: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
        """Return the earlier sessions, each with its own commit, capture and source if those of this one differ."""
        sessions = (earlier.get("times") or {}).get("sessions") or ()
        others = {
            key: earlier[key]
            for key in ("git", "capture", DIGESTS)
            if key in earlier and earlier[key] != self.described.get(key)
        }
        return tuple({**others, **session} for session in sessions) if others else tuple(sessions)

    def scored_again(self, earlier: Mapping[str, Any]) -> "RunManifest":
        """Return the record of ``earlier``, a run.json, whose responses are scored again."""
        self._share_questions(earlier)
        return replace(self, scored_before=earlier)

    def end(
        self,
        totals: Mapping[str, Any],
        stopped: Mapping[str, Any] | None = None,
        scorers: Mapping[str, Any] | None = None,
        judges: Mapping[str, Any] | None = None,
    ) -> "RunManifest":
        """Return the record of the same run, whose session ends now.

        Args:
            totals: What the run spent.
            stopped: Why the session ended before its time, and how many samples it left out.
            scorers: What ``scored_with`` gives by now.
            judges: Who judged.
        """
        session = self.session.end(stopped)
        described = {**self.described, **(scorers or {})}
        return replace(self, session=session, totals=totals, described=described, judges=judges)

    def as_dict(self) -> dict[str, Any]:
        """Return the record as it stands in run.json; what is not known is absent."""
        record = self.to_write()
        if isinstance(record.get("questions"), _Digests):
            record["questions"] = dict(record["questions"])
        return record

    def to_write(self) -> dict[str, Any]:
        """Return the same for a moment, such as to be written: the digests of the questions are not kept in it."""
        judges = {} if self.judges is None or "judges" in self.described else {"judges": dict(self.judges)}
        record = self._asked_dict() if self.scored_before is None else self._scored_dict(self.scored_before)
        return {**record, **judges}

    def _scored_dict(self, earlier: Mapping[str, Any]) -> dict[str, Any]:
        """Return an earlier run.json with what scoring changes; plugins and judges of before are gone."""
        finished, scorers = self.session.finished_at, ("matchers", "evaluators", "plugins")
        gone = ("judges", "plugins", _SCORED_SELECTION)
        return {
            **{key: value for key, value in earlier.items() if key not in gone},
            **{key: self.described[key] for key in ("dataset", "config")},
            "scored": None if finished is None else _time_text(finished),
            "totals": self.totals,
            **{key: self.described[key] for key in (_SCORED_SELECTION, *scorers) if key in self.described},
        }

    def _asked_dict(self) -> dict[str, Any]:
        record: dict[str, Any] = {"run_id": self.run_id, **self.described, "times": self._times()}
        if self.session.stopped is not None:
            record["stopped"] = dict(self.session.stopped)
        if self.totals is not None:
            record["totals"] = dict(self.totals)
        record["questions"] = self.questions
        if self.earlier_questions:
            record["earlier_questions"] = dict(self.earlier_questions)
        return record

    def _times(self) -> dict[str, Any]:
        sessions = [*self.earlier_sessions, self.session.as_dict()]
        times: dict[str, Any] = {"started": sessions[0].get("started")}
        if "finished" in sessions[-1]:
            times["finished"] = sessions[-1]["finished"]
            # Time between sessions is no time of the run; of one that was killed it is not known.
            times[ELAPSED_SEC] = round(sum(session.get(ELAPSED_SEC, 0.0) for session in sessions), 3)
        return {**times, "sessions": sessions}


def begun_record(
    agent: object,
    source: object,
    templates: Sequence[Template],
    questions: Sequence[tuple[Template, Question]],
    options: "CheckedOptions",
    judges: Mapping[str, Any] | None = None,
    *,
    agent_source: str | None = None,
    agent_digests: Mapping[str, str] | None = None,
) -> RunManifest:
    """Return the record of a run of an agent that begins now.

    Args:
        agent: The agent as the caller gave it, or its full spec.
        source: The dataset's path, or the dataset itself.
        templates: The dataset.
        questions: Those that are selected.
        options: The options of the run.
        judges: What is to be told of the judges.
        agent_source: What the agent's spec stands for at present, where that may change: the place of a graph that
            ``langgraph.json`` names; the graph and the version of a server's assistant.
        agent_digests: The digests of the files and functions that the agent is made from.
    """
    # Their order.
    first = (
        "selection", "repeats", "agent", "agent_source", "agent_config", DIGESTS, "git", "capture", "judges",
    )  # fmt: skip
    described = {
        **dict.fromkeys(first),
        **recorded(options),
        "selection": options.selection.as_dict(),
        "agent": agent_name(agent),
        "agent_source": agent_source,
        "agent_config": _plain(options.agent_config),
        DIGESTS: agent_digests,
        "git": None if options.output_dir is None else git_state(),
        "capture": capture_record(options.capture),
        "judges": judges,
    }
    manifest = RunManifest.begin(
        source,
        templates,
        [question for _, question in questions],
        options.config,
        scored_with(questions, options.config, options.evaluators),
        **described,
    )
    if agent_digests:  # which are not secrets, whatever their names
        manifest = manifest.describing(**{DIGESTS: dict(agent_digests)})
    return manifest if options.shard is None else manifest.in_shard(options.shard)


def new_run_id(now: datetime) -> str:
    """Return the id of a run that begins now."""
    return f"{now:%Y%m%dT%H%M%SZ}-{uuid.uuid4().hex[:8]}"


def config_record(config: EvaluationConfig) -> dict[str, Any]:
    """Return the whole configuration for run.json, with the secrets of its models masked."""
    record = config.model_dump()
    return {**record, "llm": masked_values(record["llm"])}


def capture_record(options: "CaptureKeywords") -> dict[str, Any]:
    """Return the options of the handler as run.json has them: all of them, a function by its spec.

    Example:
        >>> capture_record({"retrieval_documents": {"b", "a"}})["retrieval_documents"]
        ['a', 'b']
    """
    documents, redact = options.get("retrieval_documents", False), options.get("redact")
    return {
        "step_names": dict(options.get("step_names") or {}),
        "retrieval_documents": documents if isinstance(documents, bool) else sorted(documents) or False,
        "max_output_chars": options.get("max_output_chars"),
        "redact": redact if redact is None or isinstance(redact, str) else spec_of(redact),
        "keep_artifacts": options.get("keep_artifacts", True),
        "keep_messages": options.get("keep_messages", False),
    }


def _plain(config: Mapping[str, Any]) -> Any:
    """Return an agent's config as JSON without callbacks and addresses, so that each process says the same."""
    return parse_json(_ADDRESS.sub("", json_text({key: config[key] for key in config if key != "callbacks"})))


def agent_name(agent: object) -> str:
    """Return an agent's spec; of one made in Python its type or function, without addresses, which change.

    A file in the current folder has one name, however its path is written.

    Example:
        >>> agent_name("./agents/../agent.py:graph")
        'agent.py:graph'
    """
    if isinstance(agent, str):
        place, _, attribute = agent.rpartition(":")
        if not place.endswith((".py", ".json")) or "://" in place:
            return agent
        try:
            path, here = Path(place).resolve(), Path.cwd()
        except FileNotFoundError:  # the agent changed into a folder that is gone
            return agent
        return f"{path.relative_to(here).as_posix()}:{attribute}" if path.is_relative_to(here) else agent
    if isinstance(agent, partial):
        arguments = [*map(repr, agent.args), *(f"{key}={value!r}" for key, value in agent.keywords.items())]
        return f"{agent_name(agent.func)}({_ADDRESS.sub('', masked_text(', '.join(arguments)))})"
    named = agent if hasattr(agent, "__qualname__") else type(agent)
    name = getattr(agent, "name", None)
    module = getattr(named, "__module__", None) or "builtins"  # such as of str.upper
    return f"{module}:{named.__qualname__}" + (f" {name}" if isinstance(name, str) else "")


def _time_text(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds")


class _Digests(Mapping[str, str]):
    """The digests of the questions' texts by id; each is made when it is looked at, as there may be many."""

    def __init__(self, questions: Sequence[Question]) -> None:
        self._questions = questions

    @cached_property
    def _by_id(self) -> dict[str, Question]:
        return {str(question["id"]): question for question in self._questions}

    def __getitem__(self, question_id: str) -> str:
        return _text_digest(self._by_id[question_id]["question_text"])

    def __contains__(self, question_id: object) -> bool:
        return question_id in self._by_id

    def __iter__(self) -> Iterator[str]:
        return (str(question["id"]) for question in self._questions)

    def __len__(self) -> int:
        return len(self._questions)

    def items(self) -> ItemsView[str, str]:
        """Return ids with digests, without a look at each id."""
        return _DigestItems(self)


class _DigestItems(ItemsView[str, str]):
    def __init__(self, digests: _Digests) -> None:
        super().__init__(digests)
        self._questions = digests._questions

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return ((str(question["id"]), _text_digest(question["question_text"])) for question in self._questions)


def _text_digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def dataset_record(source: object, templates: Sequence[Template]) -> dict[str, Any]:
    """Return what run.json says of a dataset: its path, where it has one, its digest, and what is in it."""
    digest = hashlib.sha256()
    questions = 0
    # One question at a time, as the text of a whole dataset may be as large as the dataset.
    for template in templates:
        _add_to(digest, {key: value for key, value in template.items() if key != "questions"})
        for question in template.get("questions") or ():
            _add_to(digest, question)
            questions += 1
    path = {"path": str(source)} if isinstance(source, str | PathLike) else {}
    return {
        **path,
        "sha256": digest.hexdigest(),
        "templates": len(templates),
        "questions": questions,
        "step_names": reference_names(templates),
    }


def _add_to(digest: "hashlib._Hash", record: Mapping[str, Any]) -> None:
    text = json.dumps(record, sort_keys=True, default=str)
    digest.update(f"{text}\n".encode("utf-8", "surrogatepass"))


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions
