"""The options of ``run_benchmark``: each is one field, which Python, the command line and run.json share."""

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeAlias, cast

from graphrag_eval_lc.benchmark.option_fields import (
    ASKING,
    DISPLAY,
    ENDING,
    FOLDER,
    GATES,
    SELECTION,
    Cli,
    ProgressMode,
    Recorded,
)
from graphrag_eval_lc.benchmark.options import (
    AS_GIVEN,
    checked_by,
    checked_capture,
    checked_function,
    checked_mapping,
    checked_path,
    checked_seconds,
    completed_by,
    says,
)
from graphrag_eval_lc.benchmark.score_options import (
    PROGRESS,
    CheckedScoreOptions,
    CheckedScoreRunOptions,
    FolderOptions,
)
from graphrag_eval_lc.config import EvaluationConfig, GateConfig
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.evaluation.events import Observer
from graphrag_eval_lc.evaluation.samples import MOST_REPEATS, Shard, samples_of
from graphrag_eval_lc.evaluation.stop_signal import FailureLimit
from graphrag_eval_lc.prices import dollars
from graphrag_eval_lc.records import Question, Response, Template
from graphrag_eval_lc.retrying import RetryOn, RetryPolicy
from graphrag_eval_lc.texts import counted

if TYPE_CHECKING:  # --help need not wait for LangChain
    from graphrag_eval_lc.capture.values import CaptureKeywords
else:
    CaptureKeywords = Mapping[str, Any]

LIMITS = "limits"


