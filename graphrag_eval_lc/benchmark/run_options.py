"""The options of a run and of scoring: each is one field, from which Python, the command line and run.json take it.

Heavy modules are imported where they are needed, so that ``--help`` need not wait for them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, ModelWrapValidatorHandler, ValidationError, model_validator

from graphrag_eval_lc.benchmark.option_checks import (
    POSITIVE,
    REDACT,
    Checked,
    checked_capture,
    checked_evaluators,
    checked_failure_limit,
    checked_function,
    checked_ids,
    checked_mapping,
    checked_path,
    checked_progress_mode,
    checked_seconds,
    checked_texts,
    checked_variable,
    loaded_config,
    option_error,
    refuse_unknown,
)
from graphrag_eval_lc.benchmark.option_fields import (
    ASKING,
    DISPLAY,
    ENDING,
    FOLDER,
    QUIET,
    SELECTION,
    Cli,
    Hint,
    ProgressMode,
    Recorded,
)
from graphrag_eval_lc.errors import ConfigError

if TYPE_CHECKING:
    from graphrag_eval_lc.capture.handler import CaptureKeywords
    from graphrag_eval_lc.config import ConfigSource, EvaluationConfig
    from graphrag_eval_lc.dataset.loading import DatasetSource
    from graphrag_eval_lc.evaluation.events import Observer
    from graphrag_eval_lc.evaluation.limits import FailureLimit
    from graphrag_eval_lc.evaluation.samples import Selection
    from graphrag_eval_lc.records import Question, Response
    from graphrag_eval_lc.retrying import RetryOn, RetryPolicy

LIMITS = "limits"


M = TypeVar("M", bound="Options")

_AsGiven = Checked(lambda value: value)


class Options(BaseModel):
    """Options that are checked when they are made; what is wrong with them is told as OptionError."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, validate_default=True, defer_build=True)

    @model_validator(mode="wrap")
    @classmethod
    def _check(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(given, Mapping):
            refuse_unknown(given.keys(), cls)
        try:
            return handler(given)
        except ValidationError as problem:
            raise option_error(problem, cls) from None
        except ConfigError as problem:
            source = given.get("config") if isinstance(given, Mapping) else None
            if problem.key == REDACT and problem.path is None and isinstance(source, str | PathLike):
                problem.path = source
            raise


class ScoringOptions(Options):
    """How responses are scored, whatever they come from."""

    llm: Annotated[Any, Field(description="A model that judges, in place of that of the config.")] = None
    embeddings: Annotated[Any, Field(description="A model for embeddings, likewise.")] = None
    config: Annotated[
        "ConfigSource",
        Checked(loaded_config, takes_fields=True),
        Field(description="A path, a dict or an EvaluationConfig; None for the defaults."),
    ] = None
    evaluators: Annotated[
        Sequence[Callable[..., Any] | str],
        Checked(checked_evaluators),
        Field(
            description="Functions of your own that score each response, ``(question, response)``, or their specs as "
            "``package.module:function``; see ``run_evaluation``."
        ),
        Cli(
            name="--evaluator",
            help="A function of your own that scores each response, (question, response), as package.module:function "
            "or path/to/file.py:function; may be repeated.",
            metavar="SPEC",
        ),
    ] = ()
    max_cost: Annotated[
        float | None,
        Field(
            gt=0,
            description="USD that the judges may cost now; what would exceed it is scored without them. Answers that "
            "the folder has cost nothing.",
        ),
        POSITIVE,
        Cli(help="USD that the judges may cost; the rest is scored without them.", least=0),
    ] = None
    judge_cache: Annotated[
        bool,
        Field(description="Whether the judges' answers are kept in the folder and not asked for again."),
        Cli(
            name="--no-cache",
            help="Ask the judges again for what the folder has their answers to.",
            panel=FOLDER,
            default=False,
            converts=lambda is_off: not is_off,
        ),
    ] = True


class ScoreRunOptions(ScoringOptions):
    """The options of ``score_run``."""

    config: Annotated[
        "ConfigSource",
        _AsGiven,
        Field(description="A path, a dict or an EvaluationConfig; None for what stands in run.json."),
    ] = None
    dataset: Annotated[
        "DatasetSource | None",
        _AsGiven,
        Field(description="A path, or the templates; None for the path that stands in run.json."),
    ] = None
    measures: Annotated[
        Sequence[str] | None,
        _AsGiven,
        Field(
            description="What is measured of retrieved ids, such as ``nDCG@10``, in place of ``retrieval.measures`` of "
            "the config; None leaves them."
        ),
    ] = None
    drop_missing: Annotated[
        bool,
        Field(
            description="Whether the run is scored although something that scored it is missing: a matcher or a "
            "registered metric or evaluator (load its plugin again), an evaluator, or a model that was passed. Nothing "
            "is imported because the folder names it."
        ),
        Cli(
            help="With a run's folder: score it although a plugin, a matcher or an evaluator that scored it is not "
            "given.",
            before="max_cost",
        ),
    ] = False


class ScoreOptions(ScoringOptions):
    """The options of ``score_responses``."""

    output_dir: Annotated[
        str | PathLike[str] | None, Checked(checked_path), Field(description="The run's folder; None writes nothing.")
    ] = None
    overwrite: Annotated[
        bool, Field(description="Replace an earlier run in the folder."), Cli(panel=FOLDER, before="judge_cache")
    ] = False
    label: Annotated[
        str | None, Field(description="A name for the run, kept in run.json."), Cli(panel=FOLDER), Recorded()
    ] = None
    href: Annotated[
        str | None, Field(description="A link for the run, kept in run.json."), Cli(panel=FOLDER), Recorded()
    ] = None
    tags: Annotated[
        Sequence[str],
        Checked(checked_texts),
        Field(description="Marks for the run, kept in run.json."),
        Cli(name="--tag", help="A mark for the run, kept in run.json; may be repeated.", panel=FOLDER),
        Recorded(writes=list),
    ] = ()


class AskingOptions(Options):
    """Which questions an agent is asked, and how."""

    limit: Annotated[int | None, Field(ge=1, description="Only the first N questions."), Cli(panel=SELECTION)] = None
    template_ids: Annotated[
        Sequence[str],
        Checked(checked_ids),
        Field(description="Only the questions of these templates."),
        Cli(name="--template", help="Only the questions of this template; may be repeated.", panel=SELECTION),
    ] = ()
    question_ids: Annotated[
        Sequence[str],
        Checked(checked_ids),
        Field(description="Only the questions with these ids. Only what is selected is scored."),
        Cli(name="--question", help="Only the question with this id; may be repeated.", panel=SELECTION),
    ] = ()
    sample: Annotated[int | None, Field(ge=1, description="Only N questions at random."), Cli(panel=SELECTION)] = None
    seed: Annotated[
        int | None,
        Field(ge=0, description="Makes ``sample`` choose the same questions each time."),
        Cli(help="Makes --sample choose the same questions each time.", panel=SELECTION, least=None),
    ] = None
    max_concurrency: Annotated[
        int,
        Field(
            ge=1,
            description="How many questions are asked at the same time. At a rate limit it is halved, and grows back.",
        ),
        Cli(
            short="-j",
            help="How many questions are asked at the same time; fewer for a while after a rate limit.",
            panel=ASKING,
        ),
        Recorded(LIMITS),
    ] = 8
    requests_per_minute: Annotated[
        float | None,
        Field(gt=0, description="How many attempts may start in a minute, evenly spread."),
        POSITIVE,
        Cli(panel=ASKING),
        Recorded(LIMITS),
    ] = None
    timeout: Annotated[
        float | None,
        Field(
            gt=0,
            description="Seconds for each attempt, longer by those for which another question blocked the event loop "
            "(``stalled_sec``); None for no limit. It is not tried again.",
        ),
        POSITIVE,
        Cli(
            help="Seconds that the agent has for a question, besides stalls by others; 0 for no limit.",
            panel=ASKING,
            least=0,
            converts=lambda seconds: seconds or None,
        ),
        Recorded(LIMITS),
    ] = 600.0
    max_retries: Annotated[
        int,
        Field(
            ge=0,
            description="How often a failed question is asked again, with growing waits with jitter, or as long as "
            "Retry-After says.",
        ),
        Cli(
            help="How often a question is asked again after a rate limit, a lost connection or a failing server.",
            panel=ASKING,
        ),
        Recorded(LIMITS),
    ] = 2
    retry_on: Annotated[
        "RetryOn",
        _AsGiven,
        Field(
            description="What is worth asking again, as an exception class, a tuple of these or a function; by default "
            "rate limits, HTTP 408, 409, 425, 500, 502, 503, 504 and 529, lost connections and timeouts of HTTP "
            "clients."
        ),
    ] = None
    repeats: Annotated[
        int,
        Field(ge=1, description="How often each question is asked; see ``repeats`` in the aggregates."),
        Cli(help="How often each question is asked, for pass@k.", panel=ASKING),
        Recorded(writes=lambda number: number if number > 1 else None),
    ] = 1
    input_fn: Annotated[
        "Callable[[Question], Any] | str | None",
        Checked(checked_function),
        Field(
            description="Makes the agent's input from a question (a dict with all its keys), or the spec of such a "
            "function. Default: a messages state; the question's text for functions and for Runnables whose input is a "
            "text."
        ),
        Cli(
            type=str,
            help="A function that makes the agent's input from a question (a dict with all its keys).",
            metavar="SPEC",
            panel=ASKING,
        ),
    ] = None
    answer_fn: Annotated[
        Callable[[Any], Any] | str | None,
        Checked(checked_function),
        Field(
            description="Makes the answer from the agent's output, likewise. Default: the last model message, else "
            "``structured_response``, ``answer`` or ``output``, else the text itself."
        ),
        Cli(type=str, help="A function that makes the answer from the agent's output.", metavar="SPEC", panel=ASKING),
    ] = None
    agent_config: Annotated[
        Mapping[str, Any] | None,
        Checked(checked_mapping),
        Field(description='More of LangChain\'s config, such as ``{"recursion_limit": 50}``.'),
        Cli(
            type=str,
            help='More of the config that the agent is invoked with, such as \'{"configurable": {"user": "eval"}}\'.',
            metavar="JSON",
            panel=ASKING,
        ),
    ] = None
    agent_key_env: Annotated[
        str | None,
        Checked(checked_variable),
        Field(
            description="The environment variable with the key of the agent's server; LANGSMITH_API_KEY by default. "
            "The key is never written down."
        ),
        Cli(metavar="NAME", panel=ASKING),
    ] = None
    max_failures: Annotated[
        int | str | None,
        Checked(checked_failure_limit),
        Field(description="End the run when more questions failed than this number, or this share such as 5%."),
        Cli(type=str, metavar="N|N%", panel=ENDING),
        Recorded(LIMITS, writes=str),
    ] = None
    max_tokens: Annotated[
        int | None,
        Field(
            ge=1,
            description="End the run before a question that would take it beyond so many tokens, taken to be as dear "
            "as the dearest so far.",
        ),
        Cli(help="End the run before a question that would take it beyond so many tokens.", panel=ENDING),
        Recorded(LIMITS),
    ] = None
    max_time: Annotated[
        float | timedelta | None,
        Checked(checked_seconds),
        Field(description="End the run before a question that would take it beyond so many seconds, or a timedelta."),
        Cli(help="End the run before a question that would take it beyond so many seconds.", panel=ENDING),
        Recorded(LIMITS),
    ] = None
    retry_errors: Annotated[
        bool, Field(description="Ask the failed questions of the run again."), Cli(panel=FOLDER)
    ] = False
    force: Annotated[
        bool,
        Field(
            description="Go on with the folder's run although its questions, its agent or what is kept of it changed, "
            "or a plugin, a matcher, an evaluator or a model that scored it is missing."
        ),
        Cli(
            help="Go on with a run although its questions, its agent or what is kept of it changed, or a plugin, a "
            "matcher or an evaluator that scored it is missing.",
            panel=FOLDER,
        ),
    ] = False


class RunOptions(ScoreOptions, AskingOptions):
    """The options of ``run_benchmark``."""

    output_dir: Annotated[
        str | PathLike[str] | None,
        Checked(checked_path),
        Field(
            description="The run's folder, for run.json, responses.jsonl (a line as each response ends), "
            "results.jsonl and aggregates.yaml. Where it holds this run already, the run goes on. None writes nothing."
        ),
    ] = None
    max_cost: Annotated[
        float | None,
        Field(
            gt=0,
            description="Spend no more than so many USD: the run ends before a question, of agent and judges, that "
            "would.",
        ),
        POSITIVE,
        Cli(panel=ENDING, least=0),
        Recorded(LIMITS),
    ] = None
    grace: Annotated[
        float,
        Field(ge=0, description="Seconds that questions in flight have to end, once the run is interrupted."),
        Hint("Give seconds, 0 or more."),
        Cli(
            help="Seconds that questions in flight have to end after Ctrl-C; a second Ctrl-C ends the run at once.",
            panel=ENDING,
        ),
    ] = 30.0
    capture: Annotated[
        "CaptureKeywords | None",
        Checked(checked_capture, takes_fields=True),
        Field(
            description='Options of ``GraphRAGEvalCallbackHandler``, such as ``{"redact": function}``; each goes '
            "before that in the config's section ``capture``."
        ),
    ] = None
    progress: Annotated[
        ProgressMode | bool,
        Checked(checked_progress_mode),
        Field(description='"bar", "lines", "off" (or False); auto is a bar in a terminal or a notebook.'),
        QUIET,
    ] = "auto"
    log_file: Annotated[
        str | PathLike[str] | None,
        Checked(checked_path),
        Field(description="A file for what happens, one JSON object a line: attempts, retries, responses, scores."),
        Cli(metavar="FILE", panel=DISPLAY),
    ] = None
    on_response: Annotated[
        "Callable[[Response], None] | None",
        Checked(checked_function),
        Field(description="Called with each response as it ends."),
    ] = None
    on_event: Annotated[
        "Observer | None",
        Checked(checked_function),
        Field(description="Called with each RunEvent, from several threads."),
    ] = None

    @cached_property
    def retry(self) -> "RetryPolicy":
        """What is asked again, and how often."""
        from graphrag_eval_lc.retrying import RetryPolicy

        return RetryPolicy(max_retries=self.max_retries, retry_on=self.retry_on)

    @cached_property
    def selection(self) -> "Selection":
        """Which questions are asked; with a seed that was drawn, where a sample is and no seed was given."""
        from graphrag_eval_lc.evaluation.samples import Selection

        return Selection(
            limit=self.limit,
            template_ids=tuple(self.template_ids),
            question_ids=tuple(self.question_ids),
            sample=self.sample,
            seed=self.seed,
        )

    @property
    def failure_limit(self) -> "FailureLimit | None":
        """How many questions may fail."""
        return cast("FailureLimit | None", self.max_failures)

    def selection_in(self, earlier: Mapping[str, Any] | None) -> "Selection":
        """Return the selection; where no seed was given, with that of an earlier session of the run, its run.json."""
        drawn = (earlier or {}).get("selection") or {}
        is_seed_drawn = self.sample is not None and self.seed is None
        if is_seed_drawn and drawn.get("sample") == self.sample and "seed" in drawn:
            return replace(self.selection, seed=drawn["seed"])
        return self.selection

    def with_selection(self, selection: "Selection") -> Self:
        """Return the same options with another selection."""
        options = self.model_copy()
        options.__dict__["selection"] = selection
        return options

    @model_validator(mode="after")
    def _complete(self) -> Self:
        _ = self.retry, self.selection  # which check their values
        return self


# The options once they are checked: for type checkers what a field is then, where that is less than what may be given.
class CheckedScoreOptions(ScoreOptions):
    """The options of ``score_responses``, checked."""

    if TYPE_CHECKING:
        config: EvaluationConfig
        evaluators: tuple[Callable[..., Any], ...]
        output_dir: Path | None
        tags: tuple[str, ...]


class CheckedScoreRunOptions(ScoreRunOptions):
    """The options of ``score_run``, checked."""

    if TYPE_CHECKING:
        evaluators: tuple[Callable[..., Any], ...]


class CheckedOptions(RunOptions):
    """The options of ``run_benchmark``, checked."""

    if TYPE_CHECKING:
        config: EvaluationConfig
        evaluators: tuple[Callable[..., Any], ...]
        output_dir: Path | None
        tags: tuple[str, ...]
        input_fn: Callable[[Question], Any] | None
        answer_fn: Callable[[Any], Any] | None
        agent_config: Mapping[str, Any]
        max_time: float | None
        capture: CaptureKeywords
        progress: ProgressMode
        log_file: Path | None


def completed(model: type[M]) -> type[M]:
    """Return a model of options that knows the types of its fields, also those that importing it does not load."""
    from graphrag_eval_lc.config import ConfigSource
    from graphrag_eval_lc.dataset.loading import DatasetSource

    types: dict[str, Any] = {"ConfigSource": ConfigSource, "DatasetSource": DatasetSource}
    if issubclass(model, RunOptions):
        from graphrag_eval_lc.capture.handler import CaptureKeywords
        from graphrag_eval_lc.evaluation.events import Observer
        from graphrag_eval_lc.records import Question, Response
        from graphrag_eval_lc.retrying import RetryOn

        types |= {"CaptureKeywords": CaptureKeywords, "Observer": Observer, "RetryOn": RetryOn}
        types |= {"Question": Question, "Response": Response}
    model.model_rebuild(_types_namespace=types)
    return model


def checked_options(given: Mapping[str, Any]) -> CheckedOptions:
    """Return the options of a run.

    Raises:
        OptionError: An option does not exist, or has a value that it cannot have.
        ConfigError: The config has a key or value that does not exist.
    """
    return completed(CheckedOptions)(**given)
