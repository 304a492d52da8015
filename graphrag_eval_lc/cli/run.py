"""The commands that ask an agent: run, and demo with the agent of the package."""

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_eval_lc.benchmark.option_fields import ASKING, CAPTURE, COMMON, DISPLAY, GATES, Common
from graphrag_eval_lc.cli.ci_options import JUnit, NoSummary, Summary, ci_files
from graphrag_eval_lc.cli.compare import last_baseline
from graphrag_eval_lc.cli.model_options import After, keywords, with_fields_of
from graphrag_eval_lc.cli.options import (
    BRIEF_FAIL_UNDER,
    AsJson,
    ConfigFile,
    FailOver,
    FailUnder,
    Matchers,
    Measures,
    NoReport,
    Plugins,
    Worst,
    comma_separated,
    load_named_plugins,
    measure_names,
)
from graphrag_eval_lc.cli.project import Config, Dataset, needed_for_run, new_run_folder
from graphrag_eval_lc.errors import OptionError

if TYPE_CHECKING:
    from graphrag_eval_lc.benchmark.run_options import RunOptions

_ALL = "all"
_CONFIG_HINT = 'Write it as \'{"configurable": {"user": "eval"}}\'.'


def _models() -> "tuple[type[RunOptions]]":
    # Imported here so that --help does not wait for pydantic.
    from graphrag_eval_lc.benchmark.run_options import RunOptions

    return (RunOptions,)


@with_fields_of(_models)
def run(
    dataset: Dataset = None,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent",
            "-a",
            help="package.module:attribute or path/to/file.py:attribute: a compiled graph or another Runnable, a "
            "function of a question, or a function that returns one of these; langgraph.json:graph, or graph where a "
            "langgraph.json is here; or http://127.0.0.1:2024/assistant on a LangGraph server.",
            metavar="SPEC",
        ),
        Common(
            "The agent: FILE.py:NAME, package.module:NAME, a graph of langgraph.json, or its address; by "
            "default that of graphrag_eval.yaml."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The folder to write to. A run that it holds goes on where it ended. By default a new one, in the "
            "folder that run.output of the config names.",
            metavar="DIR",
        ),
        COMMON,
    ] = None,
    config: Annotated[Config, COMMON] = None,
    measures: Measures = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show what would be asked, and ask nothing.", rich_help_panel=DISPLAY),
        COMMON,
    ] = False,
    *,
    plugins: Plugins = None,
    matchers: Matchers = None,
    recursion_limit: Annotated[
        int | None,
        typer.Option("--recursion-limit", min=1, help="LangGraph's recursion limit.", rich_help_panel=ASKING),
        After("repeats"),
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
    redact: Annotated[
        str | None,
        typer.Option(
            "--redact",
            help="secrets: mask keys, tokens and passwords in what tools took and gave, in messages and answers; or a "
            "function that gives what is kept in place of a value, as package.module:function. Errors are always "
            "masked.",
            metavar="secrets|FUNCTION",
            autocompletion=lambda: ["secrets"],
            rich_help_panel=CAPTURE,
        ),
    ] = None,
    no_report: NoReport = False,
    fail_under: Annotated[FailUnder, BRIEF_FAIL_UNDER] = None,
    fail_over: FailOver = None,
    fail_on_regression: Annotated[
        bool,
        typer.Option(
            "--fail-on-regression",
            help="Exit with 1 if the run is worse than --baseline in the main metric, by the rule of compare.",
            rich_help_panel=GATES,
        ),
    ] = False,
    worst: Worst = 5,
    as_json: AsJson = False,
    summary: Summary = None,
    no_summary: NoSummary = False,
    junit: JUnit = None,
    **options: Any,
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

    `graphrag-eval-lc run qa.yaml -a a.py:agent --baseline runs/main --fail-on-regression --confirm 1`

    `graphrag-eval-lc run qa.yaml -a agent.py:make_agent -o runs/night-3-of-16 --shard 3/16`
    """
    # Imported here so that --help does not wait for langchain-core and langgraph.
    from graphrag_eval_lc.benchmark.run_benchmark import plan_benchmark
    from graphrag_eval_lc.benchmark.specs import load_matchers
    from graphrag_eval_lc.cli.outcome import gates_of_a_run, measuring_config, run_and_show, show_plan

    agent, dataset = needed_for_run(config, agent=agent, dataset=dataset)
    files = ci_files(summary, junit, no_summary=no_summary)
    names = measure_names(measures)
    load_named_plugins(plugins)
    load_matchers(matchers or ())
    folder = output if output is not None else new_run_folder(config, options["shard"])
    if options["baseline"] is not None:
        options["baseline"] = last_baseline(options["baseline"], [folder], is_told=not as_json)
    options["agent_config"] = _agent_config(options["agent_config"], recursion_limit)
    given: dict[str, Any] = {
        **keywords(*_models(), options),
        "output_dir": folder,
        "config": measuring_config(config, names),
        "capture": _capture(retrieval_documents, max_output_chars, no_artifacts, keep_messages, redact),
        "gates": gates_of_a_run(fail_under, fail_over),
    }
    if dry_run:
        show_plan(plan_benchmark(agent, dataset, **given))
    else:
        run_and_show(
            agent,
            dataset,
            worst=worst,
            measures=names or (),
            has_report=not no_report,
            as_json=as_json,
            files=files,
            **given,
        )


def _capture(
    retrieval_documents: list[str] | None,
    max_output_chars: int | None,
    no_artifacts: bool,
    keep_messages: bool,
    redact: str | None,
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
    if redact is not None:
        options["redact"] = redact
    return options


def _agent_config(text: str | None, recursion_limit: int | None) -> dict[str, Any]:
    try:
        config = {} if text is None else json.loads(text)
    except ValueError as problem:
        raise OptionError(f"--agent-config is no JSON ({problem})", hint=_CONFIG_HINT) from None
    if not isinstance(config, dict):
        raise OptionError("--agent-config is no JSON object", hint=_CONFIG_HINT)
    return config if recursion_limit is None else {**config, "recursion_limit": recursion_limit}


@with_fields_of(
    _models, only=("max_concurrency", "repeats", "overwrite", "keep_answers", "force", "open_files", "progress")
)
def demo(
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="The folder to write to. Answers that it holds are not asked again.", metavar="DIR"
        ),
        COMMON,
    ] = Path("runs/demo"),
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="A chat model as provider:name, such as openai:gpt-4o-mini, in place of the rule-based planner.",
            metavar="PROVIDER:NAME",
        ),
        COMMON,
    ] = None,
    config: Annotated[ConfigFile, COMMON] = None,
    measures: Measures = None,
    *,
    no_report: NoReport = False,
    worst: Worst = 5,
    summary: Summary = None,
    no_summary: NoSummary = False,
    junit: JUnit = None,
    **options: Any,
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

    files = ci_files(summary, junit, no_summary=no_summary)
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
        label=f"demo, {model or 'rule-based planner'}",
        files=files,
        **keywords(*_models(), options),
    )
