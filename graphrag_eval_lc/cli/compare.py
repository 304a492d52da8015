"""The command ``compare``: runs beside each other, and whether a change helped."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_eval_lc.benchmark.option_fields import COMMON, GATES, Common
from graphrag_eval_lc.cli.ci_options import NoSummary, Summary, ci_files
from graphrag_eval_lc.cli.completion import metric_names
from graphrag_eval_lc.cli.options import AsJson, FailUnder, say
from graphrag_eval_lc.errors import ConfigError, OptionError
from graphrag_eval_lc.registry.metrics import MAIN_METRIC
from graphrag_eval_lc.registry.plugins import broken_plugins_left_out
from graphrag_eval_lc.run_folder import RUN_FILE
from graphrag_eval_lc.texts import counted, listed

if TYPE_CHECKING:
    from graphrag_eval_lc.compare import RunComparison
    from graphrag_eval_lc.compare.gates import Gate
    from graphrag_eval_lc.compare.runs import RunSource
    from graphrag_eval_lc.config import EvaluationConfig
    from graphrag_eval_lc.run_store import Baseline


@broken_plugins_left_out()
def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="The folders of two or more runs; each is compared with the first one. With --baseline one is enough.",
            metavar="RUN_A RUN_B [RUN_C…]",
        ),
    ],
    baseline: Annotated[
        Path | None,
        typer.Option(
            "--baseline",
            help="The run that the others are compared with, in place of the first one: its folder, or a folder of "
            "runs, of which the last one that came to its end is taken.",
            metavar="DIR",
        ),
        Common("The run to compare with, or a folder of runs: its last one."),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            help="Choose the baseline from the folder of --baseline, or from the one that RUN is in: previous, first "
            "(the first run on the same dataset), best (the best run before RUN by the main metric; p-values are "
            "multiplied by the number of candidates), or a run by its label, folder name or path. Runs of one commit "
            "that are otherwise alike are pooled, except with previous.",
            metavar="RUN",
        ),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            help="Compare this metric; may be repeated. The first score is the main one (the first metric, where none "
            "is a score): it says which questions flipped, and whether there is a regression. Without it: all that "
            f"both runs have, {MAIN_METRIC} as the main one.",
            metavar="METRIC",
            autocompletion=metric_names,
        ),
        COMMON,
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option("--label", help="A name for a run, one for each in their order; else that in run.json."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write the comparison as a page.", metavar="FILE"), COMMON
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option("--csv", help="Write the metrics as comma-separated values.", metavar="FILE"),
    ] = None,
    fail_on_regression: Annotated[
        bool,
        typer.Option(
            "--fail-on-regression",
            help="Exit with 1 where a run is worse than RUN_A in the main metric: where its p-value is below 0.05, if "
            "the test would see a drop of 0.05 in at least 80 % of such comparisons; else where it is worse by more "
            "than --max-drop (0.05 by default). Says which decided, and why.",
            rich_help_panel=GATES,
        ),
        Common("Exit with 1 where a run is worse in the main metric."),
    ] = False,
    max_drop: Annotated[
        list[str] | None,
        typer.Option(
            "--max-drop",
            help="Exit with 1 where the mean of a metric is worse than that of RUN_A by more than this, 0 to 1: of a "
            "score between 0 and 1 points, of all else (scores from 1 to 5, tokens) a share of RUN_A's mean. A number "
            "alone is of the main metric; with --fail-on-regression it is the drop that this allows. "
            "TEMPLATE/METRIC=DROP is of one template. May be repeated.",
            metavar="[METRIC=]DROP",
            rich_help_panel=GATES,
        ),
        Common("Exit with 1 where a mean drops by more, such as 0.05."),
    ] = None,
    max_drop_per_template: Annotated[
        list[str] | None,
        typer.Option(
            "--max-drop-per-template",
            help="The same for the mean of each template; names those that dropped by more. May be repeated.",
            metavar="[METRIC=]DROP",
            rich_help_panel=GATES,
        ),
    ] = None,
    confident: Annotated[
        bool,
        typer.Option(
            "--confident",
            help="Let only sure drops fail: the lower end of a drop's 95 % interval counts in place of the drop (of a "
            "template: over its questions). With few questions nothing is sure; that is said.",
            rich_help_panel=GATES,
        ),
    ] = False,
    max_lost: Annotated[
        list[str] | None,
        typer.Option(
            "--max-lost",
            help="Exit with 1 where more questions were right in RUN_A and are wrong now, by the main metric: 2 in "
            "all, 2/template in each template, 1/notes in the template notes. May be repeated.",
            metavar="NUMBER[/TEMPLATE]",
            rich_help_panel=GATES,
        ),
        Common("Exit with 1 where more questions turned wrong."),
    ] = None,
    fail_under: FailUnder = None,
    fail_over: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-over",
            help="Exit with 1 where a metric of which less is better is above this number, such as elapsed_sec.p95=30, "
            "or above that of RUN_A by more than this increase, over the questions that both have, such as "
            "total_tokens=+10% or agent_cost=+0.05. METRIC.median, .p95, .min, .max and .sum are over samples; before "
            "a slash stands the template. May be repeated.",
            metavar="METRIC=NUMBER",
            rich_help_panel=GATES,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            help="A YAML or JSON file with the configuration, whose gates are checked; else those in each run's "
            "run.json.",
            metavar="FILE",
        ),
    ] = None,
    confirm_again: Annotated[int | None, typer.Option("--confirm", hidden=True)] = None,
    show: Annotated[int, typer.Option("--show", min=0, help="How many of the questions that flipped to show.")] = 10,
    as_json: Annotated[AsJson, COMMON] = False,
    summary: Summary = None,
    no_summary: NoSummary = False,
) -> None:
    """Compare runs, question by question, and tell whether a difference is more than chance.

    Questions are paired by their ids. For each metric: the means, the difference with its interval, a p-value,
    the effect size, wins, ties and losses. The scores of failed samples count as 0. Intervals and p-values take the
    questions of a template together. The main metric is judged by its own p-value, all others by p-values adjusted
    together by Holm's method, and the intervals go with them. Needs the extra `graphrag-eval-lc[stats]`.

    For example:

    `graphrag-eval-lc compare runs/monday runs/tuesday --html comparison.html`

    `graphrag-eval-lc compare runs/main runs/branch --fail-on-regression --max-drop-per-template 0.2 --max-lost 2`

    `graphrag-eval-lc compare --baseline runs/main runs/branch --max-drop 0.05`

    `graphrag-eval-lc compare runs/tuesday --against first --fail-on-regression`
    """
    # Imported here so that --help does not wait for what only a comparison needs.
    from graphrag_eval_lc.cli.comparison_tables import exit_code_of, print_comparison, tell_gates_beside
    from graphrag_eval_lc.cli.json_printing import print_document
    from graphrag_eval_lc.compare import DEFAULT_MAX_DROP, compare_runs
    from graphrag_eval_lc.compare.baseline_texts import gates_of_drops, gates_of_drops_per_template, gates_of_lost
    from graphrag_eval_lc.compare.gate_names import check_direction
    from graphrag_eval_lc.compare.gate_texts import gates_over, gates_under
    from graphrag_eval_lc.config import load_config
    from graphrag_eval_lc.report.json_documents import comparison_document

    if confirm_again is not None:
        hint = "Let run do it: run QA --agent SPEC --baseline RUN_A --fail-on-regression --confirm 1."
        raise OptionError("compare has no agent that it could ask again", key="--confirm", hint=hint)
    given_runs: list[RunSource] = [*runs]
    if against is not None:
        given_runs.insert(0, _chosen_baseline(against, baseline, runs, metrics or (), is_told=not as_json))
    elif baseline is not None:
        given_runs.insert(0, last_baseline(baseline, runs, is_told=not as_json))
    if len(given_runs) < 2:
        hint = "Write: compare RUN_A RUN_B. With --baseline RUN_A or --against first one is enough."
        raise OptionError("there is only one run to compare", hint=hint)
    drops = gates_of_drops(max_drop or (), is_confident=confident)
    per_template = gates_of_drops_per_template(max_drop_per_template or (), is_confident=confident)
    allowed = DEFAULT_MAX_DROP
    if fail_on_regression:
        # A number alone is the limit where the effect decides.
        allowed = next((gate.max_drop for gate in drops if gate.metric is None and gate.max_drop is not None), allowed)
        drops = [gate for gate in drops if gate.metric is not None]
    given = [
        *gates_under(fail_under or ()),
        *gates_over(fail_over or (), has_baseline=True),
        *drops,
        *per_template,
        *gates_of_lost(max_lost or ()),
    ]
    for gate in given:
        check_direction(gate, only_declared=True)
    for path in (csv, html):
        check_target(path)
    files = ci_files(summary, no_summary=no_summary)
    configured = None if config is None else load_config(config, has_llm=True, has_embeddings=True)
    comparison = compare_runs(*given_runs, metrics=metrics or None, labels=labels or None, config=configured)
    # Names are checked before anything is printed.
    gates: list[Gate] = [*comparison.gate_results(given), *_gates_of_config(comparison, config, configured)]
    if fail_on_regression:
        gates += comparison.comparable_regression_gates(allowed, confident=confident)
    if not as_json:
        print_comparison(comparison, show=show)
    for warning in comparison.warnings:
        say(f"Warning: {warning}", err=True)
    written = [] if csv is None else [comparison.to_csv(csv)]
    if html is not None:
        written.append(_page(comparison, html, gates))
    files.write_comparison(comparison, gates, most_questions=show)
    written += files.given
    if as_json:
        print_document(comparison_document(comparison, gates))
    else:
        for path in written:
            say(f"Written to {path}.")
        for line in _origins(comparison, config, configured):
            say(line)
        tell_gates_beside(gates)
    if code := exit_code_of(gates):
        raise typer.Exit(code)


def last_baseline(folder: Path, others: Sequence[Path], *, is_told: bool) -> Path:
    """Return the folder of the baseline: that one, or of a folder of runs the last one that is not compared with it."""
    from graphrag_eval_lc.run_folder import RESULTS_FILE
    from graphrag_eval_lc.run_store import latest_run

    if (folder / RUN_FILE).is_file() or (folder / RESULTS_FILE).is_file():
        return folder
    found: Path = latest_run(folder, but=others).path
    say(f"The baseline is {found}, the last run in {folder} that came to its end.", err=not is_told)
    return found


def _chosen_baseline(
    against: str, folder: Path | None, runs: Sequence[Path], metrics: Sequence[str], *, is_told: bool
) -> "Baseline":
    """Return the run of a folder, by default of that which the first run is in, that ``--against`` chooses."""
    from graphrag_eval_lc.registry import metric_spec
    from graphrag_eval_lc.run_store import baseline_in

    place = folder or runs[0].absolute().parent
    metric = next((metric for metric in metrics if not metric_spec(metric).is_spent), None)
    found: Baseline = baseline_in(place, runs[0], against, metric=metric, but=runs)
    paths = listed([str(run.path) for run in found.runs], 3)
    pooled = f" ({counted(len(found.runs), 'run')} of one commit, pooled)" if len(found.runs) > 1 else ""
    say(f"The baseline is {paths}{pooled}.", err=not is_told)
    return found


def _gates_of_config(comparison: "RunComparison", path: Path | None, config: "EvaluationConfig | None") -> "list[Gate]":
    """Return the gates of a configuration, else those in each run's record."""
    from graphrag_eval_lc.config import locate

    try:
        return comparison.gate_results(config)
    except ConfigError as problem:
        if path is not None:
            locate(problem, path)
        raise


