"""The configuration sections on judged metrics, custom evaluations, models and prices."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, PlainSerializer, SecretStr, SerializationInfo, model_validator

from graphrag_eval_lc.config.base import Section, is_reference, mistake, named
from graphrag_eval_lc.masking import MASK
from graphrag_eval_lc.registry.custom_metrics import is_reserved_key
from graphrag_eval_lc.registry.metric_spec import cost_key, error_key
from graphrag_eval_lc.registry.metrics import JUDGES, metric_spec


def _known_judge(name: str) -> str:
    known = [judge.key for judge in JUDGES]
    if name not in known:
        hint = f"{named(known, name, near=metric_spec(name).judge)}."
        raise mistake(f"{name!r} is not allowed here", hint)
    return name


class AnswerCorrectnessConfig(Section):
    """The comparison of the answer's claims with the reference answer's; on if there is a model.

    Attributes:
        enabled: Whether it is computed.
        prompt: Your own prompt, with ``{question}``, ``{reference_answer}`` and ``{actual_answer}``; None for the
            package's.
    """

    enabled: bool = True
    prompt: str | None = Field(default=None, min_length=1)


class AnswerRelevanceConfig(Section):
    """Whether the answer answers the question; on if there are a model and an embedding model.

    Attributes:
        enabled: Whether it is computed.
    """

    enabled: bool = True


class PriceConfig(Section):
    """The price of a model in USD per million tokens.

    Attributes:
        input: For the prompt.
        output: For the answer; 0 for embedding models.
        cached_input: For the part of the prompt that was read from the provider's cache; None: as ``input``.
        cache_write_input: For the part that was written to the cache; None: as ``input``.
        cache_write_1h_input: For the written part that is kept for an hour; None: as ``cache_write_input``.
    """

    input: float = Field(ge=0.0, allow_inf_nan=False)
    output: float = Field(ge=0.0, allow_inf_nan=False)
    cached_input: float | None = Field(default=None, ge=0.0, allow_inf_nan=False)
    cache_write_input: float | None = Field(default=None, ge=0.0, allow_inf_nan=False)
    cache_write_1h_input: float | None = Field(default=None, ge=0.0, allow_inf_nan=False)


CustomInput = Literal["question", "reference_answer", "reference_steps", "actual_answer", "actual_steps"]
StepsKey = Literal["args", "output"]


class CustomEvaluationConfig(Section):
    """One evaluation.

    Attributes:
        name: Its name; the results have ``{name}_error`` and ``{name}_cost``.
        inputs: What the model sees: any of ``question``, ``reference_answer``, ``reference_steps``, ``actual_answer``
            and ``actual_steps``.
        instructions: What the model has to do.
        outputs: The keys of the results, each with a description of its value.
        steps_name: The name of the steps that the model sees; needed with steps in ``inputs``.
        steps_keys: What it sees of these steps: ``args``, ``output`` or both; needed with steps in ``inputs``.
    """

    name: str = Field(min_length=1)
    inputs: list[CustomInput] = Field(min_length=1)
    instructions: str = Field(min_length=1)
    outputs: dict[Annotated[str, Field(min_length=1)], str] = Field(min_length=1)
    steps_name: str | None = Field(default=None, min_length=1)
    steps_keys: list[StepsKey] | None = Field(default=None, min_length=1)

    @property
    def error_key(self) -> str:
        """The key of results that says why it failed."""
        return error_key(self.name)

    @property
    def cost_key(self) -> str:
        """The key of its cost in USD."""
        return cost_key(self.name)

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys that it may write."""
        return (*self.outputs, self.error_key, self.cost_key)

    @model_validator(mode="after")
    def _steps_are_described(self) -> Self:
        if {"reference_steps", "actual_steps"} & set(self.inputs):
            for key in ("steps_name", "steps_keys"):
                if getattr(self, key) is None:
                    raise mistake(f"{key} is required when steps are in inputs", f"Add {key}.", key)
        return self

    @model_validator(mode="after")
    def _keys_are_free(self) -> Self:
        own = {self.error_key, self.cost_key}
        if any(map(is_reserved_key, own)):
            raise mistake(f"the name {self.name} is reserved, as its keys are used otherwise", "Rename it.", "name")
        for key in self.outputs:
            if is_reserved_key(key) or key in own:
                raise mistake(f"the output key {key} is reserved", "Rename it.", "outputs", key)
        return self


DEFAULT_PROVIDER = "openai"


def _reference_or_secret(value: SecretStr, info: SerializationInfo) -> Any:
    text = value.get_secret_value()
    if is_reference(text):
        return text
    return value if info.mode == "python" else MASK


