"""The commands on existing responses: ``score``, ``merge`` for the parts of a run, and ``import-traces``."""

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from graphrag_eval_lc.benchmark.option_fields import MORE, cli_options
from graphrag_eval_lc.benchmark.score_options import ScoreOptions, ScoreRunOptions
from graphrag_eval_lc.cli.options import keywords, load_named_plugins, measure_names, option, option_name, with_options
from graphrag_eval_lc.cli.printing import EXIT_FINDINGS, echo_err, print_json, say
from graphrag_eval_lc.cli.project import Config
from graphrag_eval_lc.cli.runs import recovered
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.files.writing import json_line, refuse_existing, replace_file
from graphrag_eval_lc.records import is_error
from graphrag_eval_lc.report.machine_files import CiFiles, run_document
from graphrag_eval_lc.run_folder import RESPONSES_FILE
from graphrag_eval_lc.texts import counted
from graphrag_eval_lc.traces.reading import TraceReading, nothing_read


@with_options(ScoreOptions, ScoreRunOptions)
def score(
    dataset: Path,
    responses: Path | None = None,
    output: Path | None = None,
    config: Config = None,
    fail_under: list[str] | None = None,
    dry_run: bool = False,
    reference: Annotated[
        Path | None,
        option("--dataset", "With a run's folder: another dataset than the one in its run.json.", "FILE", MORE),
    ] = None,
    measures: list[str] | None = None,
    plugins: list[str] | None = None,
    no_report: bool = False,
    fail_over: list[str] | None = None,
    worst: int = 5,
    as_json: bool = False,
    summary: Path | None = None,
    junit: Path | None = None,
    **options: Any,
) -> None:
    """Score recorded responses without calling an agent.

    Writes run.json, responses.jsonl, results.jsonl, aggregates.yaml and report.html, and prints the scores by
    template. The folder of a run is scored again in place, for example after you fixed a reference: results,
    aggregates, totals, the report and the config in run.json are replaced. If you select only some questions, they
    cover only these until the folder is scored again.

    For example:

    `graphrag-eval-lc score qa.yaml responses.jsonl --output runs/monday`

    Options:
        dataset DATASET|RUN_DIR: The reference dataset (YAML, JSON or JSON Lines); or the folder of a run, scored again
            in place.
        responses: The responses (JSON Lines, JSON or YAML), or the folder of a run.
        --output -o DIR: The folder to write to.
        --dry-run: Only show what the judges would ask, with tokens and USD.
    """
    # Imported here so that --help does not wait for LangChain.
    from graphrag_eval_lc.benchmark.score_responses import plan_score_run, plan_scoring, score_responses, score_run
    from graphrag_eval_lc.cli.outcome import Shown, gates_of_a_run, measuring_config, show_judging_plan, show_run

    names = measure_names(measures)
    load_named_plugins(plugins)
    files = CiFiles.of(summary, junit)
    shown = Shown(worst, names or (), not no_report, as_json, files, is_quiet=options["progress"], is_scored_again=True)
    given: dict[str, Any] = {"gates": gates_of_a_run(fail_under, fail_over), "report": False}  # show_run writes it
    if responses is None:
        _check_folder(dataset, output)
        _refuse_others("with a run's folder, which has its own", options, ScoreRunOptions)
        recovered(dataset, is_quiet=as_json)
        given |= {"dataset": reference, "config": config, "measures": names, **keywords(ScoreRunOptions, options)}
        if dry_run:
            show_judging_plan(plan_score_run(dataset, **given))
        else:
            show_run(score_run(dataset, **given), shown)
        return
    if output is None:
        raise OptionError("no output folder is given", hint="Add --output DIR.")
    if reference is not None:
        _refuse(["--dataset"], "with responses, whose dataset is the first argument")
    _refuse_others("with responses, which nothing has scored yet", options, ScoreOptions)
    given |= {"output_dir": output, "config": measuring_config(config, names), **keywords(ScoreOptions, options)}
    found = responses / RESPONSES_FILE if responses.is_dir() else responses
    if dry_run:
        show_judging_plan(plan_scoring(dataset, found, **given))
    else:
        show_run(score_responses(dataset, found, **given), shown)


def _check_folder(dataset: Path, output: Path | None) -> None:
    """Refuse to score in place what is not the folder of a run."""
    if output is not None and dataset.is_dir():
        hint = "Leave --output out, or copy the folder and score the copy."
        raise OptionError("the folder of a run is scored in place", path=dataset, hint=hint)
    if output is not None or not dataset.is_dir():
        what = "the responses are missing" if output is not None else f"{dataset} is not the folder of a run"
        raise OptionError(what, hint="Write: score DATASET RESPONSES --output DIR, or: score RUN_DIR.")


def _refuse_others(where: str, options: Mapping[str, Any], model: type[ScoreOptions | ScoreRunOptions]) -> None:
    """Refuse given options that are not fields of a model."""
    others = {name: cli for each in (ScoreOptions, ScoreRunOptions) for name, (_, cli) in cli_options(each).items()}
    given = [name for name in others if options[name] and name not in model.model_fields]
    _refuse(sorted(option_name(name, others[name]) for name in given), where)


def _refuse(names: Sequence[str], where: str) -> None:
    if names:
        raise OptionError(f"{', '.join(names)} cannot be used {where}", hint="Leave it out.")


