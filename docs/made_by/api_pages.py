"""The pages on public modules: a list of their exports, which mkdocstrings fills in from the docstrings."""

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module

_MODULES = {
    "graphrag_eval_lc": "The functions that most programs need: run a benchmark, capture, score, compare.",
    "graphrag_eval_lc.matching": "Compare steps and query results, and register your own step kinds.",
    "graphrag_eval_lc.metrics": "Pure functions that compute metrics from ids, texts and labels, such as recall_at_k.",
    "graphrag_eval_lc.judges": "Metrics that ask a language model (LLM as a judge).",
    "graphrag_eval_lc.compare": "Compare runs, check gates, and test whether a difference may be chance.",
    "graphrag_eval_lc.graph": "Explain a failed query: by the reference query, and by the graph's vocabulary.",
    "graphrag_eval_lc.dataset": "Load, validate, draft and import reference datasets and responses.",
    "graphrag_eval_lc.registry": "Declare your own metrics, evaluators, step kinds and exporters.",
    "graphrag_eval_lc.errors": "The exceptions. Each says what is wrong, where, and how to fix it.",
    "graphrag_eval_lc.demo": "The worked example: an agent, its graph, documents and dataset.",
}

# What readers look for first, in the order of use; all other names follow alphabetically.
_FIRST = (
    "run_benchmark",
    "arun_benchmark",
    "BenchmarkRun",
    "GraphRAGEvalCallbackHandler",
    "capture_run",
    "run_evaluation",
    "arun_evaluation",
    "score_run",
    "score_responses",
    "load_run",
    "compare_runs",
    "RunComparison",
    "gate_results",
)


def api_pages() -> dict[str, Callable[[], str]]:
    """Return the function that generates each page, by its path in docs."""
    return {f"reference/api/{name.rpartition('.')[2]}.md": partial(_page, name) for name in _MODULES}


def _page(name: str) -> str:
    parts = [f"# {name}", _MODULES[name], *(f"::: {name}.{member}" for member in _members(name))]
    return "\n\n".join(parts) + "\n"


def _members(name: str) -> Iterator[str]:
    module = import_module(name)
    exported = getattr(module, "__all__", None)
    if exported is not None:
        first = {member: place for place, member in enumerate(_FIRST)}
        public = (member for member in exported if not member.startswith("__"))
        yield from sorted(public, key=lambda member: (first.get(member, len(first)), member))
        return
    for member, value in vars(module).items():
        if inspect.isclass(value) and value.__module__ == name and not member.startswith("_"):
            yield member
