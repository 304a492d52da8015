"""Judges: metrics that ask a model; each returns a value, a reason and a cost.

Names are loaded when they are first used, so that nothing heavy is imported if nothing is judged.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphrag_eval_lc.public_names import only_public

if TYPE_CHECKING:
    from graphrag_eval_lc.judges.answer_correctness import AnswerCorrectness
    from graphrag_eval_lc.judges.metrics import AnswerRelevance, ContextPrecision, ContextRecall, ContextUtilization
    from graphrag_eval_lc.judges.model_interface import JudgeScore

__all__ = [
    "AnswerCorrectness",
    "AnswerRelevance",
    "ContextPrecision",
    "ContextRecall",
    "ContextUtilization",
    "JudgeScore",
]

_FILE_OF = {"AnswerCorrectness": "answer_correctness", "JudgeScore": "model_interface"}  # else metrics


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_FILE_OF.get(name, 'metrics')}"), name)
    globals()[name] = value
    return value


__dir__ = only_public(globals())
