"""The command ``migrate``: from graphrag-eval to this package."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_eval_lc.cli.options import EXIT_FINDINGS, say, tell
from graphrag_eval_lc.errors import GraphRAGEvalWarning
from graphrag_eval_lc.texts import counted, listed

if TYPE_CHECKING:
    from graphrag_eval_lc.migration import Migration, Trial


def migrate(
    dataset: Annotated[
        Path, typer.Option("--dataset", "-d", help="graphrag-eval's reference dataset.", metavar="FILE")
    ],
    responses: Annotated[Path, typer.Option("--responses", "-r", help="The responses that it scored.", metavar="FILE")],
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help="Its config, whose models and evaluations are moved.", metavar="OLD"),
    ] = None,
    published: Annotated[
        list[Path] | None,
        typer.Option(
            "--published",
            "-p",
            help="What it gave: its results, or its aggregates; may be repeated to give both.",
            metavar="FILE",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The folder that gets graphrag_eval.yaml.", metavar="DIR"),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")] = False,
    worst: Annotated[int, typer.Option("--worst", min=0, help="How many differences to show.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document with everything.")] = False,
) -> None:
    """Move from graphrag-eval: find the settings that give its figures, and write the config.

    Scores its old responses with each setting that is known to differ, compares question by question and by aggregate
    with what it published, and writes the settings that give all or most of it, with its models and custom
    evaluations. No agent and no model is asked.

    Exit code 0: everything published comes out; 1: differences remain; 3: what was published is of other questions.

    For example:

    `graphrag-eval-lc migrate --dataset qa.yaml --responses responses.jsonl --published results.yaml -o evaluation`

    `graphrag-eval-lc migrate -d qa.yaml -r responses.jsonl -c config.yaml -p results.yaml -p aggregates.yaml -o .`
    """
    # Imported here so that --help does not wait for what only scoring needs.
    from graphrag_eval_lc.cli.json_printing import print_json
    from graphrag_eval_lc.migration import migrate as find_settings

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", GraphRAGEvalWarning)
        found = find_settings(
            dataset,
            responses,
            config=config,
            published=tuple(published or ()),
            output_dir=output,
            overwrite=overwrite,
        )
    for warning in told:
        tell(f"Warning: {warning.message}")
    if as_json:
        print_json(found.document())
    else:
        for line in _lines(found, worst):
            say(line, keeps_lines=False)
    if found.differences:
        raise typer.Exit(EXIT_FINDINGS)


def _lines(found: "Migration", most: int) -> Iterator[str]:
    """Yield the table of settings, the verdict, what differs, and what was moved and written."""
    if found.is_compared:
        yield from _table(found)
        yield ""
    yield found.verdict
    for each in found.differences[:most]:
        place = f"{each.question_id}, {each.key}" if each.question_id is not None else each.key
        yield f"  {place}: published {_shown(each.published)}, here {_shown(each.here)}. {each.why}"
    if len(found.differences) > most:
        yield f"  … and {counted(len(found.differences) - most, 'more difference')}; --json has all."
    if found.notes:
        yield ""
    for note in found.notes:
        yield f"Note: {note}"
    if found.files:
        yield ""
    for path in found.files:
        yield f"Written: {path}"


def _table(found: "Migration") -> Iterator[str]:
    """Yield a line for each combination, for each single setting that changes its figures, and for what fits best."""
    chosen = found.chosen
    trials = {trial.settings: trial for trial in reversed(found.trials)}
    shown: dict[str, Trial] = {}
    same: dict[str, None] = {}
    for trial in found.trials:
        base = None if trial.beside is None else trials[trial.beside]
        if trial.is_chosen or base is None:
            shown.setdefault(trial.text, trial)
        elif base.beside is None and trial.is_as(base):
            same.setdefault(trial.added)
        elif base.beside is None:
            shown.setdefault(trial.text, trial)
    width = max(map(len, shown))
    heads = [name for name, number in (("scores", chosen.scores), ("aggregates", chosen.figures)) if number]
    yield "  ".join((f"{'equal with':{width}}", *(f"{head:>15}" for head in heads))).rstrip()
    for text, trial in shown.items():
        cells = (f"{cell:>15}" for cell in _cells(trial))
        yield "  ".join((f"{text:{width}}", *cells, "<- fits best" if trial.is_chosen else "")).rstrip()
    if same:
        yield f"As many with {listed(list(same), len(same))}."


def _cells(trial: "Trial") -> Iterator[str]:
    for equal, number in ((trial.equal_scores, trial.scores), (trial.equal_figures, trial.figures)):
        if number:
            yield f"{equal:,} of {number:,}"


def _shown(value: object) -> str:
    return "nothing" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
