"""Begins a project: asks the agent a question or reads responses, and writes its config and its first dataset."""

import re
from collections.abc import Iterable, Iterator, Sequence
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
# The reference dataset: a template for each kind of question, with questions and what a good answer takes.
- template_id: {template}
  questions:
    - id: question_1
      question_text: Replace this by a question of yours
"""
_SCHEMAS = Path(".graphrag_eval")
_COMPLETED_BY = "# yaml-language-server: $schema={path}\n"
_DRAFTED = """\
# A draft of what the agent did, which is no truth: check each question, then remove its mark draft.
# Further questions of the same kind go below the same template_id.
"""


@dataclass(frozen=True, slots=True)
class BegunProject:
    """What ``begin_project`` wrote and found.

    Attributes:
        folder: The project's folder.
        files: The files that were written.
        findings: What is known of the agent's tools.
        questions: How many questions the dataset has that were drafted.
        notes: What the user should know or do.
        problems: What went wrong with the agent's answers: sentences.
    """

    folder: Path
    files: tuple[Path, ...]
    findings: tuple[ToolFinding, ...]
    questions: int
    notes: tuple[str, ...]
    problems: tuple[str, ...]


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
    """Write the project file and the first dataset of an agent, and on request a workflow.

    Args:
        agent: The agent's spec, relative to the current folder.
        folder: The project's folder.
        ask: Questions that the agent is asked, which may cost; their answers become drafts of reference answers.
        responses: A file of recorded responses, or the folder of a run, in place of asking.
        ci: Whose workflow is written too.
        overwrite: Whether files that are there are replaced.
        agent_key_env: The environment variable with the key of the agent's server.

    Raises:
        AgentError: The agent cannot be loaded.
        ResponsesError: The responses cannot be read.
        RunFolderError: A file exists, or cannot be written.
        OptionError: Questions and responses are both given.
    """
    if ask and responses is not None:
        raise OptionError("--ask and --responses exclude each other", hint="Leave one of them out.")
    target = Path(folder)
    files = {target / PROJECT_FILE: "", target / DATASET_FILE: ""}
    schemas = {"config": CONFIG_SCHEMA_PATH, "dataset": SCHEMA_PATHS["dataset"]}
    completed_by = {name: _COMPLETED_BY.format(path=f"{_SCHEMAS}/{path.name}") for name, path in schemas.items()}
    beside = {target / _SCHEMAS / path.name: path.read_text(encoding="utf-8") for path in schemas.values()}
    notes: list[str] = []
    if ci is not None:
        path, text, to_do = workflow(ci, target)
        files[path] = text
        notes.append(f"{to_do}.")
    for path in files:
        refuse_existing(path, overwrite=overwrite)

    tools, warnings = _loaded_tools(agent, agent_key_env)
    records = _asked(agent, ask, agent_key_env) if ask else list(_recorded(responses))
    findings = tool_findings(records, tools)
    proposal = Proposal(
        spec_from(agent, target), findings, {"agent_key_env": agent_key_env} if agent_key_env is not None else None
    )
    dataset, drafted = _dataset_text(records, proposal)
    files[target / PROJECT_FILE] = completed_by["config"] + proposal.text()
    files[target / DATASET_FILE] = completed_by["dataset"] + dataset
    load_config(proposal.sections())  # refuses what could not be used
    for path, text in {**files, **beside}.items():
        make_folder(path.parent, is_private=False)
        replace_file(path, [text.encode()])
    return BegunProject(
        folder=target,
        files=tuple(files),
        findings=tuple(findings),
        questions=drafted,
        notes=(*warnings, *(each.note for each in findings if each.note and each.calls), *notes),
        problems=tuple(_problems(records, asked=len(ask))),
    )


def _loaded_tools(agent: str, agent_key_env: str | None) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the descriptions of the agent's tools, and what is to be known of the agent; it is not asked anything."""

    async def load() -> tuple[dict[str, str], tuple[str, ...]]:
        loaded = await aload_agent(agent, has_input_fn=True, key_variable=agent_key_env)
        try:
            tools = tools_in(loaded.runnable)
            return {name: tool.description for name, tool in tools.items()}, loaded.warnings
        finally:
            await loaded.aclose()

    return run_sync(load)


def _asked(agent: str, questions: Sequence[str], agent_key_env: str | None) -> list[Response]:
    ids = list(_question_ids(questions))
    asked: list[Question] = [{"id": each, "question_text": text} for each, text in zip(ids, questions, strict=True)]
    run = run_benchmark(
        agent,
        [{"template_id": _FIRST_TEMPLATE, "questions": asked}],
        capture={"retrieval_documents": True},
        agent_key_env=agent_key_env,
        progress=False,
    )
    return run.responses


def _recorded(responses: str | PathLike[str] | None) -> Iterable[Response]:
    if responses is None:
        return []
    path = Path(responses)
    return load_responses(path / "responses.jsonl" if path.is_dir() else path).values()


def _question_ids(questions: Sequence[str]) -> Iterator[str]:
    """Yield ids made of the words of questions, each once.

    Example:
        >>> list(_question_ids(["Who?", "Who?", "何？"]))
        ['who', 'who_2', 'question']
    """
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
    for record in records:
        if is_error(record):
            yield f"{record.get('question_id')} failed: {record.get('error')}"
    if asked > len(records):
        yield f"{counted(asked - len(records), 'question')} without an answer"
    silent = [str(record.get("question_id")) for record in records if not is_error(record) and not _has_steps(record)]
    if silent:
        yield f"no tool was called for {listed(silent)}, so that there are no steps to compare"


def _has_steps(record: Response) -> bool:
    return bool(record.get("actual_steps"))
