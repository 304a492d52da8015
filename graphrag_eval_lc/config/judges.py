"""The sections on judged metrics: how they are asked for, which ones, and what a model costs."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from graphrag_eval_lc.config.section import Section, mistake, named
from graphrag_eval_lc.registry.metrics import JUDGES, metric_spec


def _known_judge(name: str) -> str:
    known = [judge.key for judge in JUDGES]
    if name not in known:
        mend = f"{named(known, name, near=metric_spec(name).judge)}."
        raise mistake(f"{name!r} is not allowed here", mend)
    return name


class AnswerCorrectnessConfig(Section):
    """The comparison of the answer's claims with the reference answer's; on where there is a model.

    Attributes:
        enabled: Whether it is asked for.
        prompt: A prompt of your own with ``{question}``, ``{reference_answer}`` and ``{actual_answer}``; None for
            the package's.
    """

    enabled: bool = True
    prompt: str | None = Field(default=None, min_length=1)


class AnswerRelevanceConfig(Section):
    """Whether the answer answers the question; on where there are a model and an embedding model.

    Attributes:
        enabled: Whether it is asked for.
    """

    enabled: bool = True


class JudgesConfig(Section):
    """How judges ask.

    Attributes:
        max_concurrency: The most requests at once, over all questions and metrics of a run.
        max_retries: How often a request is sent again after rate limits, server errors and timeouts.
        timeout: The longest wait for an answer, in seconds.
        engine: ``native``, or ``ragas`` to let ragas compute the context metrics and answer relevance.
        metrics: Those to compute: judges such as ``answer_correctness``; None: all that can be.
        cache: Whether answers are kept in the run's folder, so that scoring again asks only what is new.
    """

    max_concurrency: int = Field(default=16, ge=1)
    max_retries: int = Field(default=3, ge=0)
    timeout: float = Field(default=120.0, gt=0.0, allow_inf_nan=False)
    engine: Literal["native", "ragas"] = "native"
    metrics: list[Annotated[str, AfterValidator(_known_judge)]] | None = None
    cache: bool = True


class PriceConfig(Section):
    """What a model costs, in USD per million tokens.

    Attributes:
        input: Of the prompt.
        output: Of the answer; 0 for embedding models.
        cached_input: Of the part of the prompt that the provider had in its cache; None: as ``input``.
        cache_write_input: Of the part that it wrote to its cache; None: as ``input``.
        cache_write_1h_input: Of the part of it that stays for an hour; None: as ``cache_write_input``.
    """

    input: float = Field(ge=0.0, allow_inf_nan=False)
    output: float = Field(ge=0.0, allow_inf_nan=False)
    cached_input: float | None = Field(default=None, ge=0.0, allow_inf_nan=False)
    cache_write_input: float | None = Field(default=None, ge=0.0, allow_inf_nan=False)
    cache_write_1h_input: float | None = Field(default=None, ge=0.0, allow_inf_nan=False)
