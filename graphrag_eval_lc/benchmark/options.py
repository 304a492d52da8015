"""The options of a run: what callers may pass, and the same checked and completed."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any, TypedDict, cast, get_args

from graphrag_eval_lc.benchmark.agent_specs import named_by
from graphrag_eval_lc.benchmark.progress import ProgressMode
from graphrag_eval_lc.benchmark.scorers import evaluators_of
from graphrag_eval_lc.capture import GraphRAGEvalCallbackHandler
from graphrag_eval_lc.capture.handler import CaptureKeywords
from graphrag_eval_lc.config import CaptureConfig, ConfigSource, EvaluationConfig, load_config
from graphrag_eval_lc.errors import AgentError, ConfigError, OptionError
from graphrag_eval_lc.evaluation.events import Observer
from graphrag_eval_lc.evaluation.limits import FailureLimit
from graphrag_eval_lc.evaluation.samples import Selection
from graphrag_eval_lc.records import Question, Response
from graphrag_eval_lc.retrying import RetryOn, RetryPolicy

DEFAULT_TIMEOUT_SEC = 600.0
DEFAULT_GRACE_SEC = 30.0


class BenchmarkKeywords(TypedDict, total=False):
    """The keywords of ``run_benchmark``, whose docstring says what they mean."""

    output_dir: str | PathLike[str] | None
    config: ConfigSource
    label: str | None
    href: str | None
    tags: Sequence[str]
    input_fn: Callable[[Question], Any] | str | None
    answer_fn: Callable[[Any], Any] | str | None
    agent_config: Mapping[str, Any] | None
    agent_key_env: str | None
    capture: CaptureKeywords | None
    max_concurrency: int
    requests_per_minute: float | None
    timeout: float | None
    max_retries: int
    retry_on: RetryOn
    repeats: int
    limit: int | None
    template_ids: Sequence[str]
    question_ids: Sequence[str]
    sample: int | None
    seed: int | None
    max_failures: int | str | None
    max_tokens: int | None
    max_time: float | timedelta | None
    max_cost: float | None
    evaluators: Sequence[Callable[..., Any] | str]
    llm: Any
    embeddings: Any
    judge_cache: bool
    grace: float
    retry_errors: bool
    force: bool
    overwrite: bool
    progress: ProgressMode | bool
    log_file: str | PathLike[str] | None
    on_response: Callable[[Response], None] | None
    on_event: Observer | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkOptions:
    """The options of a run, checked; ``run_benchmark`` says what they mean."""

    output_dir: Path | None = None
    config: EvaluationConfig
    label: str | None = None
    href: str | None = None
    tags: tuple[str, ...] = ()
    input_fn: Callable[[Question], Any] | None = None
    answer_fn: Callable[[Any], Any] | None = None
    agent_config: Mapping[str, Any] = field(default_factory=dict)
    agent_key_env: str | None = None
    capture: CaptureKeywords = field(default_factory=CaptureKeywords)
    max_concurrency: int = 8
    requests_per_minute: float | None = None
    timeout: float | None = DEFAULT_TIMEOUT_SEC
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    repeats: int = 1
    selection: Selection = field(default_factory=Selection)
    is_seed_drawn: bool = False
    failure_limit: FailureLimit | None = None
    max_tokens: int | None = None
    max_time: float | None = None
    max_cost: float | None = None
    evaluators: tuple[Callable[..., Any], ...] = ()
    llm: Any = None
    embeddings: Any = None
    judge_cache: bool = True
    grace: float = DEFAULT_GRACE_SEC
    retry_errors: bool = False
    force: bool = False
    overwrite: bool = False
    progress: ProgressMode = "auto"
    log_file: Path | None = None
    on_response: Callable[[Response], None] | None = None
    on_event: Observer | None = None

    def selection_in(self, earlier: Mapping[str, Any] | None) -> Selection:
        """Return the selection; where no seed was given, with that of an earlier session of the run, its run.json."""
        drawn = (earlier or {}).get("selection") or {}
        if self.is_seed_drawn and drawn.get("sample") == self.selection.sample and "seed" in drawn:
            return replace(self.selection, seed=drawn["seed"])
        return self.selection


def checked_options(given: BenchmarkKeywords) -> BenchmarkOptions:
    """Return the options of a run.

    Raises:
        OptionError: An option does not exist, or has a value that it cannot have.
        ConfigError: The config has a key or value that does not exist.
    """
    unknown = given.keys() - BenchmarkKeywords.__annotations__.keys()
    if unknown:
        known = ", ".join(sorted(BenchmarkKeywords.__annotations__))
        of_capture = [f'"{key}": …' for key in CaptureKeywords.__annotations__ if key in unknown]
        hint = f"Write capture={{{', '.join(of_capture)}}}." if of_capture else f"The options are {known}."
        raise OptionError(f"there is no option {', '.join(sorted(unknown))}", hint=hint)
    max_failures, max_time = given.get("max_failures"), given.get("max_time")
    config = load_config(
        given.get("config"),
        has_llm=given.get("llm") is not None,
        has_embeddings=given.get("embeddings") is not None,
    )
    return BenchmarkOptions(
        output_dir=_path("output_dir", given.get("output_dir")),
        config=config,
        label=given.get("label"),
        href=given.get("href"),
        tags=_texts("tags", given.get("tags", ())),
        input_fn=_function("input_fn", given.get("input_fn")),
        answer_fn=_function("answer_fn", given.get("answer_fn")),
        agent_config=_mapping("agent_config", given.get("agent_config")),
        agent_key_env=_variable("agent_key_env", given.get("agent_key_env")),
        capture=_capture(given.get("capture"), config.capture, given.get("config")),
        max_concurrency=_whole("max_concurrency", given.get("max_concurrency", 8)),
        requests_per_minute=_positive("requests_per_minute", given.get("requests_per_minute")),
        timeout=_positive("timeout", given.get("timeout", DEFAULT_TIMEOUT_SEC)),
        retry=RetryPolicy(
            max_retries=_whole("max_retries", given.get("max_retries", 2), least=0), retry_on=given.get("retry_on")
        ),
        repeats=_whole("repeats", given.get("repeats", 1)),
        selection=Selection(
            limit=_optional_whole("limit", given.get("limit")),
            template_ids=_ids("template_ids", given.get("template_ids")),
            question_ids=_ids("question_ids", given.get("question_ids")),
            sample=_optional_whole("sample", given.get("sample")),
            seed=_optional_whole("seed", given.get("seed"), least=0),
        ),
        is_seed_drawn=given.get("sample") is not None and given.get("seed") is None,
        failure_limit=None if max_failures is None else FailureLimit.read(max_failures),
        max_tokens=_optional_whole("max_tokens", given.get("max_tokens")),
        max_time=_positive("max_time", max_time.total_seconds() if isinstance(max_time, timedelta) else max_time),
        max_cost=_positive("max_cost", given.get("max_cost")),
        evaluators=evaluators_of(given.get("evaluators")),
        llm=given.get("llm"),
        embeddings=given.get("embeddings"),
        judge_cache=given.get("judge_cache", True),
        grace=_seconds("grace", given.get("grace", DEFAULT_GRACE_SEC)),
        retry_errors=given.get("retry_errors", False),
        force=given.get("force", False),
        overwrite=given.get("overwrite", False),
        progress=_progress(given.get("progress", "auto")),
        log_file=_path("log_file", given.get("log_file")),
        on_response=_function("on_response", given.get("on_response")),
        on_event=_function("on_event", given.get("on_event")),
    )


def _whole(name: str, value: Any, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise OptionError(
            f"{name} is at least {least}, not {value!r}", key=name, hint=f"Give a whole number from {least}."
        )
    return value


def _optional_whole(name: str, value: Any, least: int = 1) -> int | None:
    return None if value is None else _whole(name, value, least)


def _positive(name: str, value: Any) -> float | None:
    if value is None:
        return None
    if _is_number(value) and value > 0:
        return float(value)
    raise OptionError(f"{name} cannot be {value!r}", key=name, hint="Give a number greater than 0, or None.")


def _seconds(name: str, value: Any) -> float:
    if _is_number(value) and value >= 0:
        return float(value)
    raise OptionError(f"{name} cannot be {value!r}", key=name, hint="Give seconds, 0 or more.")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value  # not NaN


def _path(name: str, value: Any) -> Path | None:
    if value is None or isinstance(value, str | PathLike):
        return None if value is None else Path(value)
    raise OptionError(f"{name} cannot be {value!r}", key=name, hint="Give a path.")


def _texts(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, Collection) and not isinstance(value, str) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise OptionError(f"{name} cannot be {value!r}", key=name, hint="Give a list of texts.")


def _ids(name: str, value: Any) -> tuple[str, ...]:
    if value is None or isinstance(value, str):
        return () if value is None else (value,)
    if isinstance(value, Collection):
        return tuple(map(str, value))
    raise OptionError(f"{name} cannot be {value!r}", key=name, hint="Give a list of ids.")


def _progress(value: Any) -> ProgressMode:
    mode: ProgressMode = "auto" if value is True else "off" if value is False else value
    if mode not in get_args(ProgressMode):
        known = ", ".join(get_args(ProgressMode))
        raise OptionError(f"progress cannot be {value!r}", key="progress", hint=f"Give one of {known}.")
    return mode


def _capture(value: Any, section: CaptureConfig, source: ConfigSource) -> CaptureKeywords:
    """Return the options of the handler: those given in Python, each of which goes before that of the config."""
    given: CaptureKeywords = {} if value is None else value
    known = list(CaptureKeywords.__annotations__)
    if not isinstance(given, Mapping):
        what = f"capture cannot be {value!r:.80}"
        raise OptionError(what, key="capture", hint=f"Give a dict with some of {', '.join(known)}.")
    for key in given:
        if key not in known:
            near = get_close_matches(str(key), known, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"Known are {', '.join(known)}."
            raise OptionError(f"there is no option {key!r}", key="capture", hint=hint)
    GraphRAGEvalCallbackHandler(**given)  # which checks the values
    return {
        "step_names": section.step_names,
        "retrieval_documents": section.retrieval_documents,
        "max_output_chars": section.max_output_chars,
        "redact": None if "redact" in given or section.redact is None else _redact(section.redact, source),
        "keep_artifacts": section.keep_artifacts,
        "keep_messages": section.keep_messages,
        **given,
    }


def _redact(spec: str, source: ConfigSource) -> Callable[[Any], Any]:
    """Return the function that the config of the caller names."""
    path = source if isinstance(source, str | PathLike) else None
    try:
        function = named_by(spec, "a function")
    except AgentError as problem:
        raise ConfigError(problem.what, path=path, key="capture.redact", hint=problem.hint) from problem
    if not callable(function):
        what = f"{spec} is {type(function).__name__}, no function"
        hint = "Name a function that takes a value and gives what is kept in its place."
        raise ConfigError(what, path=path, key="capture.redact", hint=hint)
    return cast("Callable[[Any], Any]", function)


def _mapping(name: str, value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return value
    raise OptionError(f"{name} cannot be {value!r}", key=name, hint="Give a dict as LangChain takes it as config.")


def _variable(name: str, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    hint = "Give the name of an environment variable."  # what was given may be a key
    raise OptionError(f"{name} is {type(value).__name__}, no text", key=name, hint=hint)


def _function(name: str, value: Any) -> Any:
    if isinstance(value, str):
        value = named_by(value)
    if value is None or callable(value):
        return value
    raise OptionError(
        f"{name} is {type(value).__name__}, no function",
        key=name,
        hint="Give a function, its spec as package.module:attribute, or None.",
    )
