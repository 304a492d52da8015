"""The whole configuration, its section ``gates``, and the checks between sections."""

import re
import sys
from collections.abc import Mapping
from typing import Any, Final, Self

from pydantic import Field, field_validator, model_validator

from graphrag_eval_lc.config.base import Section, mistake, named
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
    AnswerChecksConfig,
    AnswerGroundingConfig,
    CaptureConfig,
    GraphConfig,
    RepeatsConfig,
    RetrievalConfig,
    SparqlConfig,
    StepsConfig,
)
from graphrag_eval_lc.errors import ConfigError
from graphrag_eval_lc.registry.metrics import BUILT_IN, JUDGES, JudgeSpec, metric_spec, metrics_of_users
from graphrag_eval_lc.registry.step_kinds import RETRIEVAL, step_kinds_by_key
from graphrag_eval_lc.texts import range_text

_CHANGE = re.compile(r"\+(?P<number>[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?)(?P<percent>%?)")
_WITH_EXPONENT = re.compile(r"-?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+")


class GateConfig(Section):
    """One gate: exactly one of the conditions ``under`` to ``regression``, of a metric.

    ``under``, and ``over`` as a number, are about one run; all others compare a run with a baseline, so only
    ``compare`` can check them.

    Attributes:
        metric: A metric, or one of its statistics over the samples as in ``elapsed_sec.p95``; None: the main metric.
        template: Only the questions of this template; None: all.
        under: The gate fails if the mean is below this.
        over: The gate fails if the mean is above this: a number, or an increase over the baseline as ``"+10%"`` or
            ``"+0.05"``.
        max_drop: How much worse than the baseline the mean may be, at least 0: in points for a score between 0 and 1,
            for every other metric as a share of the baseline's mean.
        max_drop_per_template: The same for the mean of each template.
        max_lost: How many questions that were right in the baseline may be wrong, at least 0.
        max_lost_per_template: The same for each template.
        regression: Like ``max_drop``, but if the test is strong enough to find a drop of 0.05, its p-value decides.
        confident: Whether only a certain drop fails: the lower end of its 95 % interval is used in place of the drop.

    Example:
        >>> GateConfig(metric="steps_score", max_drop=0.05, template="notes").needs_baseline
        True
    """

    metric: str | None = Field(default=None, min_length=1)
    template: str | None = None
    under: float | None = Field(default=None, allow_inf_nan=False)
    over: float | str | None = None
    max_drop: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    max_drop_per_template: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    max_lost: int | None = Field(default=None, ge=0)
    max_lost_per_template: int | None = Field(default=None, ge=0)
    regression: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    confident: bool = False

    @field_validator("over", mode="before")
    @classmethod
    def _is_a_number_or_an_increase(cls, value: Any) -> Any:
        if isinstance(value, str) and _WITH_EXPONENT.fullmatch(value):  # YAML 1.1 reads it as text
            value = float(value)
        change = _CHANGE.fullmatch(value) if isinstance(value, str) else None
        number = float(change["number"]) if change is not None else value
        is_number = isinstance(number, int | float) and not isinstance(number, bool)
        # No run can exceed an infinite bound; an integer may be larger than the largest float.
        if value is None or (is_number and abs(number) <= sys.float_info.max):
            return value
        what = f"{value!r:.40} is not a number or an increase over the baseline"
        raise mistake(what, 'Write a bound as 30, a share of the baseline\'s mean as "+10%", a difference as "+0.05".')

    @property
    def condition(self) -> str:
        """The key of the condition that is set."""
        return next(key for key in CONDITIONS if getattr(self, key) is not None)

    @property
    def drop_limit(self) -> float | None:
        """The allowed drop, over all questions or for each template; None for other conditions."""
        return next(
            (each for each in (self.max_drop, self.max_drop_per_template, self.regression) if each is not None), None
        )

    @property
    def needs_baseline(self) -> bool:
        """Whether it compares a run with a baseline."""
        return self.condition != "under" and not isinstance(self.over, int | float)

    @model_validator(mode="after")
    def _has_one_condition(self) -> Self:
        given = [key for key in CONDITIONS if getattr(self, key) is not None]
        if len(given) != 1:
            what = f"a gate has one condition, not {' and '.join(given)}" if given else "the gate has no condition"
            raise mistake(what, f"Give one of {', '.join(CONDITIONS)}.")
        condition = self.condition
        if self.template is not None and condition.endswith("_per_template"):
            what = f"{condition} holds in each template, and the gate names one"
            raise mistake(what, f"Leave template out, or write {condition.removesuffix('_per_template')}.", "template")
        if self.confident and self.drop_limit is None:
            what = f"confident is about drops, and {condition} limits none"
            raise mistake(what, "Leave confident out.", "confident")
        return self


CONDITIONS: Final = tuple(key for key in GateConfig.model_fields if key not in {"metric", "template", "confident"})


