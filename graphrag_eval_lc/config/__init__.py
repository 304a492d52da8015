"""The configuration: loads a file, dict or object, and returns a checked ``EvaluationConfig``."""

from graphrag_eval_lc.config.base import expanded
from graphrag_eval_lc.config.evaluation_config import (
    EvaluationConfig,
    GateConfig,
    check_models,
    check_step_kinds,
    is_enabled,
)
from graphrag_eval_lc.config.judges import (
    CustomEvaluationConfig,
    CustomInput,
    EmbeddingConfig,
    GenerationConfig,
    JudgesConfig,
    LLMConfig,
    PriceConfig,
)
from graphrag_eval_lc.config.loading import ConfigSource, load_config, locate, with_measures
from graphrag_eval_lc.config.sections import (
    AnswerChecksConfig,
    AnswerGroundingConfig,
    CaptureConfig,
    Grading,
    GraphConfig,
    NodeConfig,
    OutputConfig,
    OutputFormat,
    RepeatsConfig,
    RetrievalConfig,
    RowsConfig,
    Scoring,
    SparqlConfig,
    StepsConfig,
    ToleranceConfig,
    ValuesConfig,
)
from graphrag_eval_lc.public_names import only_public
from graphrag_eval_lc.registry.custom_metrics import is_reserved_key

__all__ = [
    "AnswerChecksConfig",
    "AnswerGroundingConfig",
    "CaptureConfig",
    "ConfigSource",
    "CustomEvaluationConfig",
    "CustomInput",
    "EmbeddingConfig",
    "EvaluationConfig",
    "GateConfig",
    "GenerationConfig",
    "Grading",
    "GraphConfig",
    "JudgesConfig",
    "LLMConfig",
    "NodeConfig",
    "OutputConfig",
    "OutputFormat",
    "PriceConfig",
    "RepeatsConfig",
    "RetrievalConfig",
    "RowsConfig",
    "Scoring",
    "SparqlConfig",
    "StepsConfig",
    "ToleranceConfig",
    "ValuesConfig",
    "check_models",
    "check_step_kinds",
    "expanded",
    "is_enabled",
    "is_reserved_key",
    "load_config",
    "locate",
    "with_measures",
]

__dir__ = only_public(globals())
