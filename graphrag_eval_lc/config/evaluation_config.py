"""The whole configuration, and the checks of what its sections need of one another."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import Field, model_validator

from graphrag_eval_lc.config.base import Section, mistake, named
from graphrag_eval_lc.config.gates import GateConfig
from graphrag_eval_lc.config.graph import GraphConfig
from graphrag_eval_lc.config.judges import (
    AnswerCorrectnessConfig,
    AnswerRelevanceConfig,
    CustomEvaluationConfig,
    JudgesConfig,
    LLMConfig,
    PriceConfig,
)
from graphrag_eval_lc.config.sections import (
    AggregatesConfig,
    AnswerGroundingConfig,
    CaptureConfig,
    RepeatsConfig,
    RetrievalConfig,
    SparqlConfig,
    StepsConfig,
)
from graphrag_eval_lc.errors import ConfigError
from graphrag_eval_lc.registry.metrics import BUILT_IN, JUDGES, JudgeSpec, metric_spec, metrics_of_users
from graphrag_eval_lc.registry.step_kinds import RETRIEVAL, step_kinds_by_key
from graphrag_eval_lc.texts import range_text


class EvaluationConfig(Section):
    """The whole configuration.

    ``${NAME}`` in a string is replaced by an environment variable when the value is used.

    Attributes:
        steps: How steps are scored.
        sparql: How SPARQL results are compared.
        aggregates: What the statistics are taken over.
        repeats: When a sample passes.
        llm: The models that judges ask; None: judged metrics are off.
        answer_correctness: The comparison with the reference answer; None: on if there is a model.
        answer_relevance: Whether the answer answers the question; None: on if there is an embedding model.
        custom_evaluations: Evaluations in the user's words.
        judges: How judges ask, and which metrics.
        retrieval: Which steps count as retrieval, and how they are measured without a language model.
        answer_grounding: Whether each value of an answer is looked up in what the agent's steps returned.
        prices: USD per million tokens by model name; they override the known prices.
        graph: The knowledge graph, which explains failed queries.
        capture: What is kept of the agent's runs while they are recorded.
        plugins: Modules that register metrics, step kinds and evaluators, as ``package.module`` or
            ``path/to/file.py``, relative to the current folder. They are loaded before the rest is checked; those that
            a run's folder names are not loaded.
        gates: What a run must reach, alone or compared with a baseline.
        run: Options of the command ``run`` by their names, such as ``agent``, ``dataset`` and ``output``, which it
            reads if the command line does not set them. Functions in Python ignore them, and run.json has
            them at its own places.

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
    answer_grounding: AnswerGroundingConfig = Field(default_factory=AnswerGroundingConfig)
    prices: dict[str, PriceConfig] = Field(default_factory=dict)
    graph: GraphConfig = Field(default_factory=GraphConfig)
    capture: CaptureConfig = Field(default_factory=CaptureConfig)
    plugins: list[str] = Field(default_factory=list)
    gates: list[GateConfig] = Field(default_factory=list)
    run: dict[str, Any] | None = Field(default=None, exclude=True)

    @model_validator(mode="after")
    def _custom_keys_are_unique(self) -> Self:
        owners: dict[str, str] = {}
        for index, evaluation in enumerate(self.custom_evaluations or ()):
            place = ("custom_evaluations", str(index))
            if evaluation.name in owners.values():
                raise mistake(f"the name {evaluation.name} stands twice", "Rename one of them.", *place, "name")
            for key in evaluation.keys:
                if key in owners:
                    what = f"the key {key} is given by {owners[key]} and by {evaluation.name}"
                    raise mistake(what, "Rename one of them.", *place)
                owners[key] = evaluation.name
        return self


