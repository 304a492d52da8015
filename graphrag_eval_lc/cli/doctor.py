"""The command ``doctor``: whether all is there that a run needs."""

from pathlib import Path
from typing import Annotated, Any

import typer

from graphrag_eval_lc.cli.options import EXIT_FINDINGS, say
from graphrag_eval_lc.cli.project import Config
from graphrag_eval_lc.texts import counted

_WIDTH = 9


def doctor(
    agent: Annotated[str | None, typer.Option("--agent", "-a", help="The agent, as for run.", metavar="SPEC")] = None,
    dataset: Annotated[
        Path | None, typer.Option("--dataset", "-d", help="The reference dataset.", metavar="FILE")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The folder that runs are written to.", metavar="DIR")
    ] = None,
    config: Config = None,
    agent_key_env: Annotated[
        str | None,
        typer.Option(
            "--agent-key-env", help="The environment variable with the key of the agent's server.", metavar="NAME"
        ),
    ] = None,
    input_fn: Annotated[
        str | None,
        typer.Option("--input-fn", help="A function that makes the agent's input from a question.", metavar="SPEC"),
    ] = None,
    ask: Annotated[
        bool, typer.Option("--ask", help="Ask the agent the first question of the dataset, which may cost.")
    ] = False,
    ask_models: Annotated[
        bool, typer.Option("--ask-models", help="Send each model of the judges one tiny request.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document in place of the lines.")] = False,
) -> None:
    """Check what a run needs: versions, extras, config, agent, dataset, gates, models, output folder.

    What is not given stands in `graphrag_eval.yaml`, which `init` writes. Nothing is asked that may cost, unless
    `--ask` or `--ask-models` is given.

    Exit code 0: all is good, or there are only notes and warnings; 1: there are errors.

    For example:

    `graphrag-eval-lc doctor`

    `graphrag-eval-lc doctor --agent my_agent.py:agent --dataset questions.yaml --ask`
    """
    # Imported here so that --help does not wait for LangGraph.
    from graphrag_eval_lc.cli.json_printing import print_json
    from graphrag_eval_lc.onboarding.doctor import Examined, examine

    examined = Examined(
        agent=agent,
        dataset=dataset,
        config=config,
        output=output,
        agent_key_env=agent_key_env,
        input_fn=input_fn,
        asks_agent=ask,
        asks_models=ask_models,
    )
    levels: list[str] = []
    rows: list[dict[str, Any]] = []
    for check in examine(examined):
        levels.append(check.level)
        if as_json:
            rows.append({"area": check.area, "level": check.level, "what": check.what, "hint": check.hint})
            continue
        say(f"{check.level:{_WIDTH}} {check.area:{_WIDTH}} {check.what}", keeps_lines=False)
        if check.hint:
            say(f"{'':{_WIDTH}} {'':{_WIDTH}} {check.hint}", keeps_lines=False)
    errors, warnings = levels.count("error"), levels.count("warning")
    if as_json:
        print_json({"checks": rows, "errors": errors, "warnings": warnings})
    else:
        found = [counted(number, word) for number, word in ((errors, "error"), (warnings, "warning")) if number]
        say(f"\n{' and '.join(found) or 'Nothing to mend'}.")
    if errors:
        raise typer.Exit(EXIT_FINDINGS)
