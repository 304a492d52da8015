"""Starts a project: asks an agent or reads its responses, and writes the config, a first dataset and a workflow."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

import yaml

from graphrag_eval_lc.benchmark.agents import aload_agent
from graphrag_eval_lc.benchmark.run_benchmark import run_benchmark
from graphrag_eval_lc.config import load_config
from graphrag_eval_lc.config.loading import CONFIG_SCHEMA_PATH, PROJECT_FILE, RUN_SECTION
from graphrag_eval_lc.dataset import load_responses
from graphrag_eval_lc.dataset.drafting import draft
from graphrag_eval_lc.dataset.loading import SCHEMA_PATHS
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.files.opening import make_folder
from graphrag_eval_lc.files.writing import refuse_existing, replace_file, yaml_text
from graphrag_eval_lc.matching.rows.row_steps import SPARQL_QUERY
from graphrag_eval_lc.matching.unknown_tools import RECORDED_CALLS
from graphrag_eval_lc.onboarding.tool_findings import ToolFinding, tool_findings, tools_in
from graphrag_eval_lc.records import Question, Response, is_error
from graphrag_eval_lc.registry.metrics import MAIN_METRIC
from graphrag_eval_lc.registry.step_kinds import RETRIEVAL
from graphrag_eval_lc.texts import counted, listed

Service = Literal["github", "gitlab"]

_GITHUB_FILE: Final = Path(".github/workflows/evaluation.yml")
_GITLAB_FILE: Final = Path(".gitlab-ci.yml")
_GITLAB_BESIDE: Final = Path(".gitlab/evaluation.yml")

_TEMPLATES: Final = Path(__file__).parent / "workflow_templates"


def repository_of(folder: Path) -> Path:
    """Return the root of the Git repository that a folder is in; outside of a repository, the folder itself."""
    folder = folder.resolve()
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)


def workflow(service: Service, folder: Path) -> tuple[Path, str, str]:
    """Return the path of a CI workflow, its text, and what the user still has to do.

    The files in the project's folder, such as requirements.txt, decide how the agent's packages are installed.
    """
    root = repository_of(folder)
    below = folder.resolve().relative_to(root).as_posix()
    prefix = "" if below == "." else f"{below}/"
    parts = {
        "defaults": f"\n    defaults:\n      run:\n        working-directory: {below}" if prefix else "",
        "enter": f"\n    - cd {below}" if prefix else "",
        "install": _install_line(folder, root, prefix),
        "prefix": prefix,
    }
    text = (_TEMPLATES / f"{service}.yml").read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace(f"@{name}@", part)
    if service == "github":
        return root / _GITHUB_FILE, text, "Add the agent's keys to the repository's secrets, and to env of the workflow"
    if (root / _GITLAB_FILE).exists():
        return root / _GITLAB_BESIDE, text, f"Add to {_GITLAB_FILE}: include: [{{local: {_GITLAB_BESIDE}}}]"
    return root / _GITLAB_FILE, text, "Add the agent's keys to the project's CI variables, masked"


def _install_line(folder: Path, root: Path, prefix: str) -> str:
    """Return the command that installs the agent's packages and ours."""
    ours = "'graphrag-eval-lc[judges,report,stats]'"
    for where, up in ((folder, ""), (root, "../" * prefix.count("/"))):
        if (where / "requirements.txt").is_file():
            return f"pip install -r {up}requirements.txt {ours}"
        if (where / "pyproject.toml").is_file():
            return f"pip install {up or '.'} {ours}"
    return f"pip install {ours}"


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
    """The content of a project file for an agent."""

    agent: str  # the spec of the agent, relative to the project's folder
    findings: Sequence[ToolFinding] = ()  # what is known about its tools
    run: Mapping[str, Any] = field(default_factory=dict)  # further options of run

    def sections(self) -> dict[str, Any]:
        """Return the config sections on steps, retrieval and capture; empty sections are left out."""
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
    """Return whether a tool returns rows, and neither its name nor their form shows it."""
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
    """Return an entry of a mapping as one line of YAML, even if its texts have line breaks."""
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


_FIRST_TEMPLATE = "first_questions"
_LONGEST_ID = 48
_EMPTY_DATASET = """\
# The reference dataset: one template for each kind of question, with questions, reference answers and reference steps.
- template_id: {template}
  questions:
    - id: question_1
      question_text: Replace this with your question
"""
_SCHEMAS = ".graphrag_eval"
_COMPLETED_BY = f"# yaml-language-server: $schema={_SCHEMAS}/{{name}}\n"
_DRAFTED = """\
# Do not trust this draft: it records what the agent did, right or wrong. Check each question, then remove draft: true.
# Further questions of the same kind go below the same template_id.
"""


@dataclass(frozen=True, slots=True)
class BegunProject:
    """What ``begin_project`` wrote and found."""

    folder: Path
    files: tuple[Path, ...]  # the files that were written
    findings: tuple[ToolFinding, ...]  # what is known about the agent's tools
    questions: int  # how many drafted questions the dataset has
    notes: tuple[str, ...]  # what the user should know or do
    problems: tuple[str, ...]  # what went wrong with the agent's answers: sentences


