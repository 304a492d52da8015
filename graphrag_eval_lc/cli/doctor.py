"""The command ``doctor``: checks what a run needs, lists plugins, and finds secrets in the files of runs."""

from pathlib import Path
from typing import Annotated, Any

import typer

from graphrag_eval_lc.cli.options import JsonRows, Plugins, load_named_plugins, option
from graphrag_eval_lc.cli.plugins import print_plugins
from graphrag_eval_lc.cli.printing import EXIT_FINDINGS, print_json, say
from graphrag_eval_lc.cli.project import Config
from graphrag_eval_lc.cli.secret_files import find_secrets
from graphrag_eval_lc.onboarding.doctor import Examination
from graphrag_eval_lc.texts import counted

_WIDTH = 9


def doctor(
    agent: Annotated[str | None, option("--agent -a", "The agent, as for run.", "SPEC")] = None,
    dataset: Annotated[Path | None, option("--dataset -d", "The reference dataset.", "FILE")] = None,
    output: Annotated[Path | None, option("--output -o", "The folder that runs are written to.", "DIR")] = None,
    config: Config = None,
    agent_key_env: Annotated[
        str | None, option("--agent-key-env", "The environment variable with the key of the agent's server.", "NAME")
    ] = None,
    input_fn: Annotated[
        str | None, option("--input-fn", "A function that makes the agent's input from a question.", "SPEC")
    ] = None,
    ask: Annotated[bool, option("--ask", "Ask the agent the first question of the dataset, which may cost.")] = False,
    ask_models: Annotated[bool, option("--ask-models", "Send each model of the judges one tiny request.")] = False,
    as_json: JsonRows = False,
    shows_plugins: Annotated[
        bool,
        option(
            "--plugins",
            "Instead list the plugins and what they add: those of installed packages (entry points of the group "
            "graphrag_eval_lc, unless GRAPHRAG_EVAL_LC_NO_PLUGINS is set), those of --plugin, and those of the config.",
        ),
    ] = False,
    show_all: Annotated[bool, option("--all", "With --plugins: also list what the package itself registers.")] = False,
    plugins: Plugins = None,
    secrets: Annotated[
        Path | None,
        option("--secrets", "Instead find keys, tokens and passwords in this run, folder of runs or file.", "PATH"),
    ] = None,
    mask: Annotated[
        bool, option("--mask", "With --secrets: replace the secrets in the files by ***, which cannot be undone.")
    ] = False,
) -> None:
    """Check what a run needs: versions, config, agent, dataset, gates, models.

    Missing options are read from `graphrag_eval.yaml`, which `init` writes. It costs nothing, unless you add `--ask` or
    `--ask-models`. Exits with 1 if it finds errors, or secrets, even if they are masked now.

    For example:

    `graphrag-eval-lc doctor --agent my_agent.py:agent --dataset questions.yaml`
    """
    if secrets is not None:
        find_secrets(secrets, mask=mask, as_json=as_json)
        return
    load_named_plugins(plugins)
    if shows_plugins:
        print_plugins(config, show_all=show_all)
        return
    examination = Examination(
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
    for check in examination.checks():
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
        say(f"\n{' and '.join(found) or 'No problems found'}.")
    if errors:
        raise typer.Exit(EXIT_FINDINGS)
