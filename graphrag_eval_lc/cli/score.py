"""The command ``score``: recorded responses against a dataset, or a run's folder once more, without an agent."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from graphrag_eval_lc.benchmark.option_fields import MORE, cli_options
from graphrag_eval_lc.benchmark.score_options import ScoreOptions, ScoreRunOptions
from graphrag_eval_lc.cli.options import (
    AsJson,
    FailOver,
    FailUnder,
    JUnit,
    Measures,
    NoReport,
    Plugins,
    Summary,
    Worst,
    keywords,
    load_named_plugins,
    measure_names,
    option,
    option_name,
    with_fields_of,
)
from graphrag_eval_lc.cli.project import Config
from graphrag_eval_lc.cli.report import recovered
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.report.ci_files import CiFiles
from graphrag_eval_lc.run_folder import RESPONSES_FILE


@with_fields_of(ScoreOptions, ScoreRunOptions)
def score(
    dataset: Annotated[
        Path,
        typer.Argument(
            help="The reference dataset (YAML, JSON or JSON Lines); or the folder of a run, scored again in place.",
            metavar="DATASET|RUN_DIR",
        ),
    ],
    responses: Annotated[
        Path | None,
        typer.Argument(help="The responses (JSON Lines, JSON or YAML), or the folder of a run.", show_default=False),
    ] = None,
    output: Annotated[Path | None, option("--output -o", "The folder to write to.", "DIR")] = None,
    config: Config = None,
    fail_under: FailUnder = None,
    dry_run: Annotated[bool, option("--dry-run", "Only show what the judges would ask, with tokens and USD.")] = False,
    reference: Annotated[
        Path | None,
        option("--dataset", "With a run's folder: another dataset than the one in its run.json.", "FILE", MORE),
    ] = None,
    measures: Measures = None,
    plugins: Plugins = None,
    no_report: NoReport = False,
    fail_over: FailOver = None,
    worst: Worst = 5,
    as_json: AsJson = False,
    summary: Summary = None,
    junit: JUnit = None,
    **options: Any,
) -> None:
    """Score recorded responses without calling an agent.

    Writes run.json, responses.jsonl, results.jsonl, aggregates.yaml and report.html, and prints the scores by
    template. The folder of a run is scored again in place, for example after you fixed a reference: results,
    aggregates, totals, the report and the config in run.json are replaced. If you select only some questions, they
    cover only these until the folder is scored again.

    For example:

    `graphrag-eval-lc score qa.yaml responses.jsonl --output runs/monday`
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
    """Refuse what is not the folder of a run, to be scored in place."""
    if output is not None and dataset.is_dir():
        hint = "Leave --output out, or copy the folder and score the copy."
        raise OptionError("the folder of a run is scored in place", path=dataset, hint=hint)
    if output is not None or not dataset.is_dir():
        what = "the responses are missing" if output is not None else f"{dataset} is not the folder of a run"
        raise OptionError(what, hint="Write: score DATASET RESPONSES --output DIR, or: score RUN_DIR.")


def _refuse_others(where: str, options: Mapping[str, Any], model: type[ScoreOptions | ScoreRunOptions]) -> None:
    """Refuse the options that were given and are not those of a model."""
    others = {name: cli for each in (ScoreOptions, ScoreRunOptions) for name, (_, cli) in cli_options(each).items()}
    given = [name for name in others if options[name] and name not in model.model_fields]
    _refuse(sorted(option_name(name, others[name]) for name in given), where)


def _refuse(names: Sequence[str], where: str) -> None:
    if names:
        raise OptionError(f"{', '.join(names)} cannot be used {where}", hint="Leave it out.")
