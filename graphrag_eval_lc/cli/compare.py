"""The command ``compare``: runs beside each other, and whether a change helped."""

from pathlib import Path
from typing import Annotated

import typer

from graphrag_eval_lc.cli.options import FailUnder
from graphrag_eval_lc.errors import OptionError

EXIT_FINDINGS = 1


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="The folders of two or more runs; each is compared with the first one.", metavar="RUN_A RUN_B [RUN_C…]"
        ),
    ],
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            help="Compare this metric; may be repeated. The first score is the main one (the first metric, where none "
            "is a score): it says which questions turned, and whether there is a regression. Without it: all that "
            "both runs have, steps_score as the main one.",
            metavar="METRIC",
        ),
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option("--label", help="A name for a run, one for each in their order; else that in run.json."),
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write the comparison as a page.", metavar="FILE")] = None,
    csv: Annotated[
        Path | None,
        typer.Option("--csv", help="Write the metrics as comma-separated values.", metavar="FILE"),
    ] = None,
    fail_on_regression: Annotated[
        bool,
        typer.Option(
            "--fail-on-regression",
            help="Exit with 1 where a run is worse than RUN_A in the main metric (its p-value is below 0.05), with 2 "
            "where that cannot be told: a run lacks the metric, or fewer than 6 templates have it.",
        ),
    ] = False,
    fail_under: FailUnder = None,
    show: Annotated[int, typer.Option("--show", min=0, help="How many of the questions that turned to show.")] = 10,
) -> None:
    """Compare runs, question by question, and tell whether a difference is more than chance.

    Questions are paired by their ids. For each metric: the means, the difference with its 95 % interval, a p-value,
    the effect size, wins, ties and losses. The scores of failed samples count as 0. Intervals and p-values take the
    questions of a template together. The main metric is judged by its own p-value, all others by p-values adjusted
    together by Holm's method; each interval is of its metric for itself. Needs the extra `graphrag-eval-lc[stats]`.

    For example:

    `graphrag-eval-lc compare runs/monday runs/tuesday --html comparison.html`

    `graphrag-eval-lc compare runs/main runs/branch --metric steps_score --fail-on-regression`
    """
    # Imported here so that --help does not wait for what only a comparison needs.
    from graphrag_eval_lc.cli.comparison_tables import print_comparison
    from graphrag_eval_lc.cli.gates import tell_gates
    from graphrag_eval_lc.comparison import compare_runs, gate_requirements

    if len(runs) < 2:
        raise OptionError("there is only one run to compare", mend="Write: compare RUN_A RUN_B.")
    requirements = gate_requirements(fail_under or ())
    for path in (csv, html):
        _check_target(path)
    comparison = compare_runs(*runs, metrics=metrics or None, labels=labels or None)
    print_comparison(comparison, show=show)
    for warning in comparison.warnings:
        typer.echo(f"Warning: {warning}", err=True)
    if csv is not None:
        typer.echo(f"Written to {comparison.to_csv(csv)}.")
    if html is not None:
        from graphrag_eval_lc.report.comparison_page import write_comparison

        typer.echo(f"Written to {write_comparison(comparison, html)}.")
    failed = [
        tell_gates(path, requirements, run.letter) for path, run in zip(runs[1:], comparison.runs[1:], strict=True)
    ]
    regressions = comparison.regressions() if fail_on_regression else []
    for regression in regressions:
        typer.echo(f"Regression: {regression.sentence}", err=True)
    if regressions or any(failed):
        raise typer.Exit(EXIT_FINDINGS)


def _check_target(path: Path | None) -> None:
    """Refuse a file that cannot be written, before there is anything to write."""
    if path is None:
        return
    if path.is_dir():
        raise OptionError("this is a folder, not a file", path=path, mend="Give the name of a file in it.")
    if not path.parent.is_dir():
        raise OptionError(f"there is no folder {path.parent}; make it first", path=path)
