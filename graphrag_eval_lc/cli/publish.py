"""The command ``publish``, which sends scores to the traces in another tool."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from graphrag_eval_lc.cli.dataset import showing_progress
from graphrag_eval_lc.cli.options import comma_separated, option, with_options
from graphrag_eval_lc.cli.printing import EXIT_FINDINGS, echo_err, output_console, say
from graphrag_eval_lc.console import data_text
from graphrag_eval_lc.integrations.publishing import TARGETS, publish_scores
from graphrag_eval_lc.integrations.scores import scored_run
from graphrag_eval_lc.texts import counted

_MOST_SHOWN = 20


@with_options()
def publish(
    run: Path,
    to: Annotated[str, option("--to", f"The tool: {', '.join(TARGETS)}.", "TOOL", show_default=False)],
    metrics: list[str] | None = None,
    project: str | None = None,
    endpoint: str | None = None,
    report_url: str | None = None,
    dry_run: bool = False,
    max_per_minute: float = 1200,
) -> None:
    """Send the scores of a run to the traces of its questions in another tool.

    Each score has the reason why it is not the best value as its comment, with secrets masked. Publishing again sends
    only what is new or changed, so after an interruption run the same command to resume. Keys are read from the
    environment, as the tool's own client does. Exits with 1 if some scores could not be placed, each with its reason.

    For example:

    `graphrag-eval-lc publish runs/main --to langfuse --metrics steps_score --dry-run`

    Options:
        run RUN_DIR: The folder of a run.
        --metrics NAMES: Publish these scores, with commas between them; may be repeated. Default: the main ones, such
            as steps_score and answer_f1.
        --project NAME: The tool's project, or MLflow's experiment. Default: that of the tool's environment.
        --endpoint URL: The tool's address. Default: that of the tool's environment.
        --report-url URL: Where readers find the run's report.html. Comments link to each question in it.
        --dry-run: Print what would be sent, and send nothing.
        --max-per-minute (min 1): Send at most this many requests in a minute.
    """
    names = None if metrics is None else comma_separated(metrics)
    options = {"metrics": names, "project": project, "endpoint": endpoint, "report_url": report_url}
    with showing_progress("Publishing") as show:
        published = publish_scores(
            run,
            to=to,  # type: ignore[arg-type]  # it is checked
            **options,  # type: ignore[arg-type]
            dry_run=dry_run,
            max_per_minute=max_per_minute,
            on_progress=show,
        )
    if dry_run:
        _show_scores(run, names, report_url)
    say(f"{published}.")
    for note in published.notes:
        echo_err(f"Note: {note}.")
    for each in published.unplaced[:_MOST_SHOWN]:
        say(f"Not placed: {each.key} ({', '.join(each.metrics)}): {each.reason}", keeps_lines=False)
    if len(published.unplaced) > _MOST_SHOWN:
        say(f"… and {counted(len(published.unplaced) - _MOST_SHOWN, 'more question')}.")
    if published.unplaced:
        raise typer.Exit(EXIT_FINDINGS)


def _show_scores(run: Path, metrics: list[str] | None, report_url: str | None) -> None:
    """Print the first scores as they would be sent."""
    table = Table("question", "score", "value", "comment")
    found = [(sample.key, score) for sample in scored_run(run, metrics, report_url).samples for score in sample.scores]
    for key, score in found[:_MOST_SHOWN]:
        table.add_row(data_text(key), data_text(score.metric), f"{score.value:.4g}", data_text(score.comment))
    output_console().print(table)
    if len(found) > _MOST_SHOWN:
        say(f"… and {counted(len(found) - _MOST_SHOWN, 'more score')}.")
