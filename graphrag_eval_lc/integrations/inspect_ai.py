"""Inspect: a task with the questions of a dataset, an agent as its solver, and this package's scorer."""

from typing import Any

from graphrag_eval_lc.answers.answer_text import answer_text
from graphrag_eval_lc.dataset.loading import DatasetSource
from graphrag_eval_lc.integrations.publishing import needed
from graphrag_eval_lc.integrations.scoring import QuestionScorer, QuestionTarget, questions_in

_FEATURE = "Inspect"
_INPUTS, _REFERENCE, _RESPONSE = "inputs", "reference", "response"


def task(dataset: DatasetSource, agent: Any, config: Any = None, **options: Any) -> Any:
    """Return a task for Inspect's ``eval``; it never calls its model, so ``model="none"`` is enough.

    Args:
        dataset: A path, or the templates with their questions.
        agent: What ``run_benchmark`` accepts.
        config: A path, a dict or an EvaluationConfig; None for the defaults.
        **options: ``metrics`` and ``evaluators``, as for ``QuestionScorer``.
    """
    inspect_ai = needed("inspect_ai", _FEATURE, "inspect")
    return inspect_ai.Task(
        dataset=examples(dataset), solver=target(agent), scorer=scorer(config, **options), name="graphrag_eval"
    )


def examples(dataset: DatasetSource) -> Any:
    """Return the questions of a dataset as Inspect's samples; references are in their metadata."""
    datasets = needed("inspect_ai.dataset", _FEATURE, "inspect")
    samples = [
        datasets.Sample(
            id=asked.inputs["question_id"],
            input=asked.inputs["question"],
            target=answer_text(asked.reference.get("reference_answer")),
            metadata={_INPUTS: asked.inputs, _REFERENCE: asked.reference},
        )
        for asked in questions_in(dataset)
    ]
    return datasets.MemoryDataset(samples)


def target(agent: Any, **options: Any) -> Any:
    """Return a solver that asks the agent, and keeps its response in the sample's metadata.

    Args:
        agent: What ``run_benchmark`` accepts.
        **options: ``timeout`` and ``capture``, as for ``QuestionTarget``.
    """
    in_thread = needed("anyio.to_thread", _FEATURE, "inspect").run_sync
    output = needed("inspect_ai.model", _FEATURE, "inspect").ModelOutput
    asking = QuestionTarget(agent, **options)

    @needed("inspect_ai.solver", _FEATURE, "inspect").solver(name="graphrag_eval_agent")  # type: ignore[untyped-decorator]
    def agent_solver() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            response = await in_thread(asking, state.metadata[_INPUTS])
            state.metadata[_RESPONSE] = response
            state.output = output.from_content("agent", answer_text(response.get("actual_answer")))
            state.completed = True
            return state

        return solve

    return agent_solver()


def scorer(config: Any = None, **options: Any) -> Any:
    """Return a scorer for Inspect: the scores of this package by name, the reasons as the explanation.

    Inspect computes the mean and the standard error of each score.

    Args:
        config: A path, a dict or an EvaluationConfig; None for the defaults.
        **options: ``metrics`` and ``evaluators``, as for ``QuestionScorer``.
    """
    scorers = needed("inspect_ai.scorer", _FEATURE, "inspect")
    in_thread = needed("anyio.to_thread", _FEATURE, "inspect").run_sync
    scoring = QuestionScorer(config, **options)

    @scorers.scorer(metrics={"*": [scorers.mean(), scorers.stderr()]}, name="graphrag_eval")  # type: ignore[untyped-decorator]
    def graphrag_eval() -> Any:
        async def score(state: Any, target: Any) -> Any:
            metadata = state.metadata
            found = await in_thread(scoring, metadata[_INPUTS], metadata.get(_RESPONSE) or {}, metadata[_REFERENCE])
            explanation = "\n".join(f"{each.name}: {each.comment}" for each in found if each.comment)
            return scorers.Score(value={each.name: each.value for each in found}, explanation=explanation or None)

        return score

    return graphrag_eval()