def _origins(comparison: "RunComparison", path: Path | None, config: "EvaluationConfig | None") -> Iterator[str]:
    """Say which configurations have gates."""
    from graphrag_eval_lc.compare.gates import gates_in

    if config is not None:
        yield f"{_checked(len(config.gates), str(path))}, and none of run.json."
        return
    numbers = [len(gates_in(results)) for results in comparison.sources]
    for run, number in zip(comparison.runs[1:], numbers[1:], strict=True):
        if number:
            yield f"{_checked(number, f'the config in {run.path}/{RUN_FILE}')}; --config FILE replaces them."
        elif any(numbers):
            other = next(other for other, others in zip(comparison.runs, numbers, strict=True) if others)
            record = f"{run.path}/{RUN_FILE}"
            yield f"The config in {record} has no gates, unlike that of {other.path}; --config FILE gives some."


def _checked(number: int, source: str) -> str:
    return f"{counted(number, 'gate')} of {source} {'is' if number == 1 else 'are'} checked"


def _page(comparison: "RunComparison", path: Path, gates: "Sequence[Gate]") -> Path:
    from graphrag_eval_lc.report.comparison_page import write_comparison

    return write_comparison(comparison, path, gates)


def check_target(path: Path | None) -> None:
    """Refuse a file that cannot be written, before there is anything to write."""
    if path is None:
        return
    if path.is_dir():
        raise OptionError("this is a folder, not a file", path=path, hint="Give the name of a file in it.")
    if not path.parent.is_dir():
        raise OptionError(f"there is no folder {path.parent}; make it first", path=path)
