"""The configuration of an evaluation: one section a room, read from a file or a dict, or made in Python."""

from graphrag_eval_lc.config.capture import CaptureConfig
from graphrag_eval_lc.config.custom_evaluations import CustomEvaluationConfig, CustomInput
from graphrag_eval_lc.config.environment import expanded
from graphrag_eval_lc.config.evaluation_config import EvaluationConfig, check_models
from graphrag_eval_lc.config.judges import (
    AnswerCorrectnessConfig,
    AnswerRelevanceConfig,
    JudgesConfig,
    PriceConfig,
)
from graphrag_eval_lc.config.llm import EmbeddingConfig, GenerationConfig, LLMConfig
from graphrag_eval_lc.config.loading import ConfigSource, load_config, with_measures
from graphrag_eval_lc.config.retrieval import RetrievalConfig, RetrievalStepConfig, TextSimilarityConfig
from graphrag_eval_lc.config.sections import (
    AggregatesConfig,
    RepeatsConfig,
    Scoring,
    SparqlConfig,
    StepsConfig,
    ToleranceConfig,
)
from graphrag_eval_lc.registry.reserved_keys import is_reserved_key

__all__ = [
    "AggregatesConfig",
    "AnswerCorrectnessConfig",
    "AnswerRelevanceConfig",
    "CaptureConfig",
    "ConfigSource",
    "CustomEvaluationConfig",
    "CustomInput",
    "EmbeddingConfig",
    "EvaluationConfig",
    "GenerationConfig",
    "JudgesConfig",
    "LLMConfig",
    "PriceConfig",
    "RepeatsConfig",
    "RetrievalConfig",
    "RetrievalStepConfig",
    "Scoring",
    "SparqlConfig",
    "StepsConfig",
    "TextSimilarityConfig",
    "ToleranceConfig",
    "check_models",
    "expanded",
    "is_reserved_key",
    "load_config",
    "with_measures",
]
