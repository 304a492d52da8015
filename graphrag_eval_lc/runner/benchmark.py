"""The benchmark harness: the questions of a dataset through an agent, several at a time, and scored."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

from graphrag_eval_lc.config import ConfigSource, load_config
from graphrag_eval_lc.dataset import questions_of
from graphrag_eval_lc.errors import DatasetError
from graphrag_eval_lc.event_loop import run_sync
from graphrag_eval_lc.records import Question, Response
from graphrag_eval_lc.run_folder import Journal, RunFolder
from graphrag_eval_lc.runner.agents import Agent, as_agent, load_agent
from graphrag_eval_lc.runner.asking import aask
from graphrag_eval_lc.runner.run_record import RunRecord
from graphrag_eval_lc.runner.scoring import BenchmarkRun, DatasetSource, scored_run, templates_of


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is, given as each response ends.

    Attributes:
        response: The response that just ended.
        done: How many questions are answered, failed ones included.
        errors: How many of them failed.
        total: How many questions the run has.
    """

    response: Response
    done: int
    errors: int
    total: int


def run_benchmark(
    agent: Any,
    dataset: DatasetSource,
    *,
    output_dir: str | PathLike[str] | None = None,
    config: ConfigSource = None,
    max_concurrency: int = 8,
    label: str | None = None,
    overwrite: bool = False,
    on_response: Callable[[Progress], None] | None = None,
) -> BenchmarkRun:
    """Put the questions of a dataset through an agent and score the responses.

    It works inside a running event loop too, as in a notebook.

    Args:
        agent: A compiled graph over a messages state, a function that gives one, or its spec as text
            (``package.module:attribute`` or ``path/to/file.py:attribute``).
        dataset: A path, or the templates that ``load_dataset`` gives.
        output_dir: The run's folder, for run.json, responses.jsonl (a line as each response ends), results.jsonl
            and aggregates.yaml; None writes nothing.
        config: A path, a dict or an EvaluationConfig; None for the defaults.
        max_concurrency: How many questions are asked at the same time, at least 1.
        label: A name for the run, for people.
        overwrite: Whether an earlier run in the folder is replaced.
        on_response: Called as each response ends.

    Raises:
        AgentError: The agent cannot be loaded.
        DatasetError: The dataset cannot be read, breaks the format, or has a question id twice.
        ConfigError: The config has a key or value that does not exist.
        RunFolderError: The folder cannot be written, or holds a run already.

    Example:
        >>> run = run_benchmark(agent, "qa.yaml", output_dir="runs/first")  # doctest: +SKIP
        >>> run.aggregates["micro"]["steps_score"]["mean"]  # doctest: +SKIP
        0.72
    """
    return run_sync(
        lambda: arun_benchmark(
            agent,
            dataset,
            output_dir=output_dir,
            config=config,
            max_concurrency=max_concurrency,
            label=label,
            overwrite=overwrite,
            on_response=on_response,
        )
    )


async def arun_benchmark(
    agent: Any,
    dataset: DatasetSource,
    *,
    output_dir: str | PathLike[str] | None = None,
    config: ConfigSource = None,
    max_concurrency: int = 8,
    label: str | None = None,
    overwrite: bool = False,
    on_response: Callable[[Progress], None] | None = None,
) -> BenchmarkRun:
    """Run a benchmark in an event loop; see ``run_benchmark``."""
    if max_concurrency < 1:
        raise ValueError(f"max_concurrency is at least 1, not {max_concurrency}")
    settings = load_config(config)
    templates = templates_of(dataset)
    questions = [question for _, question in questions_of(templates)]
    _refuse_repeated_ids(questions)
    loaded = load_agent(agent) if isinstance(agent, str) else as_agent(agent)
    folder = None if output_dir is None else RunFolder(output_dir, overwrite=overwrite)
    record = RunRecord.begin(label, dataset, templates, settings, agent=agent)
    if folder:
        folder.write_run(record.as_dict())
    with folder.journal() if folder else contextlib.nullcontext() as journal:
        asking = _Asking(loaded, questions, record.run_id, journal, on_response)
        await asking.run(max_concurrency)
    return scored_run(templates, asking.responses, settings, folder, record)


def _refuse_repeated_ids(questions: Sequence[Question]) -> None:
    seen: set[str] = set()
    for question in questions:
        identifier = str(question["id"])
        if identifier in seen:
            raise DatasetError(
                "two questions have this id", question_id=identifier, mend="Give each question an id of its own."
            )
        seen.add(identifier)


class _Asking:
    """The questions of a run on their way through the agent."""

    def __init__(
        self,
        agent: Agent,
        questions: Sequence[Question],
        run_id: str,
        journal: Journal | None,
        on_response: Callable[[Progress], None] | None,
    ) -> None:
        self._agent = agent
        self._waiting = iter(questions)
        self._total = len(questions)
        self._run_id = run_id
        self._journal = journal
        self._on_response = on_response
        self._errors = 0
        self.responses: dict[str, Response] = {}

    async def run(self, max_concurrency: int) -> None:
        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(min(max_concurrency, self._total)):
                    workers.create_task(self._work())
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None  # the journal or on_response failed; one error says it

    async def _work(self) -> None:
        for question in self._waiting:
            identifier = str(question["id"])
            response = await aask(self._agent, question, thread_id=f"{self._run_id}/{identifier}")
            self._ended(identifier, response)

    def _ended(self, question_id: str, response: Response) -> None:
        self.responses[question_id] = response
        self._errors += "error" in response
        if self._journal:
            self._journal.add(response)
        if self._on_response:
            self._on_response(Progress(response, len(self.responses), self._errors, self._total))
