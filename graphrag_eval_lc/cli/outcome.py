"""What ``run``, ``demo`` and ``score`` share: runs a benchmark with its progress, and prints results or the plan."""

import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import typer

from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.benchmark.merge_runs import MISSING
from graphrag_eval_lc.benchmark.run_benchmark import run_benchmark
from graphrag_eval_lc.cli.compare import exit_code_of, print_gates
from graphrag_eval_lc.cli.printing import (
    EXIT_ERROR,
    EXIT_FINDINGS,
    EXIT_INTERRUPTED,
    EXITS_BY_SIGNAL,
    command_line,
    echo_err,
    output_console,
    print_json,
    say,
)
from graphrag_eval_lc.compare import GateResult
from graphrag_eval_lc.compare.gates import gates_of_option
from graphrag_eval_lc.config import ConfigSource, GateConfig, load_config, with_measures
from graphrag_eval_lc.console import kept_output
from graphrag_eval_lc.errors import GraphRAGEvalError
from graphrag_eval_lc.evaluation.samples import RunPlan
from graphrag_eval_lc.files.opening import absolute_path
from graphrag_eval_lc.judges.request_plan import RequestPlan
from graphrag_eval_lc.metrics import parse_measure
from graphrag_eval_lc.prices import dollars
from graphrag_eval_lc.registry.exporters import written_report
from graphrag_eval_lc.registry.metrics import NUMBER_OF_ERROR_SAMPLES, NUMBER_OF_SUCCESS_SAMPLES
from graphrag_eval_lc.report.live_report import LiveReport
from graphrag_eval_lc.report.machine_files import CiFiles, run_document
from graphrag_eval_lc.report.summary import summary_tables
from graphrag_eval_lc.run_folder import AGGREGATES_FILE, RESPONSES_FILE, RESULTS_FILE, RUN_FILE, read_run
from graphrag_eval_lc.texts import counted, listed, visible

_MOST_NAMED = 20


def measuring_config(config: Path | None, measures: Sequence[str] | None) -> ConfigSource:
    """Return a command's config with the measures of ``--measures``; None keeps those of the config."""
    return config if measures is None else with_measures(load_config(config), measures)


