"""The benchmark harness: the questions of a dataset through an agent, and scored; or only the plan of it."""

import asyncio
import contextlib
from contextlib import ExitStack
from typing import Any

from graphrag_eval_lc.benchmark.agents import Agent, aload_agent
from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.benchmark.option_signatures import of_agent
from graphrag_eval_lc.benchmark.progress import progress_display
from graphrag_eval_lc.benchmark.run_manifest import begun_record, changed_questions, missing_in_session, refuse_changes
from graphrag_eval_lc.benchmark.run_options import CheckedOptions, RunOptions, checked_options
from graphrag_eval_lc.benchmark.session import RunSession
from graphrag_eval_lc.dataset.loading import DatasetSource, templates_of
from graphrag_eval_lc.errors import AgentError
from graphrag_eval_lc.evaluation.events import EventLog
from graphrag_eval_lc.evaluation.limits import StopSignal, stopped_by_signals
from graphrag_eval_lc.evaluation.pipeline import judges_of
from graphrag_eval_lc.evaluation.samples import RunPlan, planned, samples_of
from graphrag_eval_lc.event_loop.http_connections import aclose_idle_connections, close_connections_of_resting_loops
from graphrag_eval_lc.event_loop.loop import run_sync, use_daemon_threads
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.prices import Pricing
from graphrag_eval_lc.run_folder import RunFolder


@of_agent(RunOptions)
def run_benchmark(agent: Any, dataset: DatasetSource, **options: Any) -> BenchmarkRun:
    """Put the questions of a dataset through an agent and score the responses.

    It works inside a running event loop too, as in a notebook. In the main thread the first Ctrl-C or SIGTERM stops
    asking and gives what is known; a second one raises KeyboardInterrupt at once. Whatever happens, responses that
    ended are in the folder, and the same call goes on from there.

    Args:
        agent: A compiled graph or another Runnable; a function, async or not, ``question text -> answer or state``;
            a function without required arguments, or with those of LangGraph's graph factories (``RunnableConfig``,
            ``ServerRuntime``), that gives one of these or a context manager around it, which is open as long as the
            run; its spec as text (``package.module:attribute`` or ``path/to/file.py:attribute``); a graph of a
            ``langgraph.json`` (``langgraph.json:agent``, or ``agent`` where that is in the current folder); or the
            address of an assistant on a LangGraph server (``http://127.0.0.1:2024/agent``). A graph with a
            checkpointer, or a deployed one (``RemoteGraph``), gets a ``thread_id`` of its own for each attempt: a UUID.
            The metadata of its config tell which attempt that is: ``attempt_id`` is run, session, question, repeat and
            attempt.
        dataset: A path, or the templates that ``load_dataset`` gives.
        **options: Those of ``RunOptions``; all have a default.

    Returns:
        The run; ``stopped`` says so where it ended before its time.

    Raises:
        OptionError: An option does not exist or has a value that it cannot have.
        AgentError: The agent cannot be loaded.
        DatasetError: The dataset cannot be read, breaks the format, or has a question id twice.
        ConfigError: The config has a key or value that does not exist.
        RunFolderError: The folder cannot be written, holds a run that differs from this one or that was scored with
            what is missing now, or is in use.

    Example:
        >>> dataset = [{"template_id": "t", "questions": [{"id": "q1", "question_text": "1 + 1?"}]}]
        >>> run = run_benchmark(lambda question: "2", dataset, progress="off")
        >>> run.response("q1")["actual_answer"]
        '2'
    """
    checked = checked_options(options)
    stop = StopSignal()
    with stopped_by_signals(stop):
        try:
            return run_sync(lambda: _arun(agent, dataset, checked, stop), survives=lambda _: not stop.is_at_once)
        except asyncio.CancelledError:
            raise AgentError(
                "the agent cancelled all tasks of its event loop, and with them the run",
                hint="Let it cancel only its own tasks. What had ended is kept; the same call goes on.",
            ) from None


@of_agent(RunOptions)
async def arun_benchmark(agent: Any, dataset: DatasetSource, **options: Any) -> BenchmarkRun:
    """Run a benchmark in an event loop; see ``run_benchmark``.

    Signals are left to the caller: cancel the task to stop, and run again to go on. A node that raises SystemExit ends
    the caller's loop, which ``run_benchmark`` withstands.
    """
    try:
        return await _arun(agent, dataset, checked_options(options), StopSignal())
    finally:
        await aclose_idle_connections()  # the loop may be closed next, and the model asked in another


