"""The judge of answer correctness that a config describes."""

from dataclasses import dataclass

from graphrag_eval_lc.config import ConfigSource, expanded, load_config
from graphrag_eval_lc.errors import ConfigError
from graphrag_eval_lc.judges.answer_correctness import AnswerCorrectness
from graphrag_eval_lc.judges.run_models import run_models
from graphrag_eval_lc.prices import Pricing


@dataclass(frozen=True, slots=True)
class AnswerJudge:
    """A judge of answers.

    Attributes:
        correctness: The metric.
        name: Its model.
        max_concurrency: The most answers that are judged at once.
        pricing: The prices, which know afterwards what had none.
    """

    correctness: AnswerCorrectness
    name: str
    max_concurrency: int
    pricing: Pricing


def answer_judge(config: ConfigSource) -> AnswerJudge:
    """Give the judge of a config.

    Args:
        config: Its ``llm``, ``judges``, ``prices`` and ``answer_correctness.prompt`` are used. None stands for
            ``llm: {}``, OpenAI's default model.

    Raises:
        ConfigError: The config cannot be read, has no ``llm`` section, or its prompt or model cannot be used.
        MissingExtraError: The package that the model needs is not installed.
    """
    settings = load_config({"llm": {}} if config is None else config)
    pricing = Pricing(settings.prices)
    model = run_models(settings, needs_embeddings=False, pricing=pricing).generation
    if model is None:
        raise ConfigError(
            "there is no model to judge with",
            key="llm",
            mend="Add llm: {}, which stands for OpenAI's default model, or name yours in llm.generation.",
        )
    section = settings.answer_correctness
    prompt = expanded(section.prompt, "answer_correctness.prompt") if section is not None else None
    return AnswerJudge(AnswerCorrectness(model, prompt), model.name, settings.judges.max_concurrency, pricing)
