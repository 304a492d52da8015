"""The content of run.json: the record of a run as it begins, resumes, ends and is scored again, and what scored it."""

import hashlib
import json
import os
import platform
import re
import subprocess
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_eval_lc.benchmark.option_fields import recorded
from graphrag_eval_lc.config import CaptureConfig, EvaluationConfig
from graphrag_eval_lc.json_values import json_text, parse_json
from graphrag_eval_lc.judges.custom_functions import CustomFunction, all_functions
from graphrag_eval_lc.masking import masked_text, masked_values
from graphrag_eval_lc.matching.matchers import custom_matchers
from graphrag_eval_lc.matching.unknown_tools import reference_names
from graphrag_eval_lc.records import Question, Template
from graphrag_eval_lc.registry.custom_metrics import declaration
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC
from graphrag_eval_lc.registry.plugins import plugin_of, plugin_records, registered_name, spec_of
from graphrag_eval_lc.texts import counted

if TYPE_CHECKING:
    from graphrag_eval_lc.benchmark.run_options import CheckedOptions
    from graphrag_eval_lc.judges.judging import Judges

Run = Mapping[str, Any]
"""A run.json that was read; if someone edited it, any key may be missing."""
Record = dict[str, Any]
"""A run.json to be written. The functions here return new records and never change one."""

DIGESTS = "agent_digests"
KEPT = "keep_answers"
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_PACKAGES = ("graphrag-eval-lc", "langchain-core", "langgraph", "langchain")
_GIT_SECONDS = 5  # git may hang on a network drive, and a run must not wait for it
_OF_GIT_HOOKS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")  # set inside git hooks, for the hook's repository
_DIGEST_LENGTH = 12  # as people see it


# --- sessions ---------------------------------------------------------------------------------------------------------


def new_record(
    source: object,
    templates: Sequence[Template],
    questions: Iterable[Question],
    config: EvaluationConfig,
    evaluators: Iterable[Callable[..., Any]] = (),
    **described: Any,
) -> Record:
    """Return the record of a run that begins now; ``source`` is the dataset's path, or the dataset itself.

    ``described`` holds other keys of run.json. Secrets in them are masked, and empty values are left out.
    """
    now = datetime.now(UTC)
    known = masked_values({key: value for key, value in described.items() if value not in (None, (), [], {})})
    first: Record = {key: known.pop(key) for key in ("label", "href", "tags") if key in known}
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    settings = config.model_dump()
    if settings["llm"] is not None:
        settings["llm"] = masked_values(settings["llm"])  # whose options may hold a key
    return {
        "run_id": new_run_id(now),
        **first,
        "dataset": dataset_record(source, templates),
        **known,
        **scored_with(evaluators),
        "versions": versions,
        "config": settings,
        "times": {"started": _time_text(now), "sessions": [{"started": _time_text(now)}]},
        "questions": {str(each["id"]): text_digest(each["question_text"]) for each in questions},
    }


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
) -> Record:
    """Return the record of a run with an agent that begins now.

    ``agent_source`` is what the agent's spec refers to now, if that may change: the file and variable behind a name in
    ``langgraph.json``, or the graph and version of a server's assistant. ``agent_digests`` has the digests of the
    agent's source files and functions.
    """
    agent_config = {key: value for key, value in options.agent_config.items() if key != "callbacks"}
    documents, redact = options.capture.get("retrieval_documents", False), options.capture.get("redact")
    nodes = dict(options.capture.get("nodes") or {})
    recorded_options = recorded(options)
    described = {
        "selection": options.selection.as_dict(),
        "repeats": recorded_options.pop("repeats"),
        "agent": agent_name(agent),
        "agent_source": agent_source,
        # As JSON without memory addresses, so that every process writes the same text.
        "agent_config": parse_json(_ADDRESS.sub("", json_text(agent_config))) if agent_config else None,
        "git": None if options.output_dir is None else git_state(),
        "capture": {
            "step_names": dict(options.capture.get("step_names") or {}),
            "retrieval_documents": documents if isinstance(documents, bool) else sorted(documents) or False,
            "max_output_chars": options.capture.get("max_output_chars"),
            "redact": redact if redact is None or isinstance(redact, str) else spec_of(redact),
            "keep_artifacts": options.capture.get("keep_artifacts", True),
            "keep_messages": options.capture.get("keep_messages", False),
            **({"nodes": CaptureConfig.model_validate({"nodes": nodes}).model_dump()["nodes"]} if nodes else {}),
        },
        "judges": judges,
        **recorded_options,
    }
    asked = [question for _, question in questions]
    record = new_record(source, templates, asked, options.config, options.evaluators, **described)
    if agent_digests:  # never masked, as digests are not secrets
        record[DIGESTS] = dict(agent_digests)
    if options.shard is not None:  # questions and limits stay those of the whole run
        record["shard"] = {"number": options.shard.number, "of": options.shard.of}
    return record


