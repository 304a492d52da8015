"""Begins a project: asks an agent or reads its responses, and writes the config and a first dataset."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from graphrag_eval_lc.benchmark.agents import aload_agent
from graphrag_eval_lc.benchmark.run_benchmark import run_benchmark
from graphrag_eval_lc.config import load_config
from graphrag_eval_lc.config.loading import CONFIG_SCHEMA_PATH, PROJECT_FILE
from graphrag_eval_lc.dataset import load_responses
from graphrag_eval_lc.dataset.drafting import draft
from graphrag_eval_lc.dataset.loading import SCHEMA_PATHS
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.files.opening import make_folder
from graphrag_eval_lc.files.writing import refuse_existing, replace_file, yaml_text
from graphrag_eval_lc.onboarding.agent_tools import tools_in
from graphrag_eval_lc.onboarding.proposal import DATASET_FILE, Proposal, spec_from
from graphrag_eval_lc.onboarding.tool_findings import ToolFinding, tool_findings
from graphrag_eval_lc.onboarding.workflows import Service, workflow
from graphrag_eval_lc.records import Question, Response, is_error
from graphrag_eval_lc.texts import counted, listed

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
    findings: tuple[ToolFinding, ...]  # what is known of the agent's tools
    questions: int  # how many questions the dataset has that were drafted
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
    records = _asked(agent, ask, agent_key_env) if ask else _recorded(responses)
    findings = tool_findings(records, tools)
    run = {} if agent_key_env is None else {"agent_key_env": agent_key_env}
    proposal = Proposal(spec_from(agent, target), findings, run)
    load_config(proposal.sections())  # refuses what could not be used
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


def _asked(agent: str, questions: Sequence[str], agent_key_env: str | None) -> list[Response]:
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


def _recorded(responses: str | PathLike[str] | None) -> list[Response]:
    if responses is None:
        return []
    path = Path(responses)
    return list(load_responses(path / "responses.jsonl" if path.is_dir() else path).values())


def _question_ids(questions: Sequence[str]) -> Iterator[str]:
    """Yield ids made of the words of questions, each once."""
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
        yield f"no tool was called for {listed(silent)}, so no steps can be compared"
