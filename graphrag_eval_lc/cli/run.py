"""The commands that run an agent: ``run``, and ``demo`` with the package's own agent."""

import json
from functools import partial
from pathlib import Path
from typing import Any

from graphrag_eval_lc.benchmark.run_options import RunOptions
from graphrag_eval_lc.cli.options import comma_separated, keywords, load_named_plugins, measure_names, with_options
from graphrag_eval_lc.cli.project import Config, Dataset, needed_for_run, new_run_folder
from graphrag_eval_lc.config import GraphConfig, PriceConfig, load_config
from graphrag_eval_lc.demo import DATASET_PATH, VOCABULARY_PATH
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.report.machine_files import CiFiles

_ALL = "all"
_CONFIG_HINT = 'Write it as \'{"configurable": {"user": "eval"}}\'.'


@with_options(RunOptions)
def run(
    dataset: Dataset = None,
    agent: str | None = None,
    output: Path | None = None,
    config: Config = None,
    fail_under: list[str] | None = None,
    dry_run: bool = False,
    measures: list[str] | None = None,
    plugins: list[str] | None = None,
    recursion_limit: int | None = None,
    retrieval_documents: list[str] | None = None,
    max_output_chars: int | None = None,
    no_artifacts: bool = False,
    keep_messages: bool = False,
    redact: str | None = None,
    replay: Path | None = None,
    endpoint_env: str = "SPARQL_ENDPOINT",
    no_report: bool = False,
    serve: bool = False,
    fail_over: list[str] | None = None,
    fail_on_regression: bool = False,
    worst: int = 5,
    as_json: bool = False,
    summary: Path | None = None,
    junit: Path | None = None,
    **options: Any,
) -> None:
    """Run a dataset through an agent and score its responses.

    Writes responses.jsonl (one line for each response, written when it is complete), run.json, results.jsonl,
    aggregates.yaml and report.html, and prints why questions failed and the scores by template. A question that fails
    is recorded as an error. After an interruption or a crash, the same command resumes the run: answered questions are
    not asked again.

    For example:

    `graphrag-eval-lc run qa.yaml --agent my_agent.py:graph --output runs/first`

    Options:
        --agent -a SPEC: The agent: FILE.py:NAME, package.module:NAME, langgraph.json:GRAPH, or an address. NAME is a
            compiled graph or another Runnable, a function that takes a question, or a function that returns one of
            these. An address names an assistant on a LangGraph server, such as http://127.0.0.1:2024/assistant.
            Default: the agent in graphrag_eval.yaml.
        --output -o DIR: The folder to write to. A run in it is resumed. Default: a new folder in run.output of the
            config.
        --dry-run: Only show what would be asked.

    Asking the questions:
        --recursion-limit (min 1): LangGraph's recursion limit.
        --replay FILE: Replay the agent's SPARQL calls from this file (see proxy), at the address in --endpoint-env.
        --endpoint-env NAME: The environment variable from which the agent reads the address of its endpoint, for
            --replay.

    Recording the agent's steps:
        --redact secrets|FUNCTION: secrets: mask keys, tokens and passwords in arguments and outputs of tools, messages
            and answers; or a function that returns the value to keep, as package.module:function. Errors are always
            masked.
        --retrieval-documents TOOL|all: Keep the documents of this retriever tool as its output, as JSON with ids,
            instead of the text that the model reads; 'all' does this for every retriever tool. May be repeated. Needed
            to score retrieval.
        --max-output-chars N (min 0): Cut longer outputs, errors and messages, with a warning. JSON that is cut cannot
            be compared.
        --no-artifacts: Do not keep what tools return in addition to their text.
        --keep-messages: Keep the messages to and from each model call, each message once; the report shows them.

    Output:
        --serve: Serve the report live during the run, at a local address that is printed first. Needs the extra
            graphrag-eval-lc[report].

    Gates: when the command exits with 1:
        --fail-on-regression: Exit with 1 if the run is worse than --baseline in the main metric, by the same rule as
            `compare`.
    """
    # Imported here so that --help does not wait for LangGraph.
    from graphrag_eval_lc.benchmark.run_benchmark import plan_benchmark
    from graphrag_eval_lc.cli.compare import last_baseline
    from graphrag_eval_lc.cli.graph import replayed
    from graphrag_eval_lc.cli.outcome import Shown, gates_of_a_run, measuring_config, run_and_show, show_plan

    agent, dataset = needed_for_run(config, agent=agent, dataset=dataset)
    names = measure_names(measures)
    shown = Shown(worst, names or (), not no_report, as_json, CiFiles.of(summary, junit), is_live=serve)
    load_named_plugins(plugins)
    folder = output if output is not None else new_run_folder(config, options["shard"])
    if options["baseline"] is not None:
        options["baseline"] = last_baseline(options["baseline"], [folder], on_stdout=not as_json)
    options["agent_config"] = _agent_config(options["agent_config"], recursion_limit)
    given: dict[str, Any] = {
        **keywords(RunOptions, options),
        "output_dir": folder,
        "config": measuring_config(config, names),
        "capture": _capture(retrieval_documents, max_output_chars, no_artifacts, keep_messages, redact),
        "gates": gates_of_a_run(fail_under, fail_over),
    }
    if dry_run:
        show_plan(plan_benchmark(agent, dataset, **given))
    else:
        with replayed(replay, endpoint_env):
            run_and_show(agent, dataset, shown, **given)


