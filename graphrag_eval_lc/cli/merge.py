"""The command ``merge``: parts of one run, such as its shards, put together to a run like any other."""

from pathlib import Path
from typing import Annotated

import typer

from graphrag_eval_lc.benchmark.option_fields import DISPLAY, FOLDER
from graphrag_eval_lc.cli.ci_options import JUnit, NoSummary, Summary, ci_files
from graphrag_eval_lc.cli.options import EXIT_FINDINGS, AsJson, FailOver, FailUnder, NoReport, Worst, say, tell
from graphrag_eval_lc.texts import counted


def merge(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="The folders of the parts, in any order; a merged run may be among them.", metavar="RUN_DIR"
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder of the merged run.", metavar="DIR", show_default=False)
    ],
    dataset: Annotated[
        Path | None, typer.Option("--dataset", help="The dataset, where run.json names no file of it.", metavar="FILE")
    ] = None,
    fail_under: FailUnder = None,
    fail_over: FailOver = None,
    label: Annotated[
        str | None,
        typer.Option("--label", help="A name for the run; by default that of the parts.", rich_help_panel=FOLDER),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an earlier run in the folder.", rich_help_panel=FOLDER)
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Merge parts of another agent, capture or other limits nevertheless; of two answers to one question "
            "keep the one that succeeded, or the first.",
            rich_help_panel=FOLDER,
        ),
    ] = False,
    open_files: Annotated[
        bool,
        typer.Option(
            "--open-files",
            help="Let the umask decide who may read the files that are made; otherwise they are for you alone.",
            rich_help_panel=FOLDER,
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only show what would be merged and what is missing.", rich_help_panel=DISPLAY),
    ] = False,
    no_report: NoReport = False,
    worst: Worst = 5,
    as_json: AsJson = False,
    summary: Summary = None,
    no_summary: NoSummary = False,
    junit: JUnit = None,
) -> None:
    """Put the parts of one run together: its shards, or runs of parts of its questions.

    Dataset, agent, capture, config, repeats and limits have to be the same. What is written is a run like any other:
    run goes on with it, and score, report and compare take it. The parts stay as they are. Results are taken over; what
    a killed part has not scored is scored now, unless models or functions of yours judge: then score does it. Exits
    with 1 where samples are missing, and says which.

    For example:

    `graphrag-eval-lc merge runs/night-*-of-16 -o runs/night`

    `graphrag-eval-lc merge runs/night-*-of-16 -o runs/night --dry-run`

    `graphrag-eval-lc merge runs/night-*-of-16 -o runs/night --fail-under steps_score=0.9 --junit night.xml`
    """
    # Imported here so that --help does not wait for what only a run needs.
    from graphrag_eval_lc.benchmark.merging.merge_runs import merge_runs, plan_merge
    from graphrag_eval_lc.benchmark.merging.missing import NOT_SCORED
    from graphrag_eval_lc.cli.json_printing import print_document
    from graphrag_eval_lc.cli.outcome import gates_of_a_run, show_run
    from graphrag_eval_lc.report.json_documents import run_document

    if dry_run:
        plan = plan_merge(runs, output_dir=output, dataset=dataset, force=force)
        answered = f"{plan.answered:,} of {counted(plan.samples, 'sample')} answered"
        say(f"{counted(plan.runs, 'run')} would be merged: {answered}.")
        if plan.errors:
            say(f"{plan.errors:,} of those failed.")
        for warning in plan.warnings:
            tell(f"Warning: {warning}")
        if plan.missing:
            tell(f"The run would not be complete: {plan.missing}.")
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
            print_document(run_document(run, []))
        for warning in run.warnings:
            tell(f"Warning: {warning}")
        tell(f"Merged into {output}, and not scored yet: {run.stopped['message']}.")
        raise typer.Exit(EXIT_FINDINGS)
    show_run(
        run,
        worst=worst,
        has_report=not no_report,
        as_json=as_json,
        files=ci_files(summary, junit, no_summary=no_summary),
        is_quiet=True,  # nobody has told its warnings yet
        is_scored_again=True,
    )
