"""The commands that start a project: ``init``, and ``migrate`` for a project of graphrag-eval."""

import json
import shlex
import sys
import warnings
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import typer

from graphrag_eval_lc.cli.options import with_options
from graphrag_eval_lc.cli.printing import EXIT_FINDINGS, echo_err, print_json, say
from graphrag_eval_lc.errors import GraphRAGEvalWarning, OptionError
from graphrag_eval_lc.onboarding.migration import Migration
from graphrag_eval_lc.onboarding.migration import migrate as convert
from graphrag_eval_lc.onboarding.project import BegunProject, begin_project
from graphrag_eval_lc.texts import counted, listed, visible

_LANGGRAPH_FILE = Path("langgraph.json")


class Service(StrEnum):
    """The CI services that a workflow can be written for."""

    GITHUB = "github"
    GITLAB = "gitlab"


@with_options()
def init(
    agent: str | None = None,
    output: Path = Path(),
    ask: list[str] | None = None,
    responses: Path | None = None,
    ci: Service | None = None,
    agent_key_env: str | None = None,
    yes: bool = False,
    overwrite: bool = False,
) -> None:
    """Start a project: write a project file and a first dataset for your agent.

    Writes `graphrag_eval.yaml` (agent, dataset, how steps are compared, gates, output folder), which the other commands
    find automatically, and `questions.yaml`, a first dataset drafted from what the agent did. In a terminal it prompts
    for missing options.

    For example:

    `graphrag-eval-lc init --agent my_agent.py:agent --ask "Which transformers are in OSLO?"`

    Options:
        --agent -a SPEC: The agent, as for run: FILE.py:NAME, package.module:NAME, langgraph.json:GRAPH or an address.
            Default: the graph of langgraph.json in this folder.
        --output -o DIR: The folder of the project.
        --ask TEXT: Ask the agent this question, to see what its tools return. May cost; may be repeated.
        --responses FILE|RUN_DIR: Recorded responses or a run, instead of asking.
        --ci: Also write a workflow, which runs the evaluation and its gates.
        --agent-key-env NAME: The environment variable with the key of the agent's server.
        --yes -y: Do not prompt for missing options.
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
    for line in _summary(begun, asked=bool(questions or responses)):
        say(line)
    for problem in begun.problems:
        echo_err(f"Warning: {problem}.")
    if begun.problems:
        raise typer.Exit(EXIT_FINDINGS)


def _agent_here(is_asked: bool) -> str:
    """Return the agent if the user named none: the graph in ``langgraph.json``, otherwise the answer to a prompt."""
    try:
        found = json.loads(_LANGGRAPH_FILE.read_text(encoding="utf-8")).get("graphs")
    except (OSError, ValueError, AttributeError):
        found = None
    graphs = list(found) if isinstance(found, dict) else []
    if len(graphs) == 1:
        return f"{_LANGGRAPH_FILE}:{graphs[0]}"
    if is_asked:
        known = f" ({listed(graphs)} of {_LANGGRAPH_FILE})" if graphs else ", such as my_agent.py:agent"
        return str(typer.prompt(f"The agent{known}"))
    hint = "Add --agent my_agent.py:agent." if not graphs else f"Add --agent {_LANGGRAPH_FILE}:{graphs[0]}."
    what = f"{_LANGGRAPH_FILE} has several graphs: {listed(graphs)}" if graphs else "no agent is named"
    raise OptionError(what, hint=hint)


def _summary(begun: BegunProject, *, asked: bool) -> Iterator[str]:
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


@with_options()
def migrate(
    dataset: Path,
    responses: Path,
    config: Path | None = None,
    published: list[Path] | None = None,
    output: Path | None = None,
    overwrite: bool = False,
    worst: int = 20,
    as_json: bool = False,
) -> None:
    """Migrate from graphrag-eval: convert its config, and check that you get the same scores.

    Writes the config with the two settings that reproduce graphrag-eval's figures, its models and its custom
    evaluations. Scores its old responses with these settings, and compares the scores and aggregates with the
    published ones. It calls no agent and no model.

    Exit code 0: all published figures are reproduced; 1: differences remain; 3: the published results belong to other
    questions.

    For example:

    `graphrag-eval-lc migrate -d qa.yaml -r responses.jsonl -c config.yaml -p results.yaml -o evaluation`

    Options:
        as_json --json: Print JSON instead of text.
        --dataset -d FILE: graphrag-eval's reference dataset.
        --responses -r FILE: The responses that it scored.
        --config -c OLD: Its config, whose models and evaluations are converted.
        --published -p FILE: Its results or its aggregates; may be repeated for both.
        --output -o DIR: The folder to write graphrag_eval.yaml to.
        --worst (min 0): How many differences to show.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GraphRAGEvalWarning)
        found = convert(
            dataset, responses, config=config, published=tuple(published or ()), output_dir=output, overwrite=overwrite
        )
    for warning in caught:
        echo_err(f"Warning: {warning.message}")
    if as_json:
        print_json(found.document())
    else:
        for line in _lines(found, worst):
            say(line, keeps_lines=False)
    if found.differences:
        raise typer.Exit(EXIT_FINDINGS)


def _lines(found: Migration, most: int) -> Iterator[str]:
    """Yield the verdict, what differs, and what was converted and written."""
    yield found.verdict
    for each in found.differences[:most]:
        place = f"{each.question_id}, {each.key}" if each.question_id is not None else each.key
        yield f"  {place}: published {_shown(each.published)}, here {_shown(each.here)}. {each.why}"
    if len(found.differences) > most:
        yield f"  … and {counted(len(found.differences) - most, 'more difference')}; --json has all."
    if found.notes:
        yield ""
    for note in found.notes:
        yield f"Note: {note}"
    if found.files:
        yield ""
    for path in found.files:
        yield f"Written: {path}"


def _shown(value: object) -> str:
    return "nothing" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