def _capture(
    retrieval_documents: list[str] | None,
    max_output_chars: int | None,
    no_artifacts: bool,
    keep_messages: bool,
    redact: str | None,
) -> dict[str, Any]:
    """Return the capture options that the command line sets; the config's section ``capture`` has the others."""
    tools = None if retrieval_documents is None else comma_separated(retrieval_documents)
    if tools == []:
        raise OptionError("--retrieval-documents names no tool", hint="Write --retrieval-documents docs, or all.")
    options = {
        "retrieval_documents": True if tools is not None and _ALL in tools else tools,
        "max_output_chars": max_output_chars,
        "keep_artifacts": False if no_artifacts else None,
        "keep_messages": keep_messages or None,
        "redact": redact,
    }
    return {name: value for name, value in options.items() if value is not None}


def _agent_config(text: str | None, recursion_limit: int | None) -> dict[str, Any]:
    try:
        config = {} if text is None else json.loads(text)
    except ValueError as problem:
        raise OptionError(f"--agent-config is not JSON ({problem})", hint=_CONFIG_HINT) from None
    if not isinstance(config, dict):
        raise OptionError("--agent-config is not a JSON object", hint=_CONFIG_HINT)
    return config if recursion_limit is None else {**config, "recursion_limit": recursion_limit}


@with_options(
    RunOptions, only=("max_concurrency", "repeats", "overwrite", "keep_answers", "force", "open_files", "progress")
)
def demo(
    output: Path = Path("runs/demo"),
    model: str | None = None,
    config: Path | None = None,
    measures: list[str] | None = None,
    no_report: bool = False,
    worst: int = 5,
    summary: Path | None = None,
    junit: Path | None = None,
    **options: Any,
) -> None:
    """Run the built-in agent over a Nordic power grid and show which steps fail.

    The agent is a real LangGraph agent with a SPARQL store and a document search. Its chat model is a rule-based
    planner, which works without a key or a network and makes mistakes on purpose. Needs the extra
    `graphrag-eval-lc[demo]`.

    For example:

    `graphrag-eval-lc demo --output runs/demo`

    Options:
        --output -o DIR: The folder to write to. A run in it is resumed.
        --model -m PROVIDER:NAME: A chat model such as openai:gpt-4o-mini, instead of the rule-based planner.
    """
    # Imported here so that --help does not wait for LangGraph, nor for the extra [demo].
    from graphrag_eval_lc.cli.outcome import Shown, measuring_config, run_and_show
    from graphrag_eval_lc.demo.agent import create_demo_agent

    names = measure_names(measures)
    shown = Shown(worst, names or (), not no_report, files=CiFiles.of(summary, junit))
    settings = load_config(measuring_config(config, names))
    if model is None:  # the planner costs nothing
        prices = {"rule-based-planner": PriceConfig(input=0, output=0), **settings.prices}
        settings = settings.model_copy(update={"prices": prices})
    if settings.graph == GraphConfig():
        settings = settings.model_copy(update={"graph": GraphConfig(vocabulary=str(VOCABULARY_PATH))})
    run_and_show(
        partial(create_demo_agent, model),
        DATASET_PATH,
        shown,
        output_dir=output,
        config=settings,
        label=f"demo, {model or 'rule-based planner'}",
        **keywords(RunOptions, options),
    )
