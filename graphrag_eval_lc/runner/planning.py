"""What a run would ask, without asking it."""

from contextlib import ExitStack
from typing import Any, Unpack

from graphrag_eval_lc.dataset import DatasetSource, templates_of
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.run_folder import RunFolder
from graphrag_eval_lc.runner.agents import Agent, aload_agent
from graphrag_eval_lc.runner.options import BenchmarkKeywords, BenchmarkOptions, checked_options
from graphrag_eval_lc.runner.resuming import changed_questions, missing_in_session, refuse_changes
from graphrag_eval_lc.runner.run_record import begun_record
from graphrag_eval_lc.runner.samples import RunPlan, planned, samples_of


def plan_benchmark(agent: Any, dataset: DatasetSource, **options: Unpack[BenchmarkKeywords]) -> RunPlan:
    """Give what ``run_benchmark`` would ask with the same arguments; the agent is loaded and asked nothing.

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


async def _aloaded(agent: Any, options: BenchmarkOptions) -> Agent:
    """Load an agent and close what it opened, as it is asked nothing."""
    loaded = await aload_agent(
        agent,
        has_input_fn=options.input_fn is not None,
        agent_config=options.agent_config,
        key_variable=options.agent_key_env,
    )
    await loaded.aclose()
    return loaded
