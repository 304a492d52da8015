"""The options of a run: each is one field, from which Python, the command line and run.json take it.

Heavy modules are imported where they are needed, so that ``--help`` need not wait for them.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, cast

from pydantic import Field, model_validator

from graphrag_eval_lc.benchmark.option_checks import (
    AS_GIVEN,
    POSITIVE,
    Checked,
    Options,
    checked_capture,
    checked_failure_limit,
    checked_function,
    checked_mapping,
    checked_path,
    checked_seconds,
    checked_shard,
    checked_variable,
    refuse_conflicts_of,
)
from graphrag_eval_lc.benchmark.option_fields import (
    ASKING,
    DISPLAY,
    ENDING,
    FOLDER,
    GATES,
    SELECTION,
    Cli,
    Hint,
    ProgressMode,
    Recorded,
)
from graphrag_eval_lc.benchmark.score_options import (
    Engine,
    Progress,
    QuestionIds,
    RayAddress,
    RayWorkers,
    RunFolderOptions,
    TemplateIds,
)
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.evaluation.samples import MOST_REPEATS

if TYPE_CHECKING:
    from graphrag_eval_lc.capture.handler import CaptureKeywords
    from graphrag_eval_lc.config import EvaluationConfig
    from graphrag_eval_lc.dataset.selection import Selection
    from graphrag_eval_lc.evaluation.events import Observer
    from graphrag_eval_lc.evaluation.limits import FailureLimit
    from graphrag_eval_lc.evaluation.shards import Shard
    from graphrag_eval_lc.records import Question, Response
    from graphrag_eval_lc.retrying import RetryOn, RetryPolicy

LIMITS = "limits"


class QuestionOptions(Options):
    """Which questions an agent is asked, and how: the first fields in ``help(run_benchmark)`` and in ``--help``."""

    limit: Annotated[
        int | None,
        Field(ge=1, description="Only the first N questions."),
        Cli(panel=SELECTION, metavar="N", is_common=True),
    ] = None
    template_ids: TemplateIds = ()
    question_ids: QuestionIds = ()
    sample: Annotated[
        int | None, Field(ge=1, description="Only N questions at random."), Cli(panel=SELECTION, metavar="N")
    ] = None
    seed: Annotated[
        int | None,
        Field(ge=0, description="Makes ``sample`` choose the same questions each time."),
        Cli(help="Makes --sample choose the same questions each time.", panel=SELECTION, least=None),
    ] = None
    shard: Annotated[
        "Shard | str | None",
        Checked(checked_shard),
        Field(
            description="Ask a fixed part of the samples, such as 3/16 of sixteen (the first is 1/16), into a folder "
            "of its own, with as much of ``requests_per_minute``, ``max_tokens``, ``max_cost`` and ``max_failures``; "
            "``merge_runs`` puts the parts together."
        ),
        Cli(
            type=str,
            help="Ask only this part of the questions, such as 3/16 of sixteen (the first is 1/16), into a folder of "
            "its own, with its part of the limits (requests a minute, tokens, cost, failures); merge joins the parts.",
            panel=SELECTION,
            metavar="K/N",
        ),
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
            metavar="N",
            is_common=True,
            brief="How many questions are asked at once.",
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
            description="Seconds for each attempt; None for no limit. It is not tried again.",
        ),
        POSITIVE,
        Cli(
            help="Seconds that the agent has for a question; 0 for no limit.",
            panel=ASKING,
            metavar="SEC",
            least=0,
            is_common=True,
            brief="Seconds for a question; 0 for no limit.",
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
        AS_GIVEN,
        Field(
            description="What is worth asking again, as an exception class, a tuple of these or a function; by default "
            "rate limits, HTTP 408, 409, 425, 500, 502, 503, 504 and 529, lost connections and timeouts of HTTP "
            "clients."
        ),
    ] = None
    repeats: Annotated[
        int,
        Field(ge=1, le=MOST_REPEATS, description="How often each question is asked; see aggregates' ``repeats``."),
        Cli(
            help="How often each question is asked, for pass@k.",
            panel=ASKING,
            metavar="N",
            is_common=True,
            brief="How often each is asked.",
        ),
        Recorded(writes=lambda number: number if number > 1 else None),
    ] = 1
    isolate: Annotated[
        bool,
        Field(
            description="Ask each question in a process of its own on this machine, ``max_concurrency`` of them, so "
            "that code that blocks, leaks or crashes costs one question, and a timeout really ends it."
        ),
        Cli(
            help="Ask each question in a process of its own, so that code that blocks, leaks or crashes costs one "
            "question, and a timeout really ends it.",
            panel=ASKING,
        ),
        Recorded(writes=lambda is_isolated: is_isolated or None),
    ] = False
    engine: Engine = None
    ray_address: RayAddress = None
    workers: RayWorkers = None
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
        bool,
        Field(description="Ask the failed questions of the run again."),
        Cli(panel=FOLDER, is_common=True, brief="Ask the failed questions again."),
    ] = False
    keep_answers: Annotated[
        bool,
        Field(
            description="Keep the answers in the folder although the agent's source changed, and ask only the rest; "
            "run.json and the report say so."
        ),
        Cli(panel=FOLDER),
    ] = False
    force: Annotated[
        bool,
        Field(
            description="Resume the folder's run although its questions, the agent's name or config, or what is "
            "kept of it changed, or a plugin, a matcher, an evaluator or a model that scored it is missing."
        ),
        Cli(panel=FOLDER),
    ] = False


class RunOptions(RunFolderOptions, QuestionOptions):
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
            description="Spend no more than so many USD, on agent and judges. A request of a judge, or of the agent's "
            "models with ``max_tokens``, is not sent where it could pass that; what a question will cost is taken from "
            "the dearest so far.",
        ),
        POSITIVE,
        Cli(panel=ENDING, metavar="USD", least=0, is_common=True, brief="Spend no more, on agent and judges."),
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
    baseline: Annotated[
        str | PathLike[str] | None,
        Checked(checked_path),
        Field(description="The folder of a run; ``run.regression`` says whether this one is worse in the main metric."),
        Cli(
            help="The run for --fail-on-regression: its folder, or a folder of runs, of which the last counts.",
            metavar="DIR",
            panel=GATES,
        ),
    ] = None
    max_drop: Annotated[
        float,
        Field(
            ge=0,
            le=1,
            description="How much worse than ``baseline`` the main metric may be if the test is too weak to decide.",
        ),
        Cli(
            help="How much worse than --baseline the main metric may be, 0 to 1, if the test is too weak to decide.",
            metavar="DROP",
            panel=GATES,
        ),
    ] = 0.05  # DEFAULT_MAX_DROP, without loading the comparison for --help
    confirm: Annotated[
        int,
        Field(
            ge=0,
            description="Before ``regression`` fails, ask what changed since ``baseline`` so many more times.",
        ),
        Cli(
            help="Before --fail-on-regression fails, ask the questions that changed since --baseline N more times; the "
            "means over all answers then decide. 1 is enough.",
            metavar="N",
            panel=GATES,
        ),
    ] = 0
    progress: Progress = "auto"
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
        from graphrag_eval_lc.dataset.selection import Selection

        return Selection(
            limit=self.limit,
            template_ids=tuple(self.template_ids),
            question_ids=tuple(self.question_ids),
            sample=self.sample,
            seed=self.seed,
        )

    @property
    def has_workers(self) -> bool:
        """Whether the agent is asked in other processes."""
        return self.isolate or self.engine is not None

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

    def in_shard(self) -> Self:
        """Return the options as this shard has them: with its part of what may be asked in a minute, and spent.

        Those of a whole run are returned as they are. The parts of all shards add up to the whole.
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

    @classmethod
    def _types(cls) -> dict[str, Any]:
        from graphrag_eval_lc.capture.handler import CaptureKeywords
        from graphrag_eval_lc.evaluation.events import Observer
        from graphrag_eval_lc.evaluation.shards import Shard
        from graphrag_eval_lc.records import Question, Response
        from graphrag_eval_lc.retrying import RetryOn

        types = {"CaptureKeywords": CaptureKeywords, "Observer": Observer, "RetryOn": RetryOn, "Callable": Callable}
        return {**super()._types(), **types, "Question": Question, "Response": Response, "Shard": Shard}

    @model_validator(mode="after")
    def _complete(self) -> Self:
        refuse_conflicts_of(self)
        _ = self.retry, self.selection  # which check their values
        if self.shard is not None:
            self._refuse_beside_shard()
        if self.baseline and self.output_dir and Path(self.baseline).resolve() == Path(self.output_dir).resolve():
            what = "baseline and output_dir are the same folder, so the run would be compared with itself"
            raise OptionError(what, key="baseline", hint="Write the run to another folder.")
        return self

    def _refuse_beside_shard(self) -> None:
        """Refuse what means nothing for a part of a run.

        Raises:
            OptionError: Each shard would draw a sample of its own, or a gate is given.
        """
        if self.sample is not None and self.seed is None:
            what = "shard beside sample needs seed, so that all shards draw the same questions"
            raise OptionError(what, hint="Give all of them the same seed, such as 1.")
        if self.gates:
            what = "shard and gates exclude each other: a part of the run is not held against the bounds of the whole"
            raise OptionError(what, hint="Give the gates to merge_runs.")


class CheckedOptions(RunOptions):
    """The options of ``run_benchmark``, checked."""

    if TYPE_CHECKING:
        config: EvaluationConfig
        evaluators: tuple[Callable[..., Any], ...]
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


def checked_options(given: Mapping[str, Any]) -> CheckedOptions:
    """Return the options of a run.

    Raises:
        OptionError: An option does not exist, or has a value that it cannot have.
        ConfigError: The config has a key or value that does not exist.
    """
    return CheckedOptions.completed()(**given)
