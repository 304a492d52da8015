"""The command ``dataset notes``: brings notes from a report into the dataset, and labels to the judge."""

from pathlib import Path
from typing import Annotated

import typer

from graphrag_eval_lc.cli.options import option
from graphrag_eval_lc.cli.printing import say
from graphrag_eval_lc.compare.runs import run_results
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.files.writing import replace_file
from graphrag_eval_lc.report.question_notes import labels_csv, noted_dataset, notes_summary, read_notes
from graphrag_eval_lc.texts import counted


def notes(
    notes: Annotated[Path, typer.Argument(help="The file that a report exported.", show_default=False)],
    dataset: Annotated[Path, typer.Argument(help="The dataset, in YAML or JSON.", show_default=False)],
    write: Annotated[
        bool, option("--write -w", "Replace the references whose actual output was accepted, in the dataset itself.")
    ] = False,
    labels: Annotated[
        Path | None,
        option(
            "--labels",
            "Write the answers for which readers judged the judge to this CSV file, for judge agreement.",
            "FILE",
        ),
    ] = None,
    run: Annotated[
        Path | None, option("--run", "The folder of the run. Default: the folder that the notes name.", "DIR")
    ] = None,
) -> None:
    """List the notes that readers made in a report, and accept outputs as references.

    In a report, mark a reference or a judge as wrong, write a note, or accept the output of a step as the reference;
    then export the notes. This command lists them with the lines of the dataset. With --write it replaces each
    accepted reference, with `output_source` (run, step, date, digest) next to it; comments, order and anchors of the
    file stay. A reference that changed since the run is not replaced.

    For example:

    `graphrag-eval-lc dataset notes notes.json qa.yaml --write`
    """
    noted = read_notes(notes)
    folder = run or (Path(noted.folder) if noted.folder else None)
    if folder is None:
        raise OptionError("the notes do not name the folder of their run", path=notes, hint="Add --run DIR.")
    results = run_results(folder)
    found = noted_dataset(noted, dataset, results)
    for place in found.places:
        say(f"{dataset}:{'' if place.line is None else f'{place.line}:'} {place.text}")
    if write and found.outputs:
        replace_file(dataset, [found.new_text().encode()])
    say(notes_summary(found, noted, is_written=write))
    if labels is not None:
        text, count = labels_csv(noted, results)
        replace_file(labels, [text.encode()])
        say(f"Wrote {counted(count, 'label')} to {labels}. Next: graphrag-eval-lc judge agreement {labels} -c CONFIG")