class EvaluationConfig(Section):
    """The whole configuration.

    ``${NAME}`` in a string is replaced by an environment variable when the value is used.

    Attributes:
        steps: How steps are scored.
        sparql: How SPARQL results are compared.
        aggregates: Which responses the statistics include.
        repeats: When a sample passes.
        llm: The models that judge; None: judged metrics are off.
        answer_correctness: The comparison with the reference answer; None: on if there is a model.
        answer_relevance: Whether the answer answers the question; None: on if there is an embedding model.
        custom_evaluations: Your own evaluations, described in words.
        judges: How judges send requests, and which metrics they compute.
        retrieval: Which steps count as retrieval, and how they are measured without a language model.
        answer_grounding: Whether each value of an answer is looked up in what the agent's steps returned.
        answer_checks: What answers must say, if it follows from reference rows.
        prices: USD per million tokens by model name; they override the known prices.
        graph: The knowledge graph, which explains failed queries.
        capture: What is kept of the agent's runs while they are recorded.
        plugins: Modules that register metrics, step kinds and evaluators, as ``package.module`` or
            ``path/to/file.py``, relative to the current folder. They are loaded before the rest is checked. Plugins
            named in a run's folder are never loaded.
        gates: What a run must reach, alone or compared with a baseline.
        run: Options of the command ``run`` by name, such as ``agent``, ``dataset`` and ``output``, used if the command
            line does not set them. Functions in Python ignore this section, and run.json records the options under
            other keys.

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
    answer_checks: AnswerChecksConfig = Field(default_factory=AnswerChecksConfig)
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
                raise mistake(f"the name {evaluation.name} appears twice", "Rename one of them.", *place, "name")
            for key in evaluation.keys:
                if key in owners:
                    what = f"the key {key} is given by {owners[key]} and by {evaluation.name}"
                    raise mistake(what, "Rename one of them.", *place)
                owners[key] = evaluation.name
        return self


def check_models(config: EvaluationConfig, *, has_llm: bool, has_embeddings: bool) -> None:
    """Raise a ConfigError if a needed model is missing from the configuration and not passed in Python."""
    has_llm = has_llm or config.llm is not None
    has_embeddings = has_embeddings or (config.llm is not None and config.llm.embedding is not None)
    enabled = {judge.key: is_enabled(config, judge) for judge in JUDGES}
    sections = {"custom_evaluations": config.custom_evaluations, **enabled, "judges.metrics": config.judges.metrics}
    if key := next((key for key, is_on in sections.items() if is_on and not has_llm), None):
        hint = "Add llm: {} for OpenAI's default models, or name yours in llm.generation."
        raise ConfigError("a model is needed for this, and the llm section is missing", key=key, hint=hint)
    for judge in () if has_embeddings else JUDGES:
        is_listed = enabled[judge.key] is None and judge.key in (config.judges.metrics or ())
        if judge.needs_embeddings and (enabled[judge.key] or is_listed):
            key = "judges.metrics" if is_listed else judge.key
            hint = "Add llm.embedding, such as {provider: openai, model: text-embedding-3-small}."
            raise ConfigError("an embedding model is needed for this and there is none", key=key, hint=hint)


def is_enabled(config: EvaluationConfig, judge: JudgeSpec) -> bool | None:
    """Return whether a judge is enabled in its section; None if the configuration has no such section."""
    section = getattr(config, judge.key, None)
    return None if section is None else bool(section.enabled)


def check_repeats(config: EvaluationConfig) -> None:
    """Raise a ConfigError if ``repeats`` has an unknown score, or a threshold outside its range.

    This is checked when a configuration is used, not when it is read, because a finished run may have had metrics that
    are not registered now.
    """
    metric, threshold = config.repeats.metric, config.repeats.threshold
    if config.repeats == RepeatsConfig():
        return
    keys = [
        *(spec.key for spec in BUILT_IN if not spec.is_family),
        *(key for family in config.retrieval.metric_keys().values() for key in family),
        *metrics_of_users,
        *(key for evaluation in config.custom_evaluations or () for key in evaluation.outputs),
    ]
    scores = [key for key in keys if metric_spec(key).kind == "score"]
    if metric not in scores:
        hint = f"{named(scores, metric)}, and those that plugins register (--plugin, or plugins in the config)."
        raise ConfigError(f"{metric!r} is not allowed here", key="repeats.metric", hint=hint)
    least, greatest = metric_spec(metric).range
    if (least is not None and threshold < least) or (greatest is not None and threshold > greatest):
        hint = f"{metric} goes {range_text(least, greatest)}."
        raise ConfigError(f"{threshold:g} is not allowed here", key="repeats.threshold", hint=hint)


def check_step_kinds(kinds: Mapping[str, str], names: Mapping[str, str], retrieval: RetrievalConfig) -> None:
    """Raise a ConfigError if ``steps.kinds`` has an unknown kind, or a kind for retrieval steps.

    Like ``repeats``, it is checked when a configuration is used.
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
