"""The command ``merge``: parts of one run, such as its shards, put together to a run like any other."""

from pathlib import Path
from typing import Annotated

import typer

from graphrag_eval_lc.benchmark.option_fields import FOLDER
from graphrag_eval_lc.cli.options import (
    AsJson,
    FailOver,
    FailUnder,
    JUnit,
    NoReport,
    Overwrite,
    Summary,
    Worst,
    option,
)
from graphrag_eval_lc.cli.printing import EXIT_FINDINGS, print_document, say, tell
from graphrag_eval_lc.report.ci_files import CiFiles
from graphrag_eval_lc.report.json_documents import run_document
from graphrag_eval_lc.texts import counted


def merge(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="The folders of the parts, in any order; a merged run may be among them.", metavar="RUN_DIR"
        ),
    ],
    output: Annotated[Path, option("--output -o", "The folder of the merged run.", "DIR", show_default=False)],
    dataset: Annotated[
        Path | None, option("--dataset", "The dataset, if run.json does not name its file.", "FILE")
    ] = None,
    fail_under: FailUnder = None,
    fail_over: FailOver = None,
    overwrite: Overwrite = False,
    dry_run: Annotated[bool, option("--dry-run", "Only show what would be merged and what is missing.")] = False,
    label: Annotated[
        str | None, option("--label", "A name for the run; by default that of the parts.", panel=FOLDER)
    ] = None,
    force: Annotated[
        bool,
        option(
            "--force",
            "Merge parts with another agent, capture or other limits anyway. If there are two answers to one "
            "question, keep the one that succeeded, or the first.",
            panel=FOLDER,
        ),
    ] = False,
    open_files: Annotated[
        bool,
        option("--open-files", "Let the umask decide who may read new files. Otherwise only you may.", panel=FOLDER),
    ] = False,
    no_report: NoReport = False,
    worst: Worst = 5,
    as_json: AsJson = False,
    summary: Summary = None,
    junit: JUnit = None,
) -> None:
    """Merge shards, or runs over different questions, into one run.

    Dataset, agent, capture, config, repeats and limits must be the same. The result is a run like any other: run
    resumes it, and score, report and compare accept it. The parts are not changed. Results are copied. Responses that
    a killed part has not scored are scored now, unless your models or functions judge: then use score. Exits with 1 if
    samples are missing, and lists them.

    For example:

    `graphrag-eval-lc merge runs/night-*-of-16 -o runs/night`
    """
    # Imported here so that --help does not wait for LangChain.
    from graphrag_eval_lc.benchmark.merging.merge_runs import NOT_SCORED, merge_runs, plan_merge
    from graphrag_eval_lc.cli.outcome import Shown, gates_of_a_run, show_run

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
    files = CiFiles.of(summary, junit)
    # Its warnings are not printed yet.
    show_run(run, Shown(worst, (), not no_report, as_json, files, is_quiet=True, is_scored_again=True))