async def _arun(agent: Any, dataset: DatasetSource, options: CheckedOptions, stop: StopSignal) -> BenchmarkRun:
    use_daemon_threads(asyncio.get_running_loop())
    close_connections_of_resting_loops()
    templates = templates_of(dataset)
    questions = options.selection.apply(templates)
    loaded = await aload_agent(
        agent,
        has_input_fn=options.input_fn is not None,
        agent_config=options.agent_config,
        key_variable=options.agent_key_env,
    )
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(loaded.aclose)
        folder, warnings = None, []
        if options.output_dir is not None:
            folder = RunFolder(options.output_dir)
            lock = stack.enter_context(folder.lock())
            warnings += [lock.warning] if lock.warning else []
        log = stack.enter_context(EventLog(options.log_file)) if options.log_file is not None else None
        pricing = Pricing(options.config.prices)
        judges = judges_of(
            options.config,
            evaluators=options.evaluators,
            llm=options.llm,
            embeddings=options.embeddings,
            cache=_judge_cache(folder, options, stack),
            pricing=pricing,
        )
        if folder is not None:
            if options.overwrite:  # which nothing above forbids
                folder.clear()
            options = options.replaced(selection=options.selection_in(folder.earlier))
            questions = options.selection.apply(templates)
        display = stack.enter_context(progress_display(options.progress))
        observers = [observer for observer in (display, log, options.on_event) if observer is not None]
        described = None if judges is None else judges.describe()
        given = loaded.spec or agent
        record = begun_record(given, dataset, templates, questions, options, described, agent_source=loaded.source)
        session = RunSession(options, questions, folder, observers, record, stop, pricing, judges)
        session.warn(*warnings, *loaded.warnings)
        try:
            return await session.arun(loaded, templates)
        finally:
            if problem := await loaded.aclose():
                session.warn(masked_text(problem))
            if log is not None and log.problem is not None:
                session.warn(log.problem)


def _judge_cache(folder: RunFolder | None, options: CheckedOptions, stack: contextlib.AsyncExitStack) -> Any:
    """Return where the judges' answers are kept; None where nothing is judged, or not kept."""
    is_judged = options.config.llm is not None or options.llm is not None
    if folder is None or not is_judged or not options.judge_cache:
        return None
    return stack.enter_context(folder.judge_cache())


@of_agent(RunOptions)
def plan_benchmark(agent: Any, dataset: DatasetSource, **options: Any) -> RunPlan:
    """Return what ``run_benchmark`` would ask with the same arguments; the agent is loaded and asked nothing.

    A folder that does not exist is not made.

    Raises:
        GraphRAGEvalError: What ``run_benchmark`` would raise before it asks.

    Example:
        >>> dataset = [{"template_id": "t", "questions": [{"id": "q1", "question_text": "1 + 1?"}]}]
        >>> [sample.key for sample in plan_benchmark(lambda question: "2", dataset, repeats=2).to_ask]
        [('q1', 1), ('q1', 2)]
    """
    checked = checked_options(options)
    templates = templates_of(dataset)
    questions = checked.selection.apply(templates)
    loaded = run_sync(lambda: _aloaded(agent, checked))
    new = planned(samples_of(questions, checked.repeats), None, retry_errors=checked.retry_errors)
    if checked.output_dir is None or checked.overwrite or not checked.output_dir.exists():
        return new
    folder = RunFolder(checked.output_dir)
    with ExitStack() as stack:
        stack.enter_context(folder.lock())
        earlier = folder.earlier
        if earlier is None:
            return new
        questions = checked.selection_in(earlier).apply(templates)
        now = begun_record(
            loaded.spec or agent, dataset, templates, questions, checked, agent_source=loaded.source
        ).as_dict()
        if not checked.force:
            refuse_changes(earlier, now, folder.path)
        missing_in_session(earlier, folder.path, checked)
        journal = stack.enter_context(folder.journal())
        return planned(
            samples_of(questions, checked.repeats),
            journal,
            retry_errors=checked.retry_errors,
            changed=changed_questions(earlier, now),
        )


async def _aloaded(agent: Any, options: CheckedOptions) -> Agent:
    """Load an agent and close what it opened, as it is asked nothing."""
    loaded = await aload_agent(
        agent,
        has_input_fn=options.input_fn is not None,
        agent_config=options.agent_config,
        key_variable=options.agent_key_env,
    )
    await loaded.aclose()
    return loaded