def check_models(config: EvaluationConfig, *, has_llm: bool, has_embeddings: bool) -> None:
    """Refuse a configuration without the models that it needs.

    Args:
        config: The configuration.
        has_llm: Whether a chat model was passed in Python; else ``llm`` names it.
        has_embeddings: Whether an embedding model was passed in Python; else ``llm.embedding`` names it.

    Raises:
        ConfigError: A model is missing.
    """
    has_llm = has_llm or config.llm is not None
    has_embeddings = has_embeddings or (config.llm is not None and config.llm.embedding is not None)
    enabled = {judge.key: is_enabled(config, judge) for judge in JUDGES}
    needs_llm = {
        "custom_evaluations": config.custom_evaluations,
        **enabled,
        "judges.metrics": config.judges.metrics,
    }
    if key := next((key for key, is_on in needs_llm.items() if is_on and not has_llm), None):
        raise ConfigError(
            "a model is needed for this, and the llm section is missing",
            key=key,
            hint="Add llm: {} for OpenAI's default models, or name yours in llm.generation.",
        )
    for judge in () if has_embeddings else JUDGES:
        is_listed = enabled[judge.key] is None and judge.key in (config.judges.metrics or ())
        if judge.needs_embeddings and (enabled[judge.key] or is_listed):
            raise ConfigError(
                "an embedding model is needed for this and there is none",
                key="judges.metrics" if is_listed else judge.key,
                hint="Add llm.embedding, such as {provider: openai, model: text-embedding-3-small}.",
            )


def is_enabled(config: EvaluationConfig, judge: JudgeSpec) -> bool | None:
    """Return whether a judge's own section is on; None without one."""
    section = getattr(config, judge.key, None)
    return None if section is None else bool(section.enabled)


def check_repeats(config: EvaluationConfig) -> None:
    """Refuse ``repeats`` with an unknown score, or a threshold out of its range.

    Checked when a configuration is used, not when it is read: a finished run may have had metrics that are not
    registered now.

    Raises:
        ConfigError: With the known scores, or the range.
    """
    metric, threshold = config.repeats.metric, config.repeats.threshold
    if config.repeats == RepeatsConfig():
        return
    scores = _scores(config)
    if metric not in scores:
        raise ConfigError(
            f"{metric!r} is not allowed here",
            key="repeats.metric",
            hint=f"{named(scores, metric)}, and those that plugins register (--plugin, or plugins in the config).",
        )
    least, greatest = metric_spec(metric).range
    if (least is not None and threshold < least) or (greatest is not None and threshold > greatest):
        raise ConfigError(
            f"{threshold:g} is not allowed here",
            key="repeats.threshold",
            hint=f"{metric} goes {range_text(least, greatest)}.",
        )


def _scores(config: EvaluationConfig) -> list[str]:
    """Return the scores that samples can have."""
    outputs = [key for evaluation in config.custom_evaluations or () for key in evaluation.outputs]
    keys = [
        *(spec.key for spec in BUILT_IN if not spec.is_family),
        *(key for family in config.retrieval.metric_keys().values() for key in family),
        *metrics_of_users,
        *outputs,
    ]
    return [key for key in keys if metric_spec(key).kind == "score"]


def check_step_kinds(kinds: Mapping[str, str], names: Mapping[str, str], retrieval: RetrievalConfig) -> None:
    """Refuse ``steps.kinds`` with an unknown kind, or one for steps of retrieval.

    Checked when a configuration is used, as ``repeats`` is.

    Args:
        kinds: ``steps.kinds``.
        names: ``steps.names``.
        retrieval: The section on retrieval.

    Raises:
        ConfigError: With the nearest and all known kinds.

    Example:
        >>> check_step_kinds({"read_neo4j_cypher": "rows"}, {}, RetrievalConfig())
    """
    if not kinds:
        return
    known = [key for key in step_kinds_by_key() if key != RETRIEVAL]
    documents = retrieval.document_step_names(names)
    for name, key in kinds.items():
        if key == RETRIEVAL:
            what = f"{name} cannot be made retrieval here"
            hint = f"Name it in the section on retrieval, so that it is measured too: retrieval.steps: [{name}]."
        elif key not in known:
            what = f"unknown step kind {key!r:.80}"
            hint = f"{named(known, key)}, and those that plugins register (--plugin, or plugins in the config)."
        elif names.get(name, name) in documents:
            what = f"steps of {name} are compared by their documents"
            hint = f"Remove it here, or from the steps of the section {RETRIEVAL}."
        else:
            continue
        raise ConfigError(what, key=f"steps.kinds.{name}", hint=hint)