class RunOptions(FolderOptions):
    """The options of ``run_benchmark``."""

    limit: Annotated[int | None, says("Only the first N questions.", ge=1), Cli(SELECTION, "N", is_common=True)] = None
    sample: Annotated[int | None, says("Only N questions at random.", ge=1), Cli(SELECTION, "N")] = None
    seed: Annotated[int | None, says("Makes ``sample`` choose the same questions each time.", ge=0), Cli(SELECTION)] = (
        None
    )
    shard: Annotated[
        Shard | str | None,
        checked_by(lambda value: None if value is None else Shard.read(value)),
        says(
            "Ask only one fixed shard of the samples, such as 3/16 (the third of sixteen), and write it to a "
            "separate folder. Each shard gets its share of ``requests_per_minute``, ``max_tokens``, ``max_cost`` "
            "and ``max_failures``; merge (``merge_runs``) joins the shards."
        ),
        Cli(SELECTION, "K/N"),
    ] = None
    max_concurrency: Annotated[
        int,
        says("How many questions are asked concurrently. A rate limit temporarily halves this number.", ge=1),
        Cli(ASKING, "N", short="-j", is_common=True),
        Recorded(LIMITS),
    ] = 8
    requests_per_minute: Annotated[
        float | None,
        says("How many attempts may start in a minute, evenly spread.", gt=0),
        Cli(ASKING),
        Recorded(LIMITS),
    ] = None
    timeout: Annotated[
        float | None,
        says("Seconds for each attempt; None for no limit. A timeout is not retried.", gt=0),
        Cli(
            ASKING,
            "SEC",
            help="Seconds for each question; 0 for no limit. A timeout is not retried.",
            converts=lambda seconds: seconds or None,
        ),
        Recorded(LIMITS),
    ] = 600.0
    max_retries: Annotated[
        int,
        says(
            "How many times a question is retried after a rate limit, a lost connection or a server error. The "
            "waits grow, with jitter, unless a Retry-After header sets them.",
            ge=0,
        ),
        Cli(ASKING),
        Recorded(LIMITS),
    ] = 2
    retry_on: Annotated[
        RetryOn,
        AS_GIVEN,
        says(
            "Which errors are retried, as an exception class, a tuple of these or a function; by default rate "
            "limits, HTTP 408, 409, 425, 500, 502, 503, 504 and 529, lost connections and timeouts of HTTP clients."
        ),
    ] = None
    repeats: Annotated[
        int,
        says(
            "How many times each question is asked, such as for pass@k; see ``repeats`` in the aggregates.",
            ge=1,
            le=MOST_REPEATS,
        ),
        Cli(ASKING, "N", help="How many times each question is asked, for example to compute pass@k.", is_common=True),
        Recorded(writes=lambda number: number if number > 1 else None),
    ] = 1
    isolate: Annotated[
        bool,
        says(
            "Run each question in a separate process of this machine, so that code that blocks, leaks or crashes "
            "fails only that question, and a timeout really ends it."
        ),
        Cli(ASKING),
        Recorded(writes=lambda is_isolated: is_isolated or None),
    ] = False
    input_fn: Annotated[
        Callable[[Question], Any] | str | None,
        checked_by(checked_function),
        says(
            "A function, or its spec, that makes the agent's input from a question (a dict with all its keys). "
            "Default: a messages state; the question's text for functions and for Runnables whose input is a "
            "string."
        ),
        Cli(ASKING, "SPEC"),
    ] = None
    answer_fn: Annotated[
        Callable[[Any], Any] | str | None,
        checked_by(checked_function),
        says(
            "A function, or its spec, that makes the answer from the agent's output. Default: the last model "
            "message, otherwise ``structured_response``, ``answer`` or ``output``, otherwise the whole output."
        ),
        Cli(ASKING, "SPEC"),
    ] = None
    agent_config: Annotated[
        Mapping[str, Any] | None,
        checked_by(checked_mapping),
        says('Extra LangChain config for the agent, such as ``{"recursion_limit": 50}``.', validate_default=True),
        Cli(ASKING, "JSON", type=str),
    ] = None
    agent_key_env: Annotated[
        str | None,
        says(
            "The environment variable with the key of the agent's server; LANGSMITH_API_KEY by default. The key is "
            "never stored."
        ),
        Cli(ASKING, "NAME"),
    ] = None
    max_failures: Annotated[
        str | int | None,
        checked_by(lambda value: None if value is None else FailureLimit.read(value)),
        says("End the run when more than this number of questions have failed, or more than this share, such as 5%."),
        Cli(ENDING, "N|N%"),
        Recorded(LIMITS, writes=str),
    ] = None
    max_tokens: Annotated[
        int | None,
        says(
            "End the run when the agent's model calls have used this many tokens. Calls in flight are completed.", ge=1
        ),
        Cli(ENDING),
        Recorded(LIMITS),
    ] = None
    max_time: Annotated[
        float | timedelta | None,
        checked_by(checked_seconds),
        says("End the run after this many seconds (in Python also a timedelta). Questions in flight are abandoned."),
        Cli(ENDING),
        Recorded(LIMITS),
    ] = None
    max_cost: Annotated[
        float | None,
        says(
            "End the run when this many USD are spent. The agent and the judges count. The limit is checked before "
            "each question and each model request. Requests in flight are completed and may exceed it.",
            gt=0,
        ),
        Cli(ENDING, "USD", is_common=True),
        Recorded(LIMITS),
    ] = None
    grace: Annotated[
        float,
        says(
            "How many seconds questions in flight have to finish after Ctrl-C; a second Ctrl-C ends the run at once.",
            ge=0,
        ),
        Cli(ENDING),
    ] = 30.0
    retry_errors: Annotated[bool, says("Retry the failed questions of the run."), Cli(FOLDER)] = False
    keep_answers: Annotated[
        bool,
        says(
            "Keep the answers in the folder even if the agent's source changed, and ask only the rest; run.json "
            "and the report record it."
        ),
        Cli(FOLDER),
    ] = False
    force: Annotated[
        bool,
        says(
            "Resume the folder's run even if its questions, the agent's name or config, or the capture settings "
            "changed, or a plugin, a matcher, an evaluator or a model that scored it is missing."
        ),
        Cli(FOLDER),
    ] = False
    capture: Annotated[
        CaptureKeywords | None,
        completed_by(checked_capture),
        says(
            'Options of ``GraphRAGEvalCallbackHandler``, such as ``{"redact": function}``; each overrides that '
            "in the config's section ``capture``.",
            validate_default=True,
        ),
    ] = None
    baseline: Annotated[
        str | PathLike[str] | None,
        checked_by(checked_path),
        says("The folder of a run; ``run.regression`` says whether this one is worse in the main metric."),
        Cli(
            GATES,
            "DIR",
            help="The run for --fail-on-regression: its folder, or a folder of runs, of which the last one is used.",
        ),
        Recorded(writes=os.path.abspath),
    ] = None
    max_drop: Annotated[
        float,
        says(
            "How much worse than ``baseline`` the main metric may be, 0 to 1, if the test is too weak to decide.",
            ge=0,
            le=1,
        ),
        Cli(GATES, "DROP"),
    ] = 0.05  # DEFAULT_MAX_DROP, without loading the comparison for --help
    confirm: Annotated[
        int,
        says(
            "Before ``regression`` fails, ask the questions that changed since ``baseline`` this many more times; "
            "the means over all answers then decide. 1 is enough.",
            ge=0,
        ),
        Cli(
            GATES,
            "N",
            help="Before --fail-on-regression fails, ask the questions that changed since --baseline N more times; "
            "the means over all answers then decide. 1 is enough.",
        ),
    ] = 0
    log_file: Annotated[
        str | PathLike[str] | None,
        checked_by(checked_path),
        says("A log file with one JSON object per line: attempts, retries, responses, scores."),
        Cli(DISPLAY, "FILE"),
    ] = None
    progress: PROGRESS = "auto"
    on_response: Annotated[
        Callable[[Response], None] | None, checked_by(checked_function), says("Called with each response as it ends.")
    ] = None
    on_event: Annotated[
        Observer | None, checked_by(checked_function), says("Called with each RunEvent, from several threads.")
    ] = None

    def model_post_init(self, context: object) -> None:
        """Refuse wrong retry and selection options early, and options that cannot apply to a shard or baseline."""
        _ = self.retry, self.selection  # which check their values
        if self.shard is not None and self.sample is not None and self.seed is None:
            what = "shard with sample needs seed, so that all shards draw the same questions"
            raise OptionError(what, hint="Use the same seed for all of them, such as 1.")
        if self.shard is not None and self.gates:
            what = "shard and gates exclude each other: the gates apply to the whole run"
            raise OptionError(what, hint="Pass the gates to merge_runs.")
        if self.baseline and self.output_dir and Path(self.baseline).resolve() == Path(self.output_dir).resolve():
            what = "baseline and output_dir are the same folder, so the run would be compared with itself"
            raise OptionError(what, key="baseline", hint="Write the run to another folder.")

    @cached_property
    def retry(self) -> RetryPolicy:
        """The retry policy: which errors are retried, and how often."""
        return RetryPolicy(max_retries=self.max_retries, retry_on=self.retry_on)

    @property
    def has_workers(self) -> bool:
        """Whether the agent runs in other processes."""
        return self.isolate or self.engine is not None

    @property
    def failure_limit(self) -> FailureLimit | None:
        """The limit of failed questions; None without one."""
        return cast("FailureLimit | None", self.max_failures)

    def in_shard(self) -> Self:
        """Return the options of this shard, with its share of the rate limit and the budgets.

        The shares of all shards add up to the whole. The options of a whole run are returned unchanged.
        """
        shard = cast("Shard | None", self.shard)
        if shard is None:
            return self
        per_minute, cost, tokens, failures = (
            self.requests_per_minute,
            self.max_cost,
            self.max_tokens,
            self.failure_limit,
        )
        return self.replaced(
            requests_per_minute=None if per_minute is None else per_minute / shard.of,
            max_cost=None if cost is None else cost / shard.of,
            max_tokens=None if tokens is None else shard.part_of(tokens),
            max_failures=None if failures is None else failures.in_shard(shard),
        )

    def shard_note(self, questions: Sequence[tuple[Template, Question]]) -> str | None:
        """Return a sentence about the shard and its number of questions; None for a whole run."""
        if (shard := cast("Shard | None", self.shard)) is None:
            return None
        part = self.in_shard()
        number, whole = len(samples_of(questions, self.repeats, shard)), len(questions) * self.repeats
        limits = []
        if self.requests_per_minute is not None and part.requests_per_minute is not None:
            limits.append(f"{part.requests_per_minute:.4g} of its {self.requests_per_minute:.10g} requests a minute")
        if self.max_tokens is not None:
            limits.append(f"{part.max_tokens:,} of its {self.max_tokens:,} tokens")
        if self.max_cost is not None and part.max_cost is not None:
            limits.append(f"{dollars(part.max_cost)} of its {dollars(self.max_cost)}")
        if self.failure_limit is not None and not self.failure_limit.is_share:
            limits.append(f"{part.failure_limit} of its {self.failure_limit} failures")
        note = f"this is shard {shard} of a run: {counted(number, 'question' if self.repeats == 1 else 'sample')}"
        note += f" of {whole:,}" + (f", with {', '.join(limits)}" if limits else "")
        config: Any = self.config
        return note + ("; the gates are checked when the shards are merged" if config.gates else "")


# The same options after validation: the annotations below are for type checkers only.
class CheckedOptions(RunOptions):
    """The options of ``run_benchmark`` after validation, with the type that each field then has."""

    if TYPE_CHECKING:
        config: EvaluationConfig
        evaluators: tuple[Callable[..., Any], ...]
        gates: tuple[GateConfig, ...]
        output_dir: Path | None
        baseline: Path | None
        tags: tuple[str, ...]
        shard: Shard | None
        input_fn: Callable[[Question], Any] | None
        answer_fn: Callable[[Any], Any] | None
        agent_config: Mapping[str, Any]
        max_time: float | None
        capture: CaptureKeywords
        progress: ProgressMode
        log_file: Path | None


# The checked options of every call that scores.
ScoredBy: TypeAlias = CheckedOptions | CheckedScoreOptions | CheckedScoreRunOptions
