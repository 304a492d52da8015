"""The command ``compare``: runs beside each other, and whether a change helped."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_eval_lc.cli.options import EXIT_FINDINGS, FailUnder
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.registry.metrics import MAIN_METRIC

if TYPE_CHECKING:
    from graphrag_eval_lc.compare import RegressionGate, RunComparison


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
            "is a score): it says which questions flipped, and whether there is a regression. Without it: all that "
            f"both runs have, {MAIN_METRIC} as the main one.",
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
            help="Exit with 1 where a run is worse than RUN_A in the main metric: where its p-value is below 0.05 or, "
            "where too few templates differ for that (fewer than 6), where it is worse by more than --max-drop. Says "
            "what decided. Exit with 2 where a run lacks the metric.",
        ),
    ] = False,
    max_drop: Annotated[
        str | None,
        typer.Option(
            "--max-drop",
            help="How much worse a run may be under --fail-on-regression where no p-value can tell, 0 to 1: of a "
            "score between 0 and 1 points of its mean, of all else (scores from 1 to 5, tokens) a share of RUN_A's "
            "mean. 0.05 by default.",
            metavar="DROP",
        ),
    ] = None,
    fail_under: FailUnder = None,
    show: Annotated[int, typer.Option("--show", min=0, help="How many of the questions that flipped to show.")] = 10,
) -> None:
    """Compare runs, question by question, and tell whether a difference is more than chance.

    Questions are paired by their ids. For each metric: the means, the difference with its interval, a p-value,
    the effect size, wins, ties and losses. The scores of failed samples count as 0. Intervals and p-values take the
    questions of a template together. The main metric is judged by its own p-value, all others by p-values adjusted
    together by Holm's method; each interval is of its metric for itself. Needs the extra `graphrag-eval-lc[stats]`.

    For example:

    `graphrag-eval-lc compare runs/monday runs/tuesday --html comparison.html`

    `graphrag-eval-lc compare runs/main runs/branch --metric steps_score --fail-on-regression`
    """
    # Imported here so that --help does not wait for what only a comparison needs.
    from graphrag_eval_lc.cli.comparison_tables import print_comparison, tell_gates, tell_regression_gates
    from graphrag_eval_lc.compare import DEFAULT_MAX_DROP, allowed_drop, compare_runs, gate_requirements

    if len(runs) < 2:
        raise OptionError("there is only one run to compare", hint="Write: compare RUN_A RUN_B.")
    if max_drop is not None and not fail_on_regression:
        raise OptionError(
            "--max-drop says how much worse a run may be under --fail-on-regression, which is not given",
            hint="Add --fail-on-regression, or leave --max-drop out.",
        )
    allowed = DEFAULT_MAX_DROP if max_drop is None else allowed_drop(max_drop)
    requirements = gate_requirements(fail_under or ())
    for path in (csv, html):
        _check_target(path)
    comparison = compare_runs(*runs, metrics=metrics or None, labels=labels or None)
    print_comparison(comparison, show=show)
    for warning in comparison.warnings:
        typer.echo(f"Warning: {warning}", err=True)
    if csv is not None:
        typer.echo(f"Written to {comparison.to_csv(csv)}.")
    gates: list[RegressionGate] = []
    try:
        if fail_on_regression:
            gates = comparison.regression_gates(allowed)
    finally:
        # Also where nothing can be told of the main metric.
        if html is not None:
            _write_page(comparison, html, gates)
        failed = [
            tell_gates(path, requirements, run.letter) for path, run in zip(runs[1:], comparison.runs[1:], strict=True)
        ]
    failed.append(tell_regression_gates(gates))
    if any(failed):
        raise typer.Exit(EXIT_FINDINGS)


def _write_page(comparison: "RunComparison", path: Path, gates: Sequence["RegressionGate"]) -> None:
    from graphrag_eval_lc.report.comparison_page import write_comparison

    typer.echo(f"Written to {write_comparison(comparison, path, gates)}.")


def _check_target(path: Path | None) -> None:
    """Refuse a file that cannot be written, before there is anything to write."""
    if path is None:
        return
    if path.is_dir():
        raise OptionError("this is a folder, not a file", path=path, hint="Give the name of a file in it.")
    if not path.parent.is_dir():
        raise OptionError(f"there is no folder {path.parent}; make it first", path=path)
