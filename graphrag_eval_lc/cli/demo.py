"""The command ``demo``: an agent over a power grid, without a key or a network."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from graphrag_eval_lc.cli.options import (
    Config,
    MaxConcurrency,
    Measures,
    NoReport,
    Quiet,
    Repeats,
    Worst,
    measure_names,
)


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to write to; replaced each time.", metavar="DIR")
    ] = Path("runs/demo"),
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="A chat model as provider:name, such as openai:gpt-4o-mini, in place of the rule-based planner.",
            metavar="PROVIDER:NAME",
        ),
    ] = None,
    config: Config = None,
    measures: Measures = None,
    max_concurrency: MaxConcurrency = 8,
    repeats: Repeats = 1,
    no_report: NoReport = False,
    quiet: Quiet = False,
    worst: Worst = 5,
) -> None:
    """Run the built-in agent over a Nordic power grid, score it, and show where it went wrong.

    The agent is a real LangGraph agent with a SPARQL store and a document search. By default its chat model is a
    rule-based planner, which needs no key and no network and errs on purpose on some questions. Needs the extra
    `graphrag-eval-lc[demo]`.

    For example:

    `graphrag-eval-lc demo`

    `graphrag-eval-lc demo --model openai:gpt-4o-mini --output runs/gpt-4o-mini`
    """
    # Imported here so that --help does not wait for langchain-core and langgraph.
    from graphrag_eval_lc.cli.outcome import measuring_config, run_and_show
    from graphrag_eval_lc.config import PriceConfig, load_config
    from graphrag_eval_lc.demo import DATASET_PATH
    from graphrag_eval_lc.demo.agent import create_demo_agent

    names = measure_names(measures)
    settings = load_config(measuring_config(config, names))
    if model is None:  # the planner costs nothing
        prices = {"rule-based-planner": PriceConfig(input=0, output=0), **settings.prices}
        settings = settings.model_copy(update={"prices": prices})
    run_and_show(
        partial(create_demo_agent, model),
        DATASET_PATH,
        worst=worst,
        has_report=not no_report,
        measures=names or (),
        output_dir=output,
        config=settings,
        max_concurrency=max_concurrency,
        repeats=repeats,
        label=f"demo, {model or 'rule-based planner'}",
        overwrite=True,
        progress="off" if quiet else "auto",
    )