def resumed(record: Mapping[str, Any], earlier: Mapping[str, Any]) -> Record:
    """Return the record of a run (``earlier`` is its run.json) that is resumed with this session.

    If commit, capture options or source changed, each earlier session keeps its own.
    """
    kept = {key: earlier[key] for key in ("label", "href", "tags", "merged", KEPT) if key in earlier}
    others = {
        key: earlier[key] for key in ("git", "capture", DIGESTS) if key in earlier and earlier[key] != record.get(key)
    }
    before = [{**others, **session} for session in (earlier.get("times") or {}).get("sessions") or ()]
    sessions = [*before, *record["times"]["sessions"]]
    return {
        **kept,
        **record,
        "run_id": str(earlier.get("run_id") or record["run_id"]),
        "times": {"started": sessions[0].get("started"), "sessions": sessions},
    }


def scored_again(record: Mapping[str, Any], earlier: Mapping[str, Any]) -> Record:
    """Return the record of a run (``earlier``) whose responses are scored again, without its old plugins and judges."""
    gone = ("judges", "plugins", "scored_selection")
    taken = ("dataset", "config", "scored_selection", "matchers", "evaluators", "plugins")
    return {
        **{key: value for key, value in earlier.items() if key not in gone},
        **{key: record[key] for key in taken if key in record},
        "scored": None,
    }


def ended(
    record: Mapping[str, Any],
    elapsed_sec: float,
    totals: Mapping[str, Any],
    stopped: Mapping[str, Any] | None = None,
    scorers: Mapping[str, Any] | None = None,
    judges: Mapping[str, Any] | None = None,
) -> Record:
    """Return the record of a run whose session, or scoring, ends now."""
    now = datetime.now(UTC)
    found = {**record, **(scorers or {}), "totals": dict(totals)}
    if judges is not None:
        found["judges"] = {**(found.get("judges") or {}), **judges}
    if "scored" in record:
        return {**found, "scored": _time_text(now)}
    *earlier, session = record["times"]["sessions"]
    started = datetime.fromisoformat(session["started"])
    # The end is never before the start, even if the clock was set back.
    finished = _time_text(max(now, started + timedelta(seconds=elapsed_sec)))
    session = {**session, "finished": finished, ELAPSED_SEC: elapsed_sec}
    if stopped is not None:
        found["stopped"] = session["stopped"] = dict(stopped)
    sessions = [*earlier, session]
    # Time between sessions does not count, and the time of a killed session is unknown.
    elapsed = round(sum(each.get(ELAPSED_SEC, 0.0) for each in sessions), 3)
    times = {"started": record["times"]["started"], "finished": finished, ELAPSED_SEC: elapsed, "sessions": sessions}
    return {**found, "times": times}


def new_run_id(now: datetime) -> str:
    """Return the id of a run that begins now."""
    return f"{now:%Y%m%dT%H%M%SZ}-{uuid.uuid4().hex[:8]}"


def agent_name(agent: object) -> str:
    """Return an agent's spec or, for an agent made in Python, its type or function without memory addresses.

    A path to a file in the current folder is normalised.

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
    module = getattr(named, "__module__", None) or "builtins"  # str.upper, for one, has none
    return f"{module}:{named.__qualname__}" + (f" {name}" if isinstance(name, str) else "")


def _time_text(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds")


def text_digest(text: str) -> str:
    """Return the digest of a question's text that run.json records: 12 hexadecimal digits of SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def dataset_record(source: object, templates: Sequence[Template]) -> dict[str, Any]:
    """Return the entry of a dataset in run.json: its path, if any, its digest, and the number of its parts."""
    digest = hashlib.sha256()
    number = 0
    # One question at a time, as the text of a whole dataset may be as large as the dataset.
    for template in templates:
        questions = template.get("questions") or ()
        number += len(questions)
        for record in ({key: value for key, value in template.items() if key != "questions"}, *questions):
            text = json.dumps(record, sort_keys=True, default=str)
            digest.update(f"{text}\n".encode("utf-8", "surrogatepass"))
    path = {"path": str(source)} if isinstance(source, str | PathLike) else {}
    return {
        **path,
        "sha256": digest.hexdigest(),
        "templates": len(templates),
        "questions": number,
        "step_names": reference_names(templates),
    }


