"""What the graph says about a failure: queries and a vocabulary come in, findings and differences in words go out.

Names are imported on first use, because they need the extra ``graph``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphrag_eval_lc.errors import MissingExtraError
from graphrag_eval_lc.public_names import only_public

if TYPE_CHECKING:
    from graphrag_eval_lc.graph.query_difference import Difference, in_words, query_differences
    from graphrag_eval_lc.graph.query_forms import UnreadableQueryError
    from graphrag_eval_lc.graph.query_lint import QueryFinding, lint_query
    from graphrag_eval_lc.graph.replay import ReplayProxy
    from graphrag_eval_lc.graph.vocabulary import Vocabulary, load_vocabulary

__all__ = [
    "Difference",
    "QueryFinding",
    "ReplayProxy",
    "UnreadableQueryError",
    "Vocabulary",
    "in_words",
    "lint_query",
    "load_vocabulary",
    "query_differences",
]

_FILE_OF = {
    "Difference": "query_difference",
    "QueryFinding": "query_lint",
    "ReplayProxy": "replay",
    "UnreadableQueryError": "query_forms",
    "Vocabulary": "vocabulary",
    "in_words": "query_difference",
    "lint_query": "query_lint",
    "load_vocabulary": "vocabulary",
    "query_differences": "query_difference",
}


def __getattr__(name: str) -> Any:
    file = _FILE_OF.get(name)
    if file is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(f"{__name__}.{file}"), name)
    except ImportError as problem:
        raise MissingExtraError("Reading queries", "graph", "rdflib") from problem
    globals()[name] = value
    return value


__dir__ = only_public(globals())
