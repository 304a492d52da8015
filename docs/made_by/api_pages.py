"""The pages on the public modules: what each exports, which mkdocstrings fills in from the docstrings."""

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module

_MODULES = {
    "graphrag_eval_lc": "What most programs need: capture, runs, scores, comparisons.",
    "graphrag_eval_lc.matching": "Comparing steps and query results, and registering step kinds of your own.",
    "graphrag_eval_lc.metrics": "Pure functions on ids, texts and labels.",
    "graphrag_eval_lc.judges": "Metrics that ask a language model.",
    "graphrag_eval_lc.compare": "Runs beside each other.",
    "graphrag_eval_lc.graph": "What explains a failed query: differences, and a check against the graph's vocabulary.",
    "graphrag_eval_lc.dataset": "Reference datasets and responses: loading, checking, drafting, importing.",
    "graphrag_eval_lc.registry": "Declaring metrics, evaluators, step kinds and exporters.",
    "graphrag_eval_lc.errors": "The exceptions; each says what is wrong, where, and how to mend it.",
    "graphrag_eval_lc.demo": "The worked example: an agent, its graph, documents and dataset.",
}


def api_pages() -> dict[str, Callable[[], str]]:
    """Return what makes each page, by its path below docs."""
    return {f"reference/api/{name.rpartition('.')[2]}.md": partial(_page, name) for name in _MODULES}


def _page(name: str) -> str:
    parts = [f"# {name}", _MODULES[name], *(f"::: {name}.{member}" for member in _members(name))]
    return "\n\n".join(parts) + "\n"


def _members(name: str) -> Iterator[str]:
    module = import_module(name)
    exported = getattr(module, "__all__", None)
    if exported is not None:
        yield from (member for member in sorted(exported) if not member.startswith("__"))
        return
    for member, value in vars(module).items():
        if inspect.isclass(value) and value.__module__ == name and not member.startswith("_"):
            yield member
