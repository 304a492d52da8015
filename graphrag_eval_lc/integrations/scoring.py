"""Ask and score one question for the runners of other tools, which pass inputs, outputs and a reference.

The modules of these tools are thin wrappers around this one, so that a question has the same scores everywhere.
"""

import asyncio
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import Any, Final, NamedTuple, cast

from graphrag_eval_lc.aggregation.sample_values import Metrics
from graphrag_eval_lc.benchmark.agents import aload_agent
from graphrag_eval_lc.benchmark.attempts import AgentCall
from graphrag_eval_lc.capture.values import CaptureKeywords
from graphrag_eval_lc.config import ConfigSource, load_config
from graphrag_eval_lc.dataset.loading import DatasetSource, questions_of, read_dataset
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.evaluation.evaluate import run_evaluation
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.integrations.scores import comment_on, is_main
from graphrag_eval_lc.records import Question, Response, Template
from graphrag_eval_lc.registry.metrics import metric_spec
from graphrag_eval_lc.view.samples import seen_samples

_ID, _TEXT, _TEMPLATE = "question_id", "question", "template_id"
_OF_INPUTS: Final = ("id", "question_text")


class QuestionScore(NamedTuple):
    """A score of one question, and why it is not the best value; the comment is empty if it is."""

    name: str
    value: float
    comment: str


class Asked(NamedTuple):
    """A question of a dataset in the form of other runners.

    Attributes:
        inputs: ``question`` (its text), ``question_id`` and ``template_id``.
        reference: Its other keys: ``reference_answer``, ``reference_steps`` and what else it has.
    """

    inputs: dict[str, Any]
    reference: dict[str, Any]


def questions_in(dataset: DatasetSource) -> Iterator[Asked]:
    """Yield the questions of a dataset.

    Raises:
        DatasetError: The dataset cannot be read or breaks the format.

    Example:
        >>> dataset = [{"template_id": "t", "questions": [{"id": "q1", "question_text": "1 + 1?"}]}]
        >>> next(questions_in(dataset)).inputs
        {'question': '1 + 1?', 'question_id': 'q1', 'template_id': 't'}
    """
    for template, question in questions_of(read_dataset(dataset).templates):
        inputs = {
            _TEXT: question["question_text"],
            _ID: str(question["id"]),
            _TEMPLATE: str(template["template_id"]),
        }
        yield Asked(inputs, {key: value for key, value in question.items() if key not in _OF_INPUTS})


class QuestionTarget:
    """Asks an agent one question, and returns the response as the runner of this package has it.

    An agent that fails returns a response with ``error``, which scores 0. It can be called from several threads.

    Args:
        agent: What ``run_benchmark`` accepts: a graph, another Runnable, a function, or the spec of one.
        timeout: Seconds that a question may take; None for no limit.
        capture: The options of the handler, as for ``GraphRAGEvalCallbackHandler``.
        around: Makes the context in which the agent runs.

    Example:
        >>> QuestionTarget(lambda question: "2")({"question": "1 + 1?", "question_id": "q1"})["actual_answer"]
        '2'
    """

    def __init__(
        self,
        agent: Any,
        *,
        timeout: float | None = 600.0,
        capture: CaptureKeywords | None = None,
        around: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        self._given = agent
        self._timeout = timeout
        self._capture = capture or CaptureKeywords()
        self._around = around
        self._call: AgentCall | None = None
        self._lock = Lock()

    def __call__(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the question in ``inputs``, which has ``question`` and ``question_id``."""
        question = _question(inputs, {})
        with self._lock:
            if self._call is None:
                self._call = run_sync(self._loaded)
        return run_sync(lambda: self._asked(question))

    async def _loaded(self) -> AgentCall:
        agent = await aload_agent(self._given)
        return AgentCall(agent, capture=self._capture, timeout=self._timeout)

    async def _asked(self, question: Question) -> dict[str, Any]:
        assert self._call is not None
        never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._around():
            attempt = await self._call.aattempt(question, str(uuid.uuid4()), never)
        return {_ID: str(question["id"]), **attempt.response}


class QuestionScorer:
    """Scores one response as ``score`` does.

    Args:
        config: A path, a dict or an EvaluationConfig; None for the defaults. With an ``llm`` section, judges are used.
        metrics: The scores to return; None: the main ones, such as ``steps_score`` and ``answer_f1``.
        evaluators: More evaluators, as for ``run_evaluation``.

    Raises:
        ConfigError: The config has a key or value that does not exist.

    Example:
        >>> reference = {"reference_steps": [[{"name": "add", "output": "2"}]]}
        >>> step = {"name": "add", "status": "success", "output": "2"}
        >>> QuestionScorer()({"question": "1 + 1?", "question_id": "q1"}, {"actual_steps": [step]}, reference)
        [QuestionScore(name='steps_score', value=1.0, comment='')]
    """

    def __init__(
        self,
        config: ConfigSource = None,
        *,
        metrics: Sequence[str] | None = None,
        evaluators: Sequence[Callable[..., Any]] = (),
    ) -> None:
        self._config = load_config(config)
        self._metrics = metrics
        self._evaluators = evaluators

    def __call__(
        self, inputs: Mapping[str, Any], outputs: Any, reference_outputs: Mapping[str, Any] | None
    ) -> list[QuestionScore]:
        """Return the scores of a response.

        Args:
            inputs: ``question``, ``question_id`` and ``template_id``.
            outputs: The response, as ``target`` returns it; a text counts as the answer.
            reference_outputs: ``reference_answer``, ``reference_steps`` and further keys of the question.
        """
        question = _question(inputs, reference_outputs or {})
        response = outputs if isinstance(outputs, Mapping) else {"actual_answer": outputs}
        dataset = [Template(template_id=str(inputs.get(_TEMPLATE) or "questions"), questions=[question])]
        given = cast("Response", {**response, _ID: question["id"]})
        results = run_evaluation(dataset, {question["id"]: given}, self._config, evaluators=self._evaluators)
        (sample,) = seen_samples(results, Metrics(self._config, self._metrics or ()))
        wanted = self._metrics or [name for name in sample.scores if is_main(metric_spec(name))]
        return [
            QuestionScore(name, sample.scores[name], comment_on(sample, name, self._config))
            for name in wanted
            if name in sample.scores
        ]


def _question(inputs: Mapping[str, Any], reference: Mapping[str, Any]) -> Question:
    text = inputs.get(_TEXT)
    if not isinstance(text, str):
        what = f"the inputs have no text under {_TEXT}"
        raise OptionError(what, key=_TEXT, hint="Use the examples that this module makes, or give these keys.")
    return cast("Question", {"id": str(inputs.get(_ID) or text), "question_text": text, **reference})
