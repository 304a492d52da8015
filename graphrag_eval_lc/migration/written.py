"""The project file that a migration writes: graphrag-eval's settings, each with a comment on what it is for."""

from collections.abc import Iterator, Mapping
from typing import Any

from graphrag_eval_lc.config.project_file import RUN_SECTION
from graphrag_eval_lc.files.writing import yaml_text

RUNS_FOLDER = "runs"
_ABOUT = {
    RUN_SECTION: "The options of `graphrag-eval-lc run`. Each run gets a folder of its own in output.",
    "steps": "How steps are scored, as in the graphrag-eval that gave the published figures.",
    "sparql": "How SPARQL results are compared, as there.",
    "aggregates": "Failed questions count in the means, as there.",
    "llm": "The models that judge. They cost money: `run --dry-run` and `score --dry-run` say how much beforehand.",
}


def project_text(dataset: str, sections: Mapping[str, Any], verdict: str) -> str:
    """Return the project file.

    Args:
        dataset: The dataset's path, as it is from the project's folder.
        sections: The sections of the config.
        verdict: What the comparison found.
    """
    return "\n".join(_lines(dataset, sections, verdict)) + "\n"


def _lines(dataset: str, sections: Mapping[str, Any], verdict: str) -> Iterator[str]:
    yield "# Written by `graphrag-eval-lc migrate`. The command line finds this file in the current folder."
    yield f"# {' '.join(verdict.split())}"
    yield f"\n# {_ABOUT[RUN_SECTION]}"
    yield yaml_text({RUN_SECTION: {"dataset": dataset, "output": RUNS_FOLDER}}).rstrip()
    yield "  # agent: my_agent.py:agent   # your agent, which `run` asks; `score` needs none"
    for name, section in sections.items():
        yield f"\n# {_ABOUT[name]}" if name in _ABOUT else ""
        yield yaml_text({name: section}).rstrip()
