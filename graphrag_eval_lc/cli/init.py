"""The command ``init``: the project file and the first dataset of an agent."""

import json
import shlex
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from graphrag_eval_lc.cli.options import Overwrite, option
from graphrag_eval_lc.cli.printing import EXIT_FINDINGS, say, tell
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.onboarding.project import BegunProject, begin_project
from graphrag_eval_lc.texts import counted, listed, visible

_LANGGRAPH_FILE = Path("langgraph.json")


class Service(StrEnum):
    """Whose workflow is written."""

    GITHUB = "github"
    GITLAB = "gitlab"


def init(
    agent: Annotated[
        str | None,
        option(
            "--agent -a",
            "The agent, as for run: FILE.py:NAME, package.module:NAME, langgraph.json:GRAPH or an address. Default: "
            "the graph of langgraph.json in this folder.",
            "SPEC",
        ),
    ] = None,
    output: Annotated[Path, option("--output -o", "The folder of the project.", "DIR")] = Path(),
    ask: Annotated[
        list[str] | None,
        option(
            "--ask", "Ask the agent this question, to see what its tools return. May cost; may be repeated.", "TEXT"
        ),
    ] = None,
    responses: Annotated[
        Path | None,
        option("--responses", "Recorded responses or a run, instead of asking.", "FILE|RUN_DIR"),
    ] = None,
    ci: Annotated[
        Service | None, option("--ci", "Also write a workflow, which runs the evaluation and its gates.")
    ] = None,
    agent_key_env: Annotated[
        str | None, option("--agent-key-env", "The environment variable with the key of the agent's server.", "NAME")
    ] = None,
    yes: Annotated[bool, option("--yes -y", "Do not prompt for missing options.")] = False,
    overwrite: Overwrite = False,
) -> None:
    """Start a project: write a project file and a first dataset for your agent.

    Writes `graphrag_eval.yaml` (agent, dataset, how steps are compared, gates, output folder), which the other commands
    find automatically, and `questions.yaml`, a first dataset drafted from what the agent did. In a terminal it prompts
    for missing options.

    For example:

    `graphrag-eval-lc init --agent my_agent.py:agent --ask "Which transformers are in OSLO?"`
    """
    is_asked = not yes and sys.stdin is not None and sys.stdin.isatty()
    spec = agent or _agent_here(is_asked)
    questions = list(ask or ())
    if is_asked and not questions and responses is None:
        text = typer.prompt("A question to ask the agent, which may cost (empty: none)", default="", show_default=False)
        questions = [text] if text.strip() else []
    begun = begin_project(
        spec,
        output,
        ask=questions,
        responses=responses,
        ci=None if ci is None else ci.value,
        overwrite=overwrite,
        agent_key_env=agent_key_env,
    )
    for line in _told(begun, asked=bool(questions or responses)):
        say(line)
    for problem in begun.problems:
        tell(f"Warning: {problem}.")
    if begun.problems:
        raise typer.Exit(EXIT_FINDINGS)


def _agent_here(is_asked: bool) -> str:
    """Return the agent if none is named: the graph of ``langgraph.json``, otherwise what the user types."""
    graphs = _graphs_here()
    if len(graphs) == 1:
        return f"{_LANGGRAPH_FILE}:{graphs[0]}"
    if is_asked:
        known = f" ({listed(graphs)} of {_LANGGRAPH_FILE})" if graphs else ", such as my_agent.py:agent"
        return str(typer.prompt(f"The agent{known}"))
    hint = "Add --agent my_agent.py:agent." if not graphs else f"Add --agent {_LANGGRAPH_FILE}:{graphs[0]}."
    what = f"{_LANGGRAPH_FILE} has several graphs: {listed(graphs)}" if graphs else "no agent is named"
    raise OptionError(what, hint=hint)


def _graphs_here() -> list[str]:
    try:
        graphs = json.loads(_LANGGRAPH_FILE.read_text(encoding="utf-8")).get("graphs")
    except (OSError, ValueError, AttributeError):
        return []
    return list(graphs) if isinstance(graphs, dict) else []


def _told(begun: BegunProject, *, asked: bool) -> Iterator[str]:
    """Yield what was found and written, and the next steps."""
    if begun.findings:
        yield "The agent's tools:"
    for finding in begun.findings:
        name = visible(finding.tool, keeps_lines=False)
        fulfils = f", compared as {finding.reference_name}" if finding.reference_name else ""
        yield f"  {name}: {finding.about}{fulfils}"
    if begun.findings:
        yield ""
    for path in begun.files:
        yield f"Written: {path}"
    drafted = f"{counted(begun.questions, 'question')} drafted from what the agent did; check each"
    yield f"The dataset has {drafted}." if begun.questions else "The dataset waits for your first question."
    for note in begun.notes:
        yield f"Note: {note.rstrip('.')}."
    yield ""
    yield "Next:"
    if begun.folder != Path():
        yield f"  cd {shlex.quote(str(begun.folder))}"
    if not asked:
        yield "  graphrag-eval-lc init … --ask QUESTION   # drafts the first questions and how tools are compared"
    yield "  graphrag-eval-lc doctor    # checks agent, dataset, models and versions"
    yield "  graphrag-eval-lc run       # asks the agent, scores it, writes a report"
