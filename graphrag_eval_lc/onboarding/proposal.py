"""The project file that is proposed for an agent, with its reasons."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from graphrag_eval_lc.config.loading import RUN_SECTION
from graphrag_eval_lc.matching.rows.row_steps import SPARQL_QUERY
from graphrag_eval_lc.onboarding.tool_findings import ToolFinding
from graphrag_eval_lc.registry.metrics import MAIN_METRIC
from graphrag_eval_lc.registry.step_kinds import RETRIEVAL

DATASET_FILE = "questions.yaml"
RUNS_FOLDER = "runs"
_FIRST_GATE = 0.8
_HEAD = "# The project file. graphrag-eval-lc reads it from the current folder; command-line options override it."
_ABOUT = {
    "steps": "# How tool calls are compared with the reference steps of the dataset.",
    RETRIEVAL: "# The tools whose documents are scored by their ids (recall, precision, nDCG, …).",
    "capture": "# Record the documents of these tools with their ids, instead of the text that the model reads.",
}
_END = f"""
# Thresholds for a run: if it does not reach them, the command ends with exit code 1.
gates:
  - {{metric: {MAIN_METRIC}, under: {_FIRST_GATE}}}

# Uncomment the next line to judge the answers with a language model. This costs money; `run --dry-run` shows how much.
# llm: {{generation: {{model: gpt-4o-mini, api_key: '${{OPENAI_API_KEY}}'}}}}
"""


@dataclass(frozen=True, slots=True)
class Proposal:
    """The project file of an agent."""

    agent: str  # the spec of the agent, relative to the project's folder
    findings: Sequence[ToolFinding] = ()  # what is known of its tools
    run: Mapping[str, Any] = field(default_factory=dict)  # further options of run

    def sections(self) -> dict[str, Any]:
        """Return the sections of the config on steps, retrieval and capture, without empty ones."""
        documents = [each for each in self.findings if each.gives == "documents"]
        named = [each for each in self.findings if each.reference_name and each not in documents]
        steps = {
            "names": {each.tool: str(each.reference_name) for each in named},
            "outputs": {each.tool: dict(each.declared) for each in self.findings if each.declared},
            "kinds": {each.tool: "rows" for each in self.findings if _needs_kind(each)},
        }
        unknown = [each.tool for each in documents if not each.is_known]
        sections: dict[str, Any] = {
            "steps": {key: value for key, value in steps.items() if value},
            RETRIEVAL: {"steps": unknown} if unknown else {},
            "capture": {"retrieval_documents": [each.tool for each in documents]} if documents else {},
        }
        return {name: section for name, section in sections.items() if section}

    def text(self) -> str:
        """Return the text of the project file: YAML with a comment on each part."""
        run = {"agent": self.agent, "dataset": DATASET_FILE, "output": RUNS_FOLDER, **self.run}
        about = {each.tool: each.about for each in self.findings}
        lines = [_HEAD, *_yaml_of(RUN_SECTION, run, {"output": "each run gets a new folder in it"})]
        for name, section in self.sections().items():
            lines += ["", _ABOUT[name]]
            if name == "steps":
                lines += ["steps:", *(f"  {line}" for key in section for line in _yaml_of(key, section[key], about))]
            else:
                lines += _yaml_of(name, section)
        return "\n".join([*lines, _END])


def _needs_kind(finding: ToolFinding) -> bool:
    """Return whether a tool returns rows under a name, or in a form, that does not say so."""
    if finding.gives != "rows":
        return False
    if not finding.has_media_type and SPARQL_QUERY in (finding.tool, finding.reference_name):
        return True
    return not finding.is_known and finding.reference_name is None


def _yaml_of(key: str, values: Mapping[str, Any], comments: Mapping[str, str] = MappingProxyType({})) -> Iterator[str]:
    yield f"{key}:"
    for name, value in values.items():
        comment = " ".join(comments.get(name, "").split())
        yield f"  {_in_one_line({name: value})}{f'  # {comment}' if comment else ''}"


def _in_one_line(entry: Mapping[str, Any]) -> str:
    """Return an entry of a mapping as YAML of one line, whatever its texts are."""
    for style in (None, '"'):  # in quotes a line break is written as \\n
        flow = yaml.safe_dump(
            entry, default_flow_style=True, default_style=style, allow_unicode=style is None, width=10**6
        )
        line = flow.strip()[1:-1]  # without the braces of the mapping
        if len(line.splitlines()) == 1 and not line.startswith("? "):
            break
    return line.removeprefix("? ")


def spec_from(agent: str, folder: Path) -> str:
    """Return the spec of an agent relative to another folder: a file in it is relative to the current one."""
    place, separator, name = agent.rpartition(":")
    if "://" in agent or not place.lower().endswith((".py", ".json")) or Path(place).is_absolute():
        return agent
    return f"{Path(os.path.relpath(Path(place).resolve(), folder.resolve())).as_posix()}{separator}{name}"
