"""The whole configuration, and what its sections need of each other."""

from typing import Any, Self

from pydantic import Field, model_validator

from graphrag_eval_lc.config.capture import CaptureConfig
from graphrag_eval_lc.config.custom_evaluations import CustomEvaluationConfig
from graphrag_eval_lc.config.judges import AnswerCorrectnessConfig, AnswerRelevanceConfig, JudgesConfig, PriceConfig
from graphrag_eval_lc.config.llm import LLMConfig
from graphrag_eval_lc.config.retrieval import RetrievalConfig, RetrievalStepConfig
from graphrag_eval_lc.config.section import Section, mistake, named
from graphrag_eval_lc.config.sections import AggregatesConfig, RepeatsConfig, SparqlConfig, StepsConfig
from graphrag_eval_lc.errors import ConfigError
from graphrag_eval_lc.registry.metrics import BUILT_IN, JUDGES, JudgeSpec, metric_spec, registered_metrics
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
        *((judge.key, is_enabled(config, judge)) for judge in JUDGES),
        ("judges.metrics", config.judges.metrics),
    ]
    return [key for key, value in asked if value]


def _needing_embeddings(config: EvaluationConfig) -> list[str]:
    needing: list[str] = []
    for judge in JUDGES:
        if judge.needs_embeddings:
            enabled, listed = is_enabled(config, judge), judge.key in (config.judges.metrics or ())
            needing += [judge.key] if enabled else ["judges.metrics"] if enabled is None and listed else []
    return needing


def is_enabled(config: EvaluationConfig, judge: JudgeSpec) -> bool | None:
    """Tell whether a judge is on by a section of its own; None where it has none."""
    section = getattr(config, judge.key, None)
    return None if section is None else bool(section.enabled)


def check_repeats(config: EvaluationConfig) -> None:
    """Refuse repeats that are to pass by a score that nobody gives, or by a threshold that is no value of it.

    This is told when a configuration is about to be used, and not when one is read: the run that it is of may have
    known metrics that are not registered now.

    Raises:
        ConfigError: With the scores that there are.
    """
    metric, threshold = config.repeats.metric, config.repeats.threshold
    scores = _scores(config)
    if metric not in scores:
        raise ConfigError(
            f"{metric!r} is not allowed here",
            key="repeats.metric",
            mend=f"{named(scores, metric)}, and those that plugins register (--plugin, or plugins in the config).",
        )
    least, greatest = metric_spec(metric).range
    if (least is not None and threshold < least) or (greatest is not None and threshold > greatest):
        bounds = [f"from {least:g}" if least is not None else "", f"to {greatest:g}" if greatest is not None else ""]
        raise ConfigError(
            f"{threshold:g} is not allowed here",
            key="repeats.threshold",
            mend=f"{metric} goes {' '.join(filter(None, bounds))}.",
        )


def _scores(config: EvaluationConfig) -> list[str]:
    """Give the scores that samples can have."""
    outputs = [key for evaluation in config.custom_evaluations or () for key in evaluation.outputs]
    keys = [
        *(spec.key for spec in BUILT_IN if not spec.is_family),
        *(key for family in config.retrieval.metric_keys().values() for key in family),
        *registered_metrics(),
        *outputs,
    ]
    return [key for key in keys if metric_spec(key).kind == "score"]
