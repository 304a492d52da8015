"""The commands that ask an agent: run, and demo with the agent of the package."""

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from graphrag_eval_lc.cli.options import (
    ASKING,
    CAPTURE,
    DISPLAY,
    ENDING,
    FOLDER,
    Config,
    Evaluators,
    FailUnder,
    Href,
    Label,
    Limit,
    LogFile,
    Matchers,
    MaxConcurrency,
    MaxCost,
    MaxRetries,
    Measures,
    NoCache,
    NoReport,
    Overwrite,
    Plugins,
    QuestionIds,
    Quiet,
    Repeats,
    SampleSize,
    Seed,
    Tags,
    TemplateIds,
    Timeout,
    Worst,
    comma_separated,
    load_named_plugins,
    measure_names,
)
from graphrag_eval_lc.errors import OptionError

_ALL = "all"
_CONFIG_HINT = 'Write it as \'{"configurable": {"user": "eval"}}\'.'


def run(
    dataset: Annotated[Path, typer.Argument(help="The reference dataset (YAML, JSON or JSON Lines).")],
    agent: Annotated[
        str,
        typer.Option(
            "--agent",
            "-a",
            help="package.module:attribute or path/to/file.py:attribute: a compiled graph or another Runnable, a "
            "function of a question, or a function that returns one of these; langgraph.json:graph, or graph where a "
            "langgraph.json is here; or http://127.0.0.1:2024/assistant on a LangGraph server.",
            metavar="SPEC",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="The folder to write to. A run that it holds goes on where it ended.",
            metavar="DIR",
        ),
    ],
    config: Config = None,
    measures: Measures = None,
    evaluators: Evaluators = None,
    plugins: Plugins = None,
    matchers: Matchers = None,
    limit: Limit = None,
    templates: TemplateIds = None,
    questions: QuestionIds = None,
    sample: SampleSize = None,
    seed: Seed = None,
    max_concurrency: MaxConcurrency = 8,
    requests_per_minute: Annotated[
        float | None,
        typer.Option(
            "--requests-per-minute",
            help="How many attempts may start in a minute, evenly spread.",
            rich_help_panel=ASKING,
        ),
    ] = None,
    timeout: Timeout = 600,
    max_retries: MaxRetries = 2,
    repeats: Repeats = 1,
    recursion_limit: Annotated[
        int | None,
        typer.Option("--recursion-limit", min=1, help="LangGraph's recursion limit.", rich_help_panel=ASKING),
    ] = None,
    input_fn: Annotated[
        str | None,
        typer.Option(
            "--input-fn",
            help="A function that makes the agent's input from a question (a dict with all its keys).",
            metavar="SPEC",
            rich_help_panel=ASKING,
        ),
    ] = None,
    answer_fn: Annotated[
        str | None,
        typer.Option(
            "--answer-fn",
            help="A function that makes the answer from the agent's output.",
            metavar="SPEC",
            rich_help_panel=ASKING,
        ),
    ] = None,
    agent_config: Annotated[
        str | None,
        typer.Option(
            "--agent-config",
            help='More of the config that the agent is invoked with, such as \'{"configurable": {"user": "eval"}}\'.',
            metavar="JSON",
            rich_help_panel=ASKING,
        ),
    ] = None,
    agent_key_env: Annotated[
        str | None,
        typer.Option(
            "--agent-key-env",
            help="The environment variable with the key of the agent's server; LANGSMITH_API_KEY by default. The key "
            "is never written down.",
            metavar="NAME",
            rich_help_panel=ASKING,
        ),
    ] = None,
    retrieval_documents: Annotated[
        list[str] | None,
        typer.Option(
            "--retrieval-documents",
            help="Keep the documents of this retriever tool as its output, as JSON with ids, in place of the text that "
            "the model reads; all: of every tool; may be repeated. Needed where retrieval is scored.",
            metavar="TOOL|all",
            rich_help_panel=CAPTURE,
        ),
    ] = None,
    max_output_chars: Annotated[
        int | None,
        typer.Option(
            "--max-output-chars",
            min=0,
            help="Cut longer outputs and errors of steps and longer messages, with a warning; JSON that is cut can no "
            "longer be compared.",
            metavar="N",
            rich_help_panel=CAPTURE,
        ),
    ] = None,
    no_artifacts: Annotated[
        bool,
        typer.Option("--no-artifacts", help="Do not keep what tools give beside their text.", rich_help_panel=CAPTURE),
    ] = False,
    keep_messages: Annotated[
        bool,
        typer.Option(
            "--keep-messages",
            help="Keep what each model call was given and gave, each message once; the report shows it.",
            rich_help_panel=CAPTURE,
        ),
    ] = False,
    max_failures: Annotated[
        str | None,
        typer.Option(
            "--max-failures",
            help="End the run when more questions failed than this number, or this share such as 5%.",
            metavar="N|N%",
            rich_help_panel=ENDING,
        ),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            "--max-tokens",
            min=1,
            help="End the run before a question that would take it beyond so many tokens.",
            rich_help_panel=ENDING,
        ),
    ] = None,
    max_time: Annotated[
        float | None,
        typer.Option(
            "--max-time",
            help="End the run before a question that would take it beyond so many seconds.",
            rich_help_panel=ENDING,
        ),
    ] = None,
    max_cost: MaxCost = None,
    grace: Annotated[
        float,
        typer.Option(
            "--grace",
            min=0,
            help="Seconds that questions in flight have to end after Ctrl-C; a second Ctrl-C ends the run at once.",
            rich_help_panel=ENDING,
        ),
    ] = 30,
    retry_errors: Annotated[
        bool,
        typer.Option("--retry-errors", help="Ask the failed questions of the run again.", rich_help_panel=FOLDER),
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Go on with a run although its questions, its agent or what is kept of it changed, or a plugin, a "
            "matcher or an evaluator that scored it is missing.",
            rich_help_panel=FOLDER,
        ),
    ] = False,
    overwrite: Overwrite = False,
    no_cache: NoCache = False,
    no_report: NoReport = False,
    label: Label = None,
    href: Href = None,
    tags: Tags = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show what would be asked, and ask nothing.", rich_help_panel=DISPLAY),
    ] = False,
    fail_under: FailUnder = None,
    quiet: Quiet = False,
    log_file: LogFile = None,
    worst: Worst = 5,
) -> None:
    """Put the questions of a dataset through an agent and score the responses.

    Writes responses.jsonl (a line as each response ends), run.json, results.jsonl, aggregates.yaml and report.html,
    and prints the scores by template. A question that fails becomes an error sample and does not end the run. The
    same command goes on with a run that was interrupted; what is answered is not asked again.

    For example:

    `graphrag-eval-lc run qa.yaml --agent my_package.agent:graph --output runs/first`

    `graphrag-eval-lc run qa.yaml -a agent.py:make_agent -o runs/second -c config.yaml -j 32 --repeats 3`

    `graphrag-eval-lc run qa.yaml -a langgraph.json:agent -o runs/third --plugin my_package.metrics`

    `graphrag-eval-lc run qa.yaml -a https://graphs.example/agent -o runs/deployed --agent-key-env MY_KEY`

    `graphrag-eval-lc run qa.yaml -a agent.py:make_agent -o runs/try --sample 20 --seed 1 --dry-run`
    """
    # Imported here so that --help does not wait for langchain-core and langgraph.
    from graphrag_eval_lc.benchmark.run_benchmark import plan_benchmark
    from graphrag_eval_lc.benchmark.scorers import load_matchers
    from graphrag_eval_lc.cli.outcome import measuring_config, required_means, run_and_show, show_plan

    names = measure_names(measures)
    load_named_plugins(plugins)
    load_matchers(matchers or ())
    requirements = required_means(fail_under or (), config)  # before an agent is asked
    options: dict[str, Any] = {
        "output_dir": output,
        "config": measuring_config(config, names),
        "limit": limit,
        "template_ids": templates or (),
        "question_ids": questions or (),
        "sample": sample,
        "seed": seed,
        "max_concurrency": max_concurrency,
        "requests_per_minute": requests_per_minute,
        "timeout": timeout or None,
        "max_retries": max_retries,
        "repeats": repeats,
        "input_fn": input_fn,
        "answer_fn": answer_fn,
        "agent_config": _agent_config(agent_config, recursion_limit),
        "agent_key_env": agent_key_env,
        "capture": _capture(retrieval_documents, max_output_chars, no_artifacts, keep_messages),
        "max_failures": max_failures,
        "max_tokens": max_tokens,
        "max_time": max_time,
        "max_cost": max_cost,
        "evaluators": evaluators or (),
        "judge_cache": not no_cache,
        "grace": grace,
        "retry_errors": retry_errors,
        "force": force,
        "overwrite": overwrite,
        "label": label,
        "href": href,
        "tags": tags or (),
        "progress": "off" if quiet else "auto",
        "log_file": log_file,
    }
    if dry_run:
        show_plan(plan_benchmark(agent, dataset, **options))
    else:
        run_and_show(
            agent,
            dataset,
            worst=worst,
            measures=names or (),
            requirements=requirements,
            has_report=not no_report,
            **options,
        )


def _capture(
    retrieval_documents: list[str] | None, max_output_chars: int | None, no_artifacts: bool, keep_messages: bool
) -> dict[str, Any]:
    """Return the handler's options that are given here; for all others the config's section counts."""
    options: dict[str, Any] = {}
    if retrieval_documents is not None:
        tools = comma_separated(retrieval_documents)
        if not tools:
            raise OptionError(
                "--retrieval-documents names no tool", hint="Write --retrieval-documents search_docs, or all."
            )
        options["retrieval_documents"] = True if _ALL in tools else tools
    if max_output_chars is not None:
        options["max_output_chars"] = max_output_chars
    if no_artifacts:
        options["keep_artifacts"] = False
    if keep_messages:
        options["keep_messages"] = True
    return options


def _agent_config(text: str | None, recursion_limit: int | None) -> dict[str, Any]:
    try:
        config = {} if text is None else json.loads(text)
    except ValueError as problem:
        raise OptionError(f"--agent-config is no JSON ({problem})", hint=_CONFIG_HINT) from None
    if not isinstance(config, dict):
        raise OptionError("--agent-config is no JSON object", hint=_CONFIG_HINT)
    return config if recursion_limit is None else {**config, "recursion_limit": recursion_limit}


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
