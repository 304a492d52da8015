"""The whole configuration, and what its sections need of each other."""

from typing import Any, Self

from pydantic import Field, model_validator

from graphrag_eval_lc.config.capture import CaptureConfig
from graphrag_eval_lc.config.custom_evaluations import CustomEvaluationConfig
from graphrag_eval_lc.config.judges import AnswerCorrectnessConfig, AnswerRelevanceConfig, JudgesConfig, PriceConfig
from graphrag_eval_lc.config.llm import LLMConfig
from graphrag_eval_lc.config.retrieval import RetrievalConfig, RetrievalStepConfig
from graphrag_eval_lc.config.section import Section, mistake
from graphrag_eval_lc.config.sections import AggregatesConfig, RepeatsConfig, SparqlConfig, StepsConfig
from graphrag_eval_lc.errors import ConfigError
from graphrag_eval_lc.registry.step_kinds import RETRIEVAL


class EvaluationConfig(Section):
    """The whole configuration.

    ``${NAME}`` in a string stands for an environment variable and is put in where the value is used.

    Attributes:
        steps: How steps are scored.
        sparql: How SPARQL results are compared.
        aggregates: What the statistics are taken over.
        repeats: When a sample passes.
        llm: The models that judges ask; None: judged metrics are off.
        answer_correctness: The comparison with the reference answer; None: on where there is a model.
        answer_relevance: Whether the answer answers the question; None: on where there is an embedding model.
        custom_evaluations: Evaluations in the user's words.
        judges: How judges ask, and which metrics.
        retrieval: Which steps count as retrieval, and how they are measured without a language model.
        prices: USD per million tokens by model name, for models that the package does not know or knows otherwise.
        capture: What is kept of the agent's runs while they are recorded.
        plugins: Modules that register metrics, step kinds and evaluators, as ``package.module`` or
            ``path/to/file.py``, as seen from the current folder. They are loaded before all else is checked; where a
            run's folder names them, they are not.

    Example:
        >>> EvaluationConfig(steps=StepsConfig(scoring="all_groups")).sparql.ignore_duplicates
        True
    """

    steps: StepsConfig = Field(default_factory=StepsConfig)
    sparql: SparqlConfig = Field(default_factory=SparqlConfig)
    aggregates: AggregatesConfig = Field(default_factory=AggregatesConfig)
    repeats: RepeatsConfig = Field(default_factory=RepeatsConfig)
    llm: LLMConfig | None = None
    answer_correctness: AnswerCorrectnessConfig | None = None
    answer_relevance: AnswerRelevanceConfig | None = None
    custom_evaluations: list[CustomEvaluationConfig] | None = Field(default=None, min_length=1)
    judges: JudgesConfig = Field(default_factory=JudgesConfig)
    retrieval: RetrievalConfig = Field(default_factory=RetrievalConfig)
    prices: dict[str, PriceConfig] = Field(default_factory=dict)
    capture: CaptureConfig = Field(default_factory=CaptureConfig)
    plugins: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _custom_keys_are_unique(self) -> Self:
        owners: dict[str, str] = {}
        for index, evaluation in enumerate(self.custom_evaluations or ()):
            place = ("custom_evaluations", str(index))
            if evaluation.name in owners.values():
                raise mistake(f"the name {evaluation.name} stands twice", "Rename one of them.", *place, "name")
            for key in (*evaluation.outputs, f"{evaluation.name}_error", f"{evaluation.name}_cost"):
                if key in owners:
                    what = f"the key {key} is given by {owners[key]} and by {evaluation.name}"
                    raise mistake(what, "Rename one of them.", *place)
                owners[key] = evaluation.name
        return self

    @model_validator(mode="after")
    def _retrieval_steps_agree(self) -> Self:
        """Refuse two tools that stand for the same reference steps and have their ids in different places."""
        steps = self.retrieval.steps
        named = {RETRIEVAL, *(step.name for step in steps)}
        tools: dict[str, RetrievalStepConfig] = {}
        for index, step in enumerate(steps):
            name = self.steps.names.get(step.name, RETRIEVAL)
            if name in named:
                continue
            other = tools.setdefault(name, step)
            if other.column != step.column:
                what = (
                    f"{other.name} and {step.name} are both {name} in steps.names, with their ids in different places"
                )
                mend = f"Give both the same column, or name {name} here too, with its own."
                raise mistake(what, mend, "retrieval", "steps", str(index))
        return self


def check_models(config: EvaluationConfig, *, has_llm: bool, has_embeddings: bool) -> None:
    """Refuse a configuration that asks for something without the models that it needs.

    Args:
        config: The configuration.
        has_llm: Whether a chat model was passed in Python; else ``llm`` names it.
        has_embeddings: Whether an embedding model was passed in Python; else ``llm.embedding`` names it.

    Raises:
        ConfigError: What asks for a model that is not there, and what to add.
    """
    has_llm = has_llm or config.llm is not None
    has_embeddings = has_embeddings or (config.llm is not None and config.llm.embedding is not None)
    if not has_llm:
        for key in _needing_llm(config):
            raise ConfigError(
                "a model is needed for this and there is no llm section",
                key=key,
                mend="Add llm: {}, which stands for OpenAI's default models, or name yours in llm.generation.",
            )
    if not (has_llm and has_embeddings):
        for key in _needing_embeddings(config):
            raise ConfigError(
                "an embedding model is needed for this and there is none",
                key=key,
                mend="Add llm.embedding, such as {provider: openai, model: text-embedding-3-small}.",
            )


def _needing_llm(config: EvaluationConfig) -> list[str]:
    asked: list[tuple[str, Any]] = [
        ("custom_evaluations", config.custom_evaluations),
        ("answer_correctness", config.answer_correctness and config.answer_correctness.enabled),
        ("answer_relevance", config.answer_relevance and config.answer_relevance.enabled),
        ("judges.metrics", config.judges.metrics),
    ]
    return [key for key, value in asked if value]


def _needing_embeddings(config: EvaluationConfig) -> list[str]:
    if config.answer_relevance is not None:
        return ["answer_relevance"] if config.answer_relevance.enabled else []
    return ["judges.metrics"] if "answer_relevance" in (config.judges.metrics or ()) else []
