"""What the driver of a run and its workers tell each other. All of it can be pickled."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphrag_eval_lc.benchmark.attempts import NOTHING_SPENT, Spent
from graphrag_eval_lc.budget import Limit
from graphrag_eval_lc.capture.handler import CaptureKeywords
from graphrag_eval_lc.config import PriceConfig
from graphrag_eval_lc.evaluation.events import RunEvent
from graphrag_eval_lc.records import Question, Response
from graphrag_eval_lc.retrying import RetryPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a worker needs to know to ask the agent as the driver would.

    Attributes:
        agent: The agent, as it was given: a spec, a Runnable or a function.
        agent_config: More of LangChain's config.
        key_variable: The environment variable with the key of the agent's server; None for its default.
        input_fn: Makes the agent's input from a question; None for its default.
        answer_fn: Makes the answer from its output; None for the default.
        capture: The options of the handler.
        timeout: Seconds for an attempt; None for no limit.
        retry: What is worth another attempt.
        prices: The prices of the config by model, if what the agent's model calls spend is to be reported; None: no
            budget is set.
        places: How many questions a worker may be asked at the same time. With one nobody else is held up, and code
            that blocks the event loop is not told.
        repeats: How often each question is asked.
        run_id: The run.
        spool: Whether the worker keeps its responses on its own disk too, until the session has ended.
        tells_so_far: Whether it tells of each step at once, as its questions are to blame where it is lost.
    """

    agent: Any
    agent_config: Mapping[str, Any] = field(default_factory=dict)
    key_variable: str | None = None
    input_fn: Callable[[Question], Any] | None = None
    answer_fn: Callable[[Any], Any] | None = None
    capture: CaptureKeywords = field(default_factory=CaptureKeywords)
    timeout: float | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    prices: Mapping[str, PriceConfig] | None = None
    places: int = 1
    repeats: int = 1
    run_id: str = ""
    spool: bool = False
    tells_so_far: bool = False


# --- from the driver -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the agent a question once.

    Attributes:
        number: The number of the attempt among all of the driver.
        question: The question.
        attempt_id: The attempt, as the metadata of the agent's config name it.
    """

    number: int
    question: Question
    attempt_id: str


@dataclass(frozen=True, slots=True)
class Abandon:
    """Give up an attempt, by its number."""

    number: int


@dataclass(frozen=True, slots=True)
class OutOfBudget:
    """Nothing is left of the budget; with its limit and the reason."""

    limit: Limit
    message: str


@dataclass(frozen=True, slots=True)
class Close:
    """Close the agent, and end. The driver has all that was answered."""


ToWorker = Ask | Abandon | OutOfBudget | Close


# --- from a worker ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ready:
    """The agent is loaded."""


@dataclass(frozen=True, slots=True)
class Unusable:
    """The agent cannot be loaded; with the reason and the hint of the error."""

    reason: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt failed, as far as the driver asks.

    Attributes:
        text: The error.
        is_interrupted: Whether the run was stopped, or its money used up, while the agent was at work.
        is_timeout: Whether the question's time was over, so that some of its code may still be at work.
        is_rate_limit: Whether it is about a rate limit.
        retry_after: Seconds that a server asks to wait; None where it does not.
        is_worth_a_retry: Whether another attempt may well succeed.
    """

    text: str
    is_interrupted: bool = False
    is_timeout: bool = False
    is_rate_limit: bool = False
    retry_after: float | None = None
    is_worth_a_retry: bool = False


@dataclass(frozen=True, slots=True)
class Answered:
    """An attempt ended.

    Attributes:
        number: The number of the attempt.
        response: The response.
        failure: Why it failed; None where it did not.
        counted: What the driver's budget has counted for it.
    """

    number: int
    response: Response
    failure: Failure | None = None
    counted: Spent = NOTHING_SPENT


@dataclass(frozen=True, slots=True)
class Spending:
    """What a call of a model spent, in USD and tokens."""

    cost: float
    tokens: int


@dataclass(frozen=True, slots=True)
class Told:
    """An event that the observers of the run are to be told, and the warning that goes with it."""

    event: RunEvent | None = None
    warning: str | None = None


@dataclass(frozen=True, slots=True)
class Closed:
    """The agent is closed; with what went wrong."""

    problem: str | None = None


FromWorker = Ready | Unusable | Answered | Spending | Told | Closed