def begin_project(
    agent: str,
    folder: str | PathLike[str] = ".",
    *,
    ask: Sequence[str] = (),
    responses: str | PathLike[str] | None = None,
    ci: Service | None = None,
    overwrite: bool = False,
    agent_key_env: str | None = None,
) -> BegunProject:
    """Write the project file and the first dataset of an agent, and optionally a workflow."""
    if ask and responses is not None:
        raise OptionError("--ask and --responses exclude each other", hint="Leave one of them out.")
    target = Path(folder)
    files = {target / PROJECT_FILE: "", target / DATASET_FILE: ""}
    to_do: list[str] = []
    if ci is not None:
        path, text, note = workflow(ci, target)
        files[path] = text
        to_do.append(f"{note}.")
    for path in files:
        refuse_existing(path, overwrite=overwrite)

    tools, warnings = _loaded_tools(agent, agent_key_env)
    records = _ask_agent(agent, ask, agent_key_env) if ask else _read_responses(responses)
    findings = tool_findings(records, tools)
    run = {} if agent_key_env is None else {"agent_key_env": agent_key_env}
    proposal = Proposal(spec_from(agent, target), findings, run)
    load_config(proposal.sections())  # raises an error if they cannot be used
    dataset, drafted = _dataset_text(records, proposal)
    config_schema, dataset_schema = CONFIG_SCHEMA_PATH, SCHEMA_PATHS["dataset"]
    files[target / PROJECT_FILE] = _COMPLETED_BY.format(name=config_schema.name) + proposal.text()
    files[target / DATASET_FILE] = _COMPLETED_BY.format(name=dataset_schema.name) + dataset
    schemas = {
        target / _SCHEMAS / path.name: path.read_text(encoding="utf-8") for path in (config_schema, dataset_schema)
    }
    for path, text in {**files, **schemas}.items():
        make_folder(path.parent, is_private=False)
        replace_file(path, [text.encode()])
    return BegunProject(
        folder=target,
        files=tuple(files),
        findings=tuple(findings),
        questions=drafted,
        notes=(*warnings, *(each.note for each in findings if each.note and each.calls), *to_do),
        problems=tuple(_problems(records, asked=len(ask))),
    )


def _loaded_tools(agent: str, agent_key_env: str | None) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the descriptions of the agent's tools and warnings about the agent; it is not asked anything."""

    async def load() -> tuple[dict[str, str], tuple[str, ...]]:
        loaded = await aload_agent(agent, has_input_fn=True, key_variable=agent_key_env)
        try:
            return {name: tool.description for name, tool in tools_in(loaded.runnable).items()}, loaded.warnings
        finally:
            await loaded.aclose()

    return run_sync(load)


def _ask_agent(agent: str, questions: Sequence[str], agent_key_env: str | None) -> list[Response]:
    asked: list[Question] = [
        {"id": question_id, "question_text": text}
        for question_id, text in zip(_question_ids(questions), questions, strict=True)
    ]
    run = run_benchmark(
        agent,
        [{"template_id": _FIRST_TEMPLATE, "questions": asked}],
        capture={"retrieval_documents": True},
        agent_key_env=agent_key_env,
        progress=False,
    )
    return run.responses


def _read_responses(responses: str | PathLike[str] | None) -> list[Response]:
    if responses is None:
        return []
    path = Path(responses)
    return list(load_responses(path / "responses.jsonl" if path.is_dir() else path).values())


def _question_ids(questions: Sequence[str]) -> Iterator[str]:
    """Yield unique ids built from the words of questions."""
    times: dict[str, int] = {}
    for text in questions:
        words = re.sub(r"[^a-z0-9]+", "_", text.lower())[:_LONGEST_ID].strip("_") or "question"
        times[words] = times.get(words, 0) + 1
        yield words if times[words] == 1 else f"{words}_{times[words]}"


def _dataset_text(records: Sequence[Response], proposal: Proposal) -> tuple[str, int]:
    answered = [record for record in records if not is_error(record)]
    drafted = draft(answered, None, proposal.sections()) if answered else None
    if drafted is None or not drafted.number_of_questions:
        return _EMPTY_DATASET.format(template=_FIRST_TEMPLATE), 0
    templates = [{**template, "template_id": _FIRST_TEMPLATE} for template in drafted.templates]
    return f"{_DRAFTED}{yaml_text(templates)}", drafted.number_of_questions


def _problems(records: Sequence[Response], *, asked: int) -> Iterator[str]:
    for record in filter(is_error, records):
        yield f"{record.get('question_id')} failed: {record.get('error')}"
    if asked > len(records):
        yield f"{counted(asked - len(records), 'question')} without an answer"
    silent = [str(each.get("question_id")) for each in records if not is_error(each) and not each.get("actual_steps")]
    if silent:
        yield f"no tool was called for {listed(silent)}, so no steps can be compared; {RECORDED_CALLS}"
