"""Judges: metrics that ask a model, each with its value, its reason and its cost.

Names are loaded when they are first used, so that nothing heavy is imported if nothing is judged.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphrag_eval_lc.public_names import only_public
from graphrag_eval_lc.registry.metrics import ANSWER_CORRECTNESS, ANSWER_RELEVANCE

if TYPE_CHECKING:
    from graphrag_eval_lc.judges.answer_correctness import AnswerCorrectness
    from graphrag_eval_lc.judges.answer_relevance import AnswerRelevance
    from graphrag_eval_lc.judges.context_metrics import ContextPrecision, ContextRecall, ContextUtilization
    from graphrag_eval_lc.judges.scores import JudgeScore

__all__ = [
    "AnswerCorrectness",
    "AnswerRelevance",
    "ContextPrecision",
    "ContextRecall",
    "ContextUtilization",
    "JudgeScore",
]

# Some files are called as their judges.
_FILE_OF = {
    "AnswerCorrectness": ANSWER_CORRECTNESS,
    "AnswerRelevance": ANSWER_RELEVANCE,
    "ContextPrecision": "context_metrics",
    "ContextRecall": "context_metrics",
    "ContextUtilization": "context_metrics",
    "JudgeScore": "scores",
}


def __getattr__(name: str) -> Any:
    file = _FILE_OF.get(name)
    if file is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{file}"), name)
    globals()[name] = value
    return value


__dir__ = only_public(globals())