def gates_of_a_run(fail_under: Sequence[str] | None, fail_over: Sequence[str] | None) -> list[GateConfig]:
    """Return the gates of ``--fail-under`` and ``--fail-over``; the run checks their names with those of the config."""
    return [*gates_of_option("fail-under", fail_under or ()), *gates_of_option("fail-over", fail_over or ())]


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown of a run."""

    worst: int  # how many of the worst questions
    measures: Sequence[str] = ()
    has_report: bool = True  # whether its report is written into its folder
    as_json: bool = False  # whether a JSON document is printed instead of the tables
    files: CiFiles = field(default_factory=CiFiles)  # the files for continuous integration
    is_quiet: bool = False  # whether the warnings of the run still have to be printed
    is_scored_again: bool = False  # whether this command only scored the run, so that it cannot resume it
    is_live: bool = False  # whether the report is shown during the run


def run_and_show(agent: Any, dataset: Path, shown: Shown, **options: Any) -> None:
    """Run a benchmark and print its results; if it was interrupted, also the command that resumes it."""
    try:
        # Agents may print anything, and may close or replace standard output and error.
        with (
            kept_output(),
            redirect_stdout(sys.stderr) if shown.as_json else nullcontext(),
            LiveReport(absolute_path(options["output_dir"])) if shown.is_live else nullcontext() as live,
        ):
            if live is not None:
                echo_err(f"The report during the run: {live.address}")
                options["on_event"] = live
            run = run_benchmark(agent, dataset, report=False, **options)  # it is written below
        show_run(run, replace(shown, is_quiet=options.get("progress") == "off"))
    except KeyboardInterrupt as signal:
        folder = options["output_dir"]
        echo_err(f"Stopped at once. Finished answers are in {folder}. To resume:\n  {_command(folder)}")
        raise typer.Exit(_exit_code_by(*signal.args)) from None


def show_run(run: BenchmarkRun, shown: Shown) -> None:
    """Print the tables of a run and the paths of its files."""
    gates = run.gate_results()
    if run.regression is not None:
        gates.append(run.regression)
    if shown.as_json:
        problem = written_report(run.output_dir)[1] if run.output_dir and shown.has_report else None
        print_json(run_document(run, gates))
        if problem is not None:
            echo_err(problem)
    else:
        _print_run(run, shown)
    for warning in run.warnings if shown.is_quiet else ():
        echo_err(f"Warning: {warning}")
    code = exit_code_of(gates)
    if not shown.as_json:
        print_gates(gates)
        if with_baseline := sum(gate.needs_baseline for gate in run.gates):
            need = counted(with_baseline, "gate of the config needs", "gates of the config need")
            say(f"{need} a baseline: compare RUN_A {run.output_dir or 'RUN_B'}")
    if not _has_written(run, gates, shown):
        code = EXIT_ERROR
    if run.stopped is not None:
        _report_stopped(run, shown.is_scored_again)
    micro = run.aggregates["micro"]
    is_empty = not micro[NUMBER_OF_SUCCESS_SAMPLES] and not micro[NUMBER_OF_ERROR_SAMPLES]
    is_shard = run.output_dir is not None and "shard" in (read_run(run.output_dir) or {})
    if is_empty and run.stopped is None and is_shard:
        say("No question belongs to this shard.", err=shown.as_json)
    elif not micro[NUMBER_OF_SUCCESS_SAMPLES]:
        why = "the table above shows the errors" if micro[NUMBER_OF_ERROR_SAMPLES] else "the dataset has none"
        echo_err(f"No question was answered; {why}.")
        code = EXIT_FINDINGS
    if code:
        raise typer.Exit(code)


def _print_run(run: BenchmarkRun, shown: Shown) -> None:
    console = output_console()
    measures = [parse_measure(name) for name in shown.measures]
    for note in run.notes:
        say(f"{note}.\n")
    view = run.view(most_failures=shown.worst)
    console.print(summary_tables(view, measures=measures))
    if not run.output_dir:
        return
    changes = view.headline.changes
    if changes and (changes.broken or changes.fixed) and changes.path is not None:
        before = Path(changes.path)
        with suppress(OSError, ValueError):  # the agent removed the current folder, or the run is elsewhere
            before = before.relative_to(Path.cwd())
        say(f"\nTo see what is broken and fixed: {command_line('compare', str(before), str(run.output_dir))}")
    path, problem = written_report(run.output_dir) if shown.has_report else (None, None)
    files = [RUN_FILE, RESPONSES_FILE, RESULTS_FILE, AGGREGATES_FILE, *([] if path is None else [path.name])]
    say(f"\nWritten to {run.output_dir}: {', '.join(files)}")
    if path is not None:
        say(f"Report: {path}\nTo open it: {command_line('report', str(run.output_dir), '--open')}")
    if problem is not None:
        echo_err(problem)


def _has_written(run: BenchmarkRun, gates: Sequence[GateResult], shown: Shown) -> bool:
    """Write the files for CI; return whether that worked. An error does not end the command: the run is paid for."""
    try:
        for warning in shown.files.write(run, gates, most_questions=shown.worst):
            echo_err(f"Warning: {warning}")
    except GraphRAGEvalError as problem:
        echo_err(f"Error: {problem}")
        return False
    for path in () if shown.as_json else shown.files.given:
        say(f"Written to {path}.")
    return True


def _report_stopped(run: BenchmarkRun, is_scored_again: bool) -> None:
    stopped: Any = run.stopped
    left_out = stopped["left_out"]
    asked = f"; {counted(left_out, 'was', 'were')} not asked" if left_out else ""
    is_judging = stopped["reason"] == "judges" or (is_scored_again and stopped["reason"] == "max_cost" and not left_out)
    what = "judging" if is_judging else "run"
    text = f"The {what} was stopped: {stopped['message']}{asked}."
    if stopped["reason"] == MISSING:
        text = (
            f"The run is not complete: {stopped['message']}. Merge again with --overwrite when nothing is missing, or "
            "ask the rest: the command of the parts, without --shard and with this --output."
        )
    if is_scored_again:
        echo_err(text)
        raise typer.Exit(EXIT_FINDINGS)
    is_budget = stopped["reason"] in ("max_tokens", "max_cost")
    budget = f", with a larger --{stopped['reason'].replace('_', '-')}" if is_budget else ""
    echo_err(f"{text} To resume{budget}:\n  {_command(run.output_dir)}")
    is_signal = stopped["reason"] == "interrupted"
    raise typer.Exit(_exit_code_by(stopped["message"]) if is_signal else EXIT_FINDINGS)


def _exit_code_by(name: str = "", *_: object) -> int:
    """Return the exit code of a run that a signal ended."""
    return EXITS_BY_SIGNAL.get(name, EXIT_INTERRUPTED)


def show_plan(plan: RunPlan) -> None:
    """Print what a run would ask."""
    by_template = Counter(str(sample.template["template_id"]) for sample in plan.to_ask)
    for note in plan.notes:
        say(f"{note}.")
    say(f"{len(plan.to_ask):,} of {plan.total:,} would be asked; {len(plan.done):,} are answered already.")
    if plan.errors:
        say(f"{plan.errors:,} of those failed; --retry-errors retries them.")
    for template_id, count in by_template.items():
        say(f"  {visible(template_id, keeps_lines=False)}: {count:,}")
    names = [
        visible(sample.key[0], keeps_lines=False) + (f" (repeat {sample.repeat})" if sample.repeat > 1 else "")
        for sample in plan.to_ask
    ]
    if names:
        say(f"First: {listed(names, _MOST_NAMED)}.")
    if plan.agent_cost is not None:
        answers = counted(len(plan.done), "existing answer")
        say(f"The agent would cost about {dollars(plan.agent_cost)}, estimated from {answers}.")
    if plan.judging is not None:
        show_judging_plan(plan.judging)
    for warning in plan.warnings:
        echo_err(f"Warning: {warning}")


def show_judging_plan(plan: RequestPlan | None) -> None:
    """Print what the judges would ask."""
    for sentence in ["No model judges, so judging costs nothing."] if plan is None else plan.sentences():
        say(sentence)


def _command(folder: Path | None) -> str:
    """Return the command that resumes this run: the same command, without ``--overwrite`` and with the run's folder."""
    given = [each for each in sys.argv[1:] if each != "--overwrite"]
    names_folder = any(each.startswith(("-o", "--output")) for each in given)
    output = [] if names_folder or folder is None else ["--output", str(folder)]
    return command_line(*given, *output)