def git_state() -> dict[str, Any] | None:
    """Return the commit in the current folder, so that a score can be traced to the code behind it.

    Example:
        >>> state = git_state()
        >>> state is None or "commit" in state
        True
    """
    environment = {key: value for key, value in os.environ.items() if key not in _OF_GIT_HOOKS}
    try:
        said = subprocess.run(
            ["git", "status", "--porcelain=v2", "--branch", "--untracked-files=no"],
            env={**environment, "GIT_OPTIONAL_LOCKS": "0"},  # an agent may be using git at the same time
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    lines = said.stdout.decode("utf-8", "replace").splitlines()
    head = dict(line.split(" ", 2)[1:] for line in lines if line.startswith("# branch."))
    if head.get("branch.oid", "(initial)") == "(initial)":
        return None
    branch = {} if head["branch.head"] == "(detached)" else {"branch": head["branch.head"]}
    return {"commit": head["branch.oid"], **branch, "clean": all(line.startswith("#") for line in lines)}


# --- what scored it ---------------------------------------------------------------------------------------------------


def scored_with(
    evaluators: Iterable[Callable[..., Any] | CustomFunction], judges: "Judges | None" = None
) -> dict[str, list[dict[str, Any]]]:
    """Return the keys ``matchers``, ``evaluators`` and ``plugins`` of run.json.

    Matchers and evaluators that users registered or passed are named by their spec (``function``). An evaluator also
    has the ``plugin`` that registered it, the metric that it declares and, at the end of the run, the metrics that it
    returned. ``plugins`` lists the plugins behind both, if there are any.
    """
    matchers, functions = custom_matchers(), all_functions(evaluators)
    metrics = {} if judges is None else judges.metrics_of_functions()
    used = {each.registered_as: each.function for each in functions if each.registered_as is not None}
    plugins = plugin_records({**used, **{registered_name(key): matcher for key, matcher in matchers.items()}})
    of_matchers, of_functions = [], []
    for (name, media_type), matcher in matchers.items():
        kinds = {"name": name, "media_type": media_type, "function": spec_of(matcher)}
        of_matchers.append({kind: value for kind, value in kinds.items() if value is not None})
    for each in functions:
        record: dict[str, Any] = {"name": each.name, "function": spec_of(each.function)}
        if each.registered_as is not None:
            record["plugin"] = plugin_of(each.registered_as, each.function).name
        if each.spec is not None:
            record["declares"] = declaration(each.spec)
        if (returned := metrics.get(each.name)) is not None:
            record["metrics"] = returned
        of_functions.append(record)
    return {"matchers": of_matchers, "evaluators": of_functions, **({"plugins": plugins} if plugins else {})}


def plugins_text(run: Run) -> str:
    """Return the plugins of a run with their versions, for people.

    Example:
        >>> plugins_text({"plugins": [{"name": "my_package.metrics", "distribution": "my-package", "version": "1.2"}]})
        'my_package.metrics (my-package 1.2)'
    """
    return ", ".join(map(plugin_text, run.get("plugins") or []))


def plugin_text(plugin: Run) -> str:
    """Return a plugin with its version or content, for people."""
    known = [str(plugin[key]) for key in ("distribution", "version") if plugin.get(key)]
    known += [f"sha256 {str(plugin['sha256'])[:_DIGEST_LENGTH]}"] if plugin.get("sha256") else []
    return f"{plugin.get('name')} ({' '.join(known) or 'of unknown content'})"


def kept_notes(run: Run) -> Iterator[str]:
    """Yield a sentence for each session that kept answers although the agent had changed."""
    for kept in run.get(KEPT) or []:
        yield f"{kept_answers(kept)} kept although the agent changed since: {kept.get('changes')}"


def kept_answers(kept: Run) -> str:
    """Return how many answers were kept, and from when they are."""
    number, asked_at = kept.get("answers"), kept.get("asked")
    answers = counted(number, "answer") if isinstance(number, int) else "answers"
    return f"{answers} of {asked_at}" if asked_at else answers
