"""The command ``score``: recorded responses against a dataset, or a run's folder once more, without an agent."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_eval_lc.benchmark.option_fields import COMMON, Common, cli_options
from graphrag_eval_lc.cli.ci_options import JUnit, NoSummary, Summary, ci_files
from graphrag_eval_lc.cli.model_options import keywords, option_name, with_fields_of
from graphrag_eval_lc.cli.options import (
    BRIEF_FAIL_UNDER,
    AsJson,
    FailOver,
    FailUnder,
    Matchers,
    Measures,
    NoReport,
    Plugins,
    Worst,
    load_named_plugins,
    measure_names,
)
from graphrag_eval_lc.cli.project import Config
from graphrag_eval_lc.cli.report import recovered
from graphrag_eval_lc.errors import OptionError

if TYPE_CHECKING:
    from graphrag_eval_lc.benchmark.score_options import ScoreOptions, ScoreRunOptions


def _models() -> "tuple[type[ScoreOptions], type[ScoreRunOptions]]":
    # Imported here so that --help does not wait for pydantic.
    from graphrag_eval_lc.benchmark.score_options import ScoreOptions, ScoreRunOptions

    return ScoreOptions, ScoreRunOptions


@with_fields_of(_models)
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
        typer.Argument(
            help="The responses (JSON Lines, JSON or YAML), or the folder of a run that has some.", show_default=False
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The folder to write to.", metavar="DIR"), COMMON
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(
            "--dataset", help="With a run's folder: another dataset than the one in its run.json.", metavar="FILE"
        ),
    ] = None,
    config: Annotated[Config, COMMON] = None,
    measures: Measures = None,
    *,
    plugins: Plugins = None,
    matchers: Matchers = None,
    no_report: NoReport = False,
    fail_under: Annotated[FailUnder, BRIEF_FAIL_UNDER] = None,
    fail_over: FailOver = None,
    worst: Worst = 5,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only show what the judges would ask, with tokens and USD; nothing is asked."),
        Common("Show what the judges would ask and cost; ask nothing."),
    ] = False,
    as_json: AsJson = False,
    summary: Summary = None,
    no_summary: NoSummary = False,
    junit: JUnit = None,
    **options: Any,
) -> None:
    """Score recorded responses; no agent is asked.

    Writes run.json, responses.jsonl, results.jsonl, aggregates.yaml and report.html, and prints the scores by
    template. With the folder of a run its responses are scored again, such as after a reference was mended: results,
    aggregates, totals and the report are replaced, and run.json's config by the one that was used; all else stays.
    Where only some of its questions are selected, they are of these alone until it is scored again.

    For example:

    `graphrag-eval-lc score qa.yaml responses.jsonl --output runs/monday`

    `graphrag-eval-lc score qa.yaml dev_responses.jsonl --answered-only --output runs/dev`

    `graphrag-eval-lc score runs/monday -c config.yaml`

    `graphrag-eval-lc score runs/monday --measures P@5,nDCG@10`

    `graphrag-eval-lc score runs/monday --plugin my_package.metrics --plugin checks.py`

    `graphrag-eval-lc score runs/monday --matchers my_package.matchers --evaluator my_package.checks:answer_words`
    """
    # Imported here so that --help does not wait for what only a run needs.
    from graphrag_eval_lc.benchmark.score_responses import plan_score_run, plan_scoring, score_responses, score_run
    from graphrag_eval_lc.benchmark.specs import load_matchers
    from graphrag_eval_lc.cli.outcome import gates_of_a_run, measuring_config, show_judging_plan, show_run
    from graphrag_eval_lc.run_folder import RESPONSES_FILE

    new, again = _models()
    names = measure_names(measures)
    load_named_plugins(plugins)
    load_matchers(matchers or ())
    gates = gates_of_a_run(fail_under, fail_over)
    show = partial(
        show_run,
        worst=worst,
        measures=names or (),
        has_report=not no_report,
        as_json=as_json,
        files=ci_files(summary, junit, no_summary=no_summary),
        is_quiet=options["progress"],
        is_scored_again=True,
    )
    if responses is None:
        if output is not None and dataset.is_dir():
            raise OptionError(
                "the folder of a run is scored in place",
                path=dataset,
                hint="Leave --output out, or copy the folder and score the copy.",
            )
        if output is not None or not dataset.is_dir():
            raise OptionError(
                "the responses are missing" if output is not None else f"{dataset} is no folder of a run",
                hint="Write: score DATASET RESPONSES --output DIR, or: score RUN_DIR.",
            )
        _refuse_others("with a run's folder, which keeps its own", options, again)
        recovered(dataset, is_quiet=as_json)
        given = {
            "dataset": reference,
            "config": config,
            "measures": names,
            "gates": gates,
            "report": False,  # which show_run writes
            **keywords(again, options),
        }
        if dry_run:
            show_judging_plan(plan_score_run(dataset, **given))
        else:
            show(score_run(dataset, **given))
        return
    if output is None:
        raise OptionError("there is no folder to write to", hint="Add --output DIR.")
    if responses.is_dir():  # those of a run
        responses = responses / RESPONSES_FILE
    if reference is not None:
        _refuse(["--dataset"], "with responses, whose dataset stands before them")
    _refuse_others("with responses, which nothing has scored yet", options, new)
    given = {
        "output_dir": output,
        "config": measuring_config(config, names),
        "gates": gates,
        "report": False,
        **keywords(new, options),
    }
    if dry_run:
        show_judging_plan(plan_scoring(dataset, responses, **given))
    else:
        show(score_responses(dataset, responses, **given))


def _refuse_others(where: str, options: Mapping[str, Any], model: "type[ScoreOptions | ScoreRunOptions]") -> None:
    """Refuse the options that were given and are not those of a model."""
    others = {name: cli for each in _models() for name, (_, cli) in cli_options(each).items()}
    _refuse(
        sorted(
            option_name(name, cli) for name, cli in others.items() if options[name] and name not in model.model_fields
        ),
        where,
    )


def _refuse(names: Sequence[str], where: str) -> None:
    if names:
        raise OptionError(f"{', '.join(names)} cannot be given {where}", hint="Leave it out.")