Secret = Annotated[SecretStr, PlainSerializer(_reference_or_secret)]


class _ModelConfig(Section):
    model_config = ConfigDict(extra="allow")

    provider: str = Field(default=DEFAULT_PROVIDER, min_length=1)
    model: str = Field(min_length=1)
    base_url: str | None = None
    api_key: Secret | None = None

    @model_validator(mode="after")
    def _model_fits_provider(self) -> Self:
        if self.provider != DEFAULT_PROVIDER and "model" not in self.model_fields_set:
            raise mistake(f"the provider {self.provider} is named without a model", "Add model.", "model")
        return self


class GenerationConfig(_ModelConfig):
    """The chat model that judges. Further keys are passed on to it (``model_extra``).

    Attributes:
        provider: ``openai`` for OpenAI and every compatible endpoint, otherwise a provider that LangChain's
            ``init_chat_model`` knows.
        model: The model's name at the provider; needed for other providers than ``openai``.
        base_url: The endpoint; None for the provider's own.
        api_key: The key, best as ``${OPENAI_API_KEY}``; None for the provider's usual environment variable.
        temperature: 0 to 2; None sends none, for models that refuse it.
        max_tokens: The longest answer, in tokens. None: 4,096, or 16,384 for reasoning models, and four times that
            after an answer was cut off. A limit is always sent, as it bounds the cost of a request.
    """

    model: str = Field(default="gpt-4o-mini", min_length=1)
    temperature: float | None = Field(default=0.0, ge=0.0, le=2.0)
    max_tokens: int | None = Field(default=None, ge=1)


class JudgesConfig(Section):
    """How judges send requests, and which metrics they compute.

    Attributes:
        max_concurrency: The most requests at once, over all questions and metrics of a run.
        max_retries: How many times a request is sent again after rate limits, server errors and timeouts.
        timeout: The longest wait for an answer, in seconds.
        engine: ``native``, or ``ragas`` to let ragas compute the context metrics and answer relevance.
        batch: How many contexts one request judges, for context precision and utilization; 1 as in ragas.
        metrics: The judges to run, such as ``answer_correctness``; None: all that are possible.
        cache: Whether answers are kept in the run's folder, so that scoring again only sends new requests.
        votes: How many times the model decides on each claim of answer correctness. The majority counts.
        voters: More models that decide on each claim, once each.
        labels: A table of answers with labels by people, such as ``judge agreement --output`` writes. The aggregates
            use it to correct judged means for the judge's errors.
        certificate: The file that ``judge certify`` wrote about this judge; reports show it next to judged scores.
    """

    max_concurrency: int = Field(default=16, ge=1)
    max_retries: int = Field(default=3, ge=0)
    timeout: float = Field(default=120.0, gt=0.0, allow_inf_nan=False)
    engine: Literal["native", "ragas"] = "native"
    batch: int = Field(default=1, ge=1)
    metrics: list[Annotated[str, AfterValidator(_known_judge)]] | None = None
    cache: bool = True
    votes: int = Field(default=1, ge=1)
    voters: list[GenerationConfig] = Field(default_factory=list)
    labels: str | None = Field(default=None, min_length=1)
    certificate: str | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _batch_fits_engine(self) -> Self:
        if self.engine == "ragas" and self.batch > 1:
            raise mistake("ragas judges one context in a request", "Leave batch out, or engine.", "batch")
        return self


class EmbeddingConfig(_ModelConfig):
    """The model that turns texts into vectors. Further keys are passed on to it (``model_extra``).

    Attributes:
        provider: As for generation.
        model: The model's name at the provider; needed for other providers than ``openai``.
        base_url: The endpoint; None for the provider's own.
        api_key: The key, best as ``${OPENAI_API_KEY}``; None for the provider's usual environment variable.
    """

    model: str = Field(default="text-embedding-3-small", min_length=1)


class LLMConfig(Section):
    """The models; the empty section means both defaults.

    Attributes:
        generation: The chat model that judges.
        embedding: The embedding model; None: answer relevance is off, as with ``generation`` alone.
            ``llm: {}`` has both.

    Example:
        >>> LLMConfig().embedding.model, LLMConfig(generation=GenerationConfig()).embedding
        ('text-embedding-3-small', None)
    """

    generation: GenerationConfig = Field(default_factory=GenerationConfig)
    embedding: EmbeddingConfig | None = None

    @model_validator(mode="before")
    @classmethod
    def _with_defaults(cls, values: Any) -> Any:
        return {"generation": {}, "embedding": {}} if values == {} else values
