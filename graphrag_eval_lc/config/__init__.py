"""The configuration of an evaluation, read from a file or a dict, or made in Python."""

from graphrag_eval_lc.config.base import expanded
from graphrag_eval_lc.config.evaluation_config import (
    ConfigSource,
    EvaluationConfig,
    check_models,
    load_config,
    with_measures,
)
from graphrag_eval_lc.config.judges import (
    AnswerCorrectnessConfig,
    AnswerRelevanceConfig,
    CustomEvaluationConfig,
    CustomInput,
    EmbeddingConfig,
    GenerationConfig,
    JudgesConfig,
    LLMConfig,
    PriceConfig,
)
from graphrag_eval_lc.config.sections import (
    AggregatesConfig,
    CaptureConfig,
    OutputConfig,
    OutputFormat,
    RepeatsConfig,
    RetrievalConfig,
    RetrievalStepConfig,
    Scoring,
    SparqlConfig,
    StepsConfig,
    TextSimilarityConfig,
    ToleranceConfig,
    ValuesConfig,
)
from graphrag_eval_lc.registry.custom_metrics import is_reserved_key

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
    "OutputConfig",
    "OutputFormat",
    "PriceConfig",
    "RepeatsConfig",
    "RetrievalConfig",
    "RetrievalStepConfig",
    "Scoring",
    "SparqlConfig",
    "StepsConfig",
    "TextSimilarityConfig",
    "ToleranceConfig",
    "ValuesConfig",
    "check_models",
    "expanded",
    "is_reserved_key",
    "load_config",
    "with_measures",
]
