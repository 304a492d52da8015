"""``run_benchmark`` runs a dataset's questions through an agent and scores them; ``plan_benchmark`` only plans it."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from statistics import fmean
from typing import Any, cast

from graphrag_eval_lc.benchmark.agent_source import source_of
from graphrag_eval_lc.benchmark.agents import aload_agent
from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.benchmark.confirmation import aregression_gate, check_baseline
from graphrag_eval_lc.benchmark.limits import cost_spent
from graphrag_eval_lc.benchmark.options import of_agent
from graphrag_eval_lc.benchmark.progress import progress_display
from graphrag_eval_lc.benchmark.ready_agents import Agent
from graphrag_eval_lc.benchmark.run_manifest import begun_record
from graphrag_eval_lc.benchmark.run_options import CheckedOptions, RunOptions
from graphrag_eval_lc.benchmark.run_output import RunOutput, with_report
from graphrag_eval_lc.benchmark.runner import Runner
from graphrag_eval_lc.dataset.loading import DatasetSource, LoadedDataset
from graphrag_eval_lc.dataset.validation import check_dataset
from graphrag_eval_lc.errors import AgentError
from graphrag_eval_lc.evaluation.events import EventLog, ignore_event
from graphrag_eval_lc.evaluation.samples import RunPlan, Sample, samples_of
from graphrag_eval_lc.evaluation.stop_signal import StopSignal, stopped_by_signals
from graphrag_eval_lc.event_loop.http_connections import aclose_idle_connections, close_connections_of_resting_loops
from graphrag_eval_lc.event_loop.loop import run_sync, use_daemon_threads
from graphrag_eval_lc.files.opening import absolute_path
from graphrag_eval_lc.judges.request_plan import RequestPlan
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.prices import priced_response
from graphrag_eval_lc.records import Question, QuestionWithTemplate, Response
from graphrag_eval_lc.run_folder import CONFIRMATION
from graphrag_eval_lc.texts import listed

_LIKE_THE_REFERENCE = (
    "Questions without an answer yet count as if the agent answered and retrieved as the references do; its own "
    "model calls come on top."
)


@of_agent(RunOptions)
def run_benchmark(agent: Any, dataset: DatasetSource, **options: Any) -> BenchmarkRun:
    """Run the questions of a dataset through an agent and score the responses.

    It also works inside a running event loop, as in a notebook. In the main thread, the first Ctrl-C or SIGTERM stops
    the run and returns the scores so far; a second one raises KeyboardInterrupt at once. SIGHUP, as from a closed
    terminal, stops the run too. Finished responses are always in the folder, and the same call resumes from there.

    Args:
        agent: A compiled graph or another Runnable; a function, async or not, ``question text -> answer or state``,
            which may also take a ``config``, the RunnableConfig; a function without required arguments, or with those
            of LangGraph's graph factories (``RunnableConfig``, ``ServerRuntime``), that returns one of these or a
            context manager around it, which is open as long as the run; its spec as text (``package.module:attribute``
            or ``path/to/file.py:attribute``); a graph of a
            ``langgraph.json`` (``langgraph.json:agent``, or ``agent`` if that is in the current folder); or the
            address of an assistant on a LangGraph server (``http://127.0.0.1:2024/agent``). A graph with a
            checkpointer, or a deployed one (``RemoteGraph``), gets a new ``thread_id`` for each attempt: a UUID.
            Its config's metadata has the ``attempt_id``: run, session, question, repeat and
            attempt.
        dataset: A path, or the templates that ``load_dataset`` returns.
        **options: Those of ``RunOptions``; all have a default.

    Returns:
        The run; if it ended early, ``stopped`` says why.

    Raises:
        OptionError: An option is unknown or has a wrong value, such as a gate on an unknown metric.
        AgentError: The agent cannot be loaded.
        DatasetError: The dataset cannot be read, breaks the format, or has a question id twice.
        ConfigError: The config has a key or value that does not exist.
        RunFolderError: The folder cannot be written, holds a run that differs from this one, of an agent whose source
            changed since, or that was scored with what is missing now, or is in use.

    Example:
        >>> dataset = [{"template_id": "t", "questions": [{"id": "q1", "question_text": "1 + 1?"}]}]
        >>> run = run_benchmark(lambda question: "2", dataset, progress="off")
        >>> run.response("q1")["actual_answer"]
        '2'
    """
    checked = CheckedOptions(**options)
    stop = StopSignal()
    with stopped_by_signals(stop):
        try:
            return run_sync(lambda: _arun(agent, dataset, checked, stop), survives=lambda _: not stop.is_at_once)
        except asyncio.CancelledError:
            raise AgentError(
                "the agent cancelled all tasks of its event loop, and with them the run",
                hint="Let it cancel only its own tasks. What had ended is kept; the same call resumes.",
            ) from None


@of_agent(RunOptions)
async def arun_benchmark(agent: Any, dataset: DatasetSource, **options: Any) -> BenchmarkRun:
    """Run a benchmark in an event loop; see ``run_benchmark``.

    It handles no signals: cancel the task to stop, and call it again to resume. A node that raises SystemExit ends the
    caller's event loop; ``run_benchmark`` survives that.
    """
    try:
        checked = CheckedOptions(**options)
        use_daemon_threads(asyncio.get_running_loop())
        close_connections_of_resting_loops()
        return await _arun(agent, dataset, checked, StopSignal())
    finally:
        await aclose_idle_connections()  # the loop may be closed next, and the model asked in another


async def _arun(agent: Any, dataset: DatasetSource, options: CheckedOptions, stop: StopSignal) -> BenchmarkRun:
    # Relative paths mean what they mean now: an agent's module may change the current folder.
    folder, log_file = (path and absolute_path(path) for path in (options.output_dir, options.log_file))
    read, loaded, doubts = await _aset_up(agent, dataset, options)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(loaded.aclose)
        if options.has_workers:  # each worker loads its own
            await loaded.aclose()
        output = stack.enter_context(RunOutput(options.output_dir, at=folder, open_files=options.open_files))
        log = stack.enter_context(EventLog(log_file)) if log_file is not None else None
        output.prepare(options.in_shard())
        if options.overwrite and output.folder is not None:  # which nothing above forbids
            output.folder.clear()
        display = stack.enter_context(progress_display(options.progress))
        observers = (None if display is ignore_event else display, log, options.on_event)
        output.observers = [observer for observer in observers if observer is not None]
        output.warn(*loaded.warnings, *read.notes, *doubts)

        async def ask(options: CheckedOptions, output: RunOutput) -> BenchmarkRun:
            options, questions = _begin(output, options, dataset, read, loaded)
            return await Runner(options.in_shard(), output, stop, read.templates, questions).arun(loaded)

        async def ask_again(again: CheckedOptions) -> BenchmarkRun:
            at = None if folder is None else folder / CONFIRMATION
            with RunOutput(again.output_dir, at=at, open_files=again.open_files) as confirmation:
                confirmation.prepare(again)
                confirmation.observers = output.observers
                return await ask(again, confirmation)

        try:
            run = await ask(options, output)
            if options.baseline is not None:
                run.regression = await aregression_gate(run, options, ask_again, elapsed_sec=output.elapsed_sec)
        finally:
            if problem := await loaded.aclose():
                output.warn(masked_text(problem))
            if log is not None and log.problem is not None:
                output.warn(log.problem)
    return await asyncio.to_thread(with_report, run, folder) if options.report else run


async def _aset_up(
    agent: Any, dataset: DatasetSource, options: CheckedOptions
) -> tuple[LoadedDataset, Agent, list[str]]:
    """Check the dataset, load the agent, and check the gates; return warnings about unknown names in gates too."""
    checked = check_dataset(dataset, options.config, options.config_source)
    checked.usable(lacks_kinds=isinstance(agent, str))  # whose module may register step kinds
    selected = options.selection.apply(checked.loaded.templates)  # an unknown question is an error before all else
    if options.baseline is not None:
        check_baseline(options.baseline, selected)
    loaded = await aload_agent(
        agent,
        has_input_fn=options.input_fn is not None,
        agent_config=options.agent_config,
        key_variable=options.agent_key_env,
    )
    try:
        if checked.problem is not None:
            checked = check_dataset(dataset, options.config, options.config_source)
        read = checked.usable(lacks_kinds=options.force)
        return read, loaded, options.check_gates(read.templates)
    except BaseException:
        await loaded.aclose()
        raise


def _begin(
    output: RunOutput,
    options: CheckedOptions,
    dataset: DatasetSource,
    read: LoadedDataset,
    loaded: Agent,
    *,
    is_dry: bool = False,
) -> tuple[CheckedOptions, list[QuestionWithTemplate]]:
    """Begin the run, or resume the one in the folder; return the options, with that run's seed, and the questions."""
    drawn = (output.earlier or {}).get("selection") or {}
    if options.sample is not None and options.seed is None and drawn.get("sample") == options.sample:
        options = options.replaced(selection=replace(options.selection, seed=drawn.get("seed", options.selection.seed)))
    questions = options.selection.apply(read.templates)
    source = None if options.output_dir is None else source_of(loaded, (options.input_fn, options.answer_fn))
    if source is not None and source.outdated:
        output.warn(
            f"{listed(source.outdated)} changed after Python loaded it, and the agent still runs the old code: restart "
            "Python, or reload it with importlib.reload"
        )
    record = begun_record(
        loaded.spec or loaded.given,
        dataset,
        read.templates,
        questions,
        options,
        output.judges_record,
        agent_source=loaded.source,
        agent_digests=None if source is None else source.digests,
    )
    texts = {str(question["id"]): question["question_text"] for _, question in questions}
    output.resume(record, options, texts, is_dry=is_dry)
    if (note := options.shard_note(questions)) is not None:
        output.notes.append(note)
    return options, questions


@of_agent(RunOptions)
def plan_benchmark(agent: Any, dataset: DatasetSource, **options: Any) -> RunPlan:
    """Return which questions ``run_benchmark`` would run with the same arguments; the agent is loaded, but not called.

    A missing folder is not created.

    Raises:
        GraphRAGEvalError: What ``run_benchmark`` would raise before it asks.

    Example:
        >>> dataset = [{"template_id": "t", "questions": [{"id": "q1", "question_text": "1 + 1?"}]}]
        >>> [sample.key for sample in plan_benchmark(lambda question: "2", dataset, repeats=2).to_ask]
        [('q1', 1), ('q1', 2)]
    """
    checked = CheckedOptions(**options)
    place = checked.output_dir and absolute_path(checked.output_dir)

    async def aset_up() -> tuple[LoadedDataset, Agent, list[str]]:
        read, loaded, doubts = await _aset_up(agent, dataset, checked)
        await loaded.aclose()
        return read, loaded, doubts

    read, loaded, doubts = run_sync(aset_up)
    is_new = place is None or checked.overwrite or not place.exists()
    with RunOutput(None if is_new else checked.output_dir, at=place, open_files=checked.open_files) as output:
        output.prepare(checked.in_shard())
        checked, questions = _begin(output, checked, dataset, read, loaded, is_dry=True)
        samples = samples_of(questions, checked.repeats, checked.shard)
        plan = output.planned(samples, retry_errors=checked.retry_errors)
        done = (output.response(sample.key) or {} for sample in plan.done)
        costs = [cost_spent(priced_response(response, output.pricing)) for response in done]
        known = [cost for cost in costs if cost is not None]
        return replace(
            plan,
            notes=() if (note := checked.shard_note(questions)) is None else (note,),
            warnings=(*read.notes, *doubts),
            judging=_judging_of(plan, output, checked.in_shard()),
            agent_cost=fmean(known) * len(plan.to_ask) if any(known) else None,
        )


def _judging_of(plan: RunPlan, output: RunOutput, options: CheckedOptions) -> RequestPlan | None:
    """Return the judges' requests for a plan, as if the agent's new responses were exactly like the references."""
    is_new = {sample.position for sample in plan.to_ask}

    def response_of(sample: Sample) -> Response | None:
        return _ideal_response(sample.question) if sample.position in is_new else output.response(sample.key)

    judging = output.planned_judging(options, (*plan.done, *plan.to_ask), response_of)
    if judging is not None and is_new:
        judging.notes.add(_LIKE_THE_REFERENCE)
    return judging


def _ideal_response(question: Question) -> Response | None:
    """Return the response of an agent that does exactly what the references say; None without references."""
    answer, groups = question.get("reference_answer"), question.get("reference_steps") or [[]]
    steps: list[dict[str, Any]] = []
    for step in groups[-1]:
        kept = {key: value for key, value in step.items() if key in ("name", "args", "output")}
        steps.append({"args": {}, **kept, "id": f"call_{len(steps)}", "status": "success"})
    if answer is None and not steps:
        return None
    response = {"question_id": str(question["id"]), "status": "success", "actual_steps": steps}
    return cast("Response", response if answer is None else {**response, "actual_answer": answer})