@with_options()
def merge(
    runs: list[Path],
    output: Path,
    dataset: Path | None = None,
    fail_under: list[str] | None = None,
    fail_over: list[str] | None = None,
    overwrite: bool = False,
    dry_run: bool = False,
    label: str | None = None,
    force: bool = False,
    open_files: bool = False,
    no_report: bool = False,
    worst: int = 5,
    as_json: bool = False,
    summary: Path | None = None,
    junit: Path | None = None,
) -> None:
    """Merge shards, or runs over different questions, into one run.

    Dataset, agent, capture, config, repeats and limits must be the same. The result is a run like any other: run
    resumes it, and score, report and compare accept it. The parts are not changed. Results are copied. Responses that
    a killed part has not scored are scored now, unless your models or functions judge: then use score. Exits with 1 if
    samples are missing, and lists them.

    For example:

    `graphrag-eval-lc merge runs/night-*-of-16 -o runs/night`

    Options:
        runs RUN_DIR: The folders of the parts, in any order; a merged run may be among them.
        --output -o DIR: The folder of the merged run.
        --dataset FILE: The dataset, if run.json does not name its file.
        --dry-run: Only show what would be merged and what is missing.

    The run folder:
        --label: A name for the run; by default that of the parts.
        --force: Merge parts with another agent, capture or other limits anyway. If there are two answers to one
            question, keep the one that succeeded, or the first.
        --open-files: Let the umask decide who may read new files. Otherwise only you may.
    """
    # Imported here so that --help does not wait for LangChain.
    from graphrag_eval_lc.benchmark.merge_runs import NOT_SCORED, merge_runs, plan_merge
    from graphrag_eval_lc.cli.outcome import Shown, gates_of_a_run, show_run

    if dry_run:
        plan = plan_merge(runs, output_dir=output, dataset=dataset, force=force)
        answered = f"{plan.answered:,} of {counted(plan.samples, 'sample')} answered"
        say(f"{counted(plan.runs, 'run')} would be merged: {answered}.")
        if plan.errors:
            say(f"{plan.errors:,} of those failed.")
        for warning in plan.warnings:
            echo_err(f"Warning: {warning}")
        if plan.missing:
            echo_err(f"The run would not be complete: {plan.missing}.")
            raise typer.Exit(EXIT_FINDINGS)
        return
    run = merge_runs(
        runs,
        output_dir=output,
        dataset=dataset,
        label=label,
        gates=gates_of_a_run(fail_under, fail_over),
        overwrite=overwrite,
        force=force,
        open_files=open_files,
    )
    if run.stopped is not None and run.stopped["reason"] == NOT_SCORED:
        if as_json:
            print_json(run_document(run, []))
        for warning in run.warnings:
            echo_err(f"Warning: {warning}")
        echo_err(f"Merged into {output}, and not scored yet: {run.stopped['message']}.")
        raise typer.Exit(EXIT_FINDINGS)
    files = CiFiles.of(summary, junit)
    # Its warnings are not printed yet.
    show_run(run, Shown(worst, (), not no_report, as_json, files, is_quiet=True, is_scored_again=True))


@with_options()
def import_traces(traces: Path, output: Path, dataset: Path | None = None, overwrite: bool = False) -> None:
    """Convert traces of other tools to responses, to score them.

    So you do not need to run the agent again. Supported instrumentations: Traceloop (OpenLLMetry), OpenInference,
    Langfuse, pydantic-ai, OpenAI's agents, smolagents, LlamaIndex, and any that follows OpenTelemetry's GenAI
    conventions. The id of a question is read from the metadata of its trace (`question_id`), otherwise it is found by
    the question's text. Other traces are left out. Exits with 2 if no response is found, or the file cannot be read.

    For example:

    `graphrag-eval-lc import-traces traces.json --dataset qa.yaml -o responses.jsonl`

    Options:
        traces TRACES: Spans of OpenTelemetry (OTLP as JSON, also a line for each batch), or runs of LangSmith (JSON,
            JSON Lines). The format is recognised automatically.
        --output -o FILE: The file of responses to write (JSON Lines).
        --dataset FILE: The dataset of the questions. Their texts identify traces without an id.
    """
    refuse_existing(output, overwrite=overwrite)
    reading = TraceReading(traces, dataset)
    count: Counter[str] = Counter()

    def lines() -> Iterator[bytes]:
        for response in reading:
            count["responses"] += 1
            count["steps"] += len(response.get("actual_steps") or ())
            count["errors"] += is_error(response)
            count["warnings"] += bool(response.get("capture_warnings"))
            yield json_line(response)
        if not count["responses"]:
            raise nothing_read(reading, traces)  # raised before an earlier file is replaced

    replace_file(output, lines())
    for warning in reading.warnings:
        echo_err(f"Warning: {warning}.")
    failed = f", {count['errors']:,} of them failed" if count["errors"] else ""
    say(
        f"Wrote {counted(count['responses'], 'response')} with {counted(count['steps'], 'tool call')} to {output}, of "
        f"{counted(reading.number_of_traces, 'trace')}{failed}."
    )
    if count["warnings"]:
        say(f"{counted(count['warnings'], 'response has', 'responses have')} warnings (capture_warnings).")
    if dataset is not None:
        command = shlex.join(("score", str(dataset), str(output), "--answered-only", "-o", "runs/traced"))
        say(f"To score them: graphrag-eval-lc {command}")
