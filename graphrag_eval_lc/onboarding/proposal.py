"""The config that is proposed for an agent, as values and as a file with its reasons."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from graphrag_eval_lc.config.loading import RUN_SECTION
from graphrag_eval_lc.matching.rows.row_steps import SPARQL_QUERY
from graphrag_eval_lc.onboarding.tool_findings import ToolFinding
from graphrag_eval_lc.registry.metrics import MAIN_METRIC
from graphrag_eval_lc.registry.step_kinds import RETRIEVAL

DATASET_FILE = "questions.yaml"
RUNS_FOLDER = "runs"
FIRST_GATE = 0.8


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a project file says.

    Attributes:
        agent: The spec of the agent, as it is from the project's folder.
        findings: What is known of its tools.
        run: Further options of ``run``.
    """

    agent: str
    findings: Sequence[ToolFinding] = ()
    run: Mapping[str, Any] | None = None

    @property
    def names(self) -> dict[str, str]:
        """``steps.names``: the tools that fulfil reference steps of another name."""
        named = (each for each in self.findings if each.reference_name and not self._is_documents(each))
        return {each.tool: str(each.reference_name) for each in named}

    @property
    def kinds(self) -> dict[str, str]:
        """``steps.kinds``: the tools that give rows under a name, or in a form, that does not say so."""
        return {each.tool: "rows" for each in self.findings if each.gives == "rows" and _needs_kind(each)}

    @property
    def outputs(self) -> dict[str, dict[str, Any]]:
        """``steps.outputs``: where the rows of tools stand that would not be found there."""
        return {each.tool: dict(each.declared) for each in self.findings if each.declared}

    @property
    def retrieval(self) -> list[str]:
        """``retrieval.steps``: the tools that give documents."""
        return [each.tool for each in self.findings if self._is_documents(each) and not each.is_known]

    @property
    def documents(self) -> list[str]:
        """``capture.retrieval_documents``: all tools that give documents."""
        return [each.tool for each in self.findings if self._is_documents(each)]

    @staticmethod
    def _is_documents(finding: ToolFinding) -> bool:
        return finding.gives == "documents"

    def sections(self) -> dict[str, Any]:
        """Return the config's sections on steps, retrieval and capture, those alone that say something."""
        steps = {"names": self.names, "outputs": self.outputs, "kinds": self.kinds}
        sections: dict[str, Any] = {
            "steps": {key: value for key, value in steps.items() if value},
            RETRIEVAL: {"steps": self.retrieval} if self.retrieval else {},
            "capture": {"retrieval_documents": self.documents} if self.documents else {},
        }
        return {name: section for name, section in sections.items() if section}

    def text(self) -> str:
        """Return the project file: YAML with a comment on each part."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        run = {"agent": self.agent, "dataset": DATASET_FILE, "output": RUNS_FOLDER, **(self.run or {})}
        yield "# The project: graphrag-eval-lc finds this file in the current folder. Options of a command override it."
        yield from _yaml_of(RUN_SECTION, run, {"output": "each run gets a folder of its own in it"})
        about = {each.tool: each.about for each in self.findings}
        sections = self.sections()
        if "steps" in sections:
            yield ""
            yield "# How the steps of tools are compared with the reference steps of the dataset."
            yield "steps:"
            for key, tools in sections["steps"].items():
                yield from (f"  {line}" for line in _yaml_of(key, tools, about))
        if RETRIEVAL in sections:
            yield ""
            yield "# The tools whose documents are scored by their ids (recall, precision, nDCG, …)."
            yield from _yaml_of(RETRIEVAL, sections[RETRIEVAL])
        if "capture" in sections:
            yield ""
            yield "# The documents of these tools are kept with their ids, in place of the text that the model reads."
            yield from _yaml_of("capture", sections["capture"])
        yield ""
        yield "# What a run must reach: the command ends with exit code 1 where it does not."
        yield "gates:"
        yield f"  - {{metric: {MAIN_METRIC}, under: {FIRST_GATE}}}"
        yield ""
        yield "# A language model judges the answers too where there is a section llm. It costs money: `run --dry-run`"
        yield "# says how much before anything is asked."
        yield "# llm: {generation: {model: gpt-4o-mini, api_key: '${OPENAI_API_KEY}'}}"


def _needs_kind(finding: ToolFinding) -> bool:
    if not finding.has_media_type and SPARQL_QUERY in (finding.tool, finding.reference_name):
        return True
    return not finding.is_known and finding.reference_name is None


def _yaml_of(key: str, values: Mapping[str, Any], comments: Mapping[str, str] | None = None) -> Iterator[str]:
    yield f"{key}:"
    for name, value in values.items():
        line = _in_one_line({name: value})
        comment = (comments or {}).get(name)
        yield f"  {line}  # {' '.join(comment.split())}" if comment else f"  {line}"


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
    """Return the spec of an agent as it is from another folder: what names a file is relative to the current one.

    Example:
        >>> spec_from("agents/mine.py:agent", Path("agents"))
        'mine.py:agent'
    """
    place, separator, name = agent.rpartition(":")
    if "://" in agent or not place.lower().endswith((".py", ".json")):
        return agent
    path = Path(place)
    if path.is_absolute():
        return agent
    return f"{_relative(path.resolve(), folder.resolve())}{separator}{name}"


def _relative(path: Path, folder: Path) -> str:
    for up, parent in enumerate([folder, *folder.parents]):
        if path.is_relative_to(parent):
            return "/".join([*[".."] * up, *path.relative_to(parent).parts])
    return str(path)
