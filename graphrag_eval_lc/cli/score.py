"""The command ``score``: recorded responses against a dataset, or a run's folder once more, without an agent."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from graphrag_eval_lc.cli.options import (
    Config,
    Evaluators,
    FailUnder,
    Href,
    Label,
    Matchers,
    Measures,
    NoCache,
    NoReport,
    Overwrite,
    Plugins,
    Tags,
    Worst,
    load_named_plugins,
    measure_names,
)
from graphrag_eval_lc.errors import OptionError


def score(
    dataset: Annotated[
        Path,
        typer.Argument(
            help="The reference dataset (YAML, JSON or JSON Lines); or the folder of a run, scored again in place.",
            metavar="DATASET|RUN_DIR",
        ),
    ],
    responses: Annotated[
        Path | None, typer.Argument(help="The responses (JSON Lines, JSON or YAML).", show_default=False)
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The folder to write to.", metavar="DIR")
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(
            "--dataset", help="With a run's folder: another dataset than the one in its run.json.", metavar="FILE"
        ),
    ] = None,
    config: Config = None,
    measures: Measures = None,
    evaluators: Evaluators = None,
    plugins: Plugins = None,
    matchers: Matchers = None,
    drop_missing: Annotated[
        bool,
        typer.Option(
            "--drop-missing",
            help="With a run's folder: score it although a plugin, a matcher or an evaluator that scored it is "
            "not given.",
        ),
    ] = False,
    label: Label = None,
    href: Href = None,
    tags: Tags = None,
    overwrite: Overwrite = False,
    max_cost: Annotated[
        float | None,
        typer.Option("--max-cost", min=0, help="USD that the judges may cost; the rest is scored without them."),
    ] = None,
    no_cache: NoCache = False,
    no_report: NoReport = False,
    fail_under: FailUnder = None,
    worst: Worst = 5,
) -> None:
    """Score recorded responses; no agent is asked.

    Writes run.json, responses.jsonl, results.jsonl, aggregates.yaml and report.html, and prints the scores by
    template. With the folder of a run its responses are scored again, such as after a reference was mended: results,
    aggregates, totals and the report are replaced, and run.json's config by the one that was used; all else stays.

    For example:

    `graphrag-eval-lc score qa.yaml responses.jsonl --output runs/monday`

    `graphrag-eval-lc score runs/monday -c config.yaml`

    `graphrag-eval-lc score runs/monday --measures P@5,nDCG@10`

    `graphrag-eval-lc score runs/monday --plugin my_package.metrics --plugin checks.py`

    `graphrag-eval-lc score runs/monday --matchers my_package.matchers --evaluator my_package.checks:answer_words`
    """
    # Imported here so that --help does not wait for what only a run needs.
    from graphrag_eval_lc.benchmark.score_responses import score_responses, score_run
    from graphrag_eval_lc.benchmark.scorers import load_matchers
    from graphrag_eval_lc.cli.outcome import measuring_config, required_means, show_run

    names = measure_names(measures)
    load_named_plugins(plugins)
    load_matchers(matchers or ())
    show = partial(
        show_run,
        worst=worst,
        measures=names or (),
        requirements=required_means(fail_under or (), config),
        has_report=not no_report,
        is_quiet=True,
        is_scored_again=True,
    )
    if responses is None:
        if output is not None or not dataset.is_dir():
            raise OptionError(
                "the responses are missing" if output is not None else f"{dataset} is no folder of a run",
                hint="Write: score DATASET RESPONSES --output DIR, or: score RUN_DIR.",
            )
        _refuse_given("with a run's folder, which keeps its own", label=label, href=href, tag=tags, overwrite=overwrite)
        again = score_run(
            dataset,
            dataset=reference,
            config=config,
            measures=names,
            max_cost=max_cost,
            evaluators=evaluators or (),
            judge_cache=not no_cache,
            drop_missing=drop_missing,
        )
        show(again)
        return
    if output is None:
        raise OptionError("there is no folder to write to", hint="Add --output DIR.")
    _refuse_given("with responses, whose dataset stands before them", dataset=reference)
    _refuse_given("with responses, which nothing has scored yet", drop_missing=drop_missing)
    scored = score_responses(
        dataset,
        responses,
        output_dir=output,
        config=measuring_config(config, names),
        label=label,
        href=href,
        tags=tags or (),
        overwrite=overwrite,
        max_cost=max_cost,
        evaluators=evaluators or (),
        judge_cache=not no_cache,
    )
    show(scored)


def _refuse_given(where: str, **options: object) -> None:
    given = ", ".join(f"--{name.replace('_', '-')}" for name, value in options.items() if value)
    if given:
        raise OptionError(f"{given} cannot be given {where}", hint="Leave it out.")
