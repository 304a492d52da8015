"""What readers of a report noted: the places in the dataset, references that they accepted, and labels for judges."""

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from graphrag_eval_lc.dataset.loading import dataset_records
from graphrag_eval_lc.errors import DatasetError, OptionError, cannot_read
from graphrag_eval_lc.files.reading import TextFile
from graphrag_eval_lc.graph.dataset_text import Location, NewOutput, result_text, with_new_outputs
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.judges.answer_tables import ANSWER_COLUMNS
from graphrag_eval_lc.masking import MASK
from graphrag_eval_lc.matching.matchers import StepView, UnreadableOutput
from graphrag_eval_lc.matching.rows.row_steps import REQUIRED_COLUMNS, check_rows_step
from graphrag_eval_lc.registry.metrics import ANSWER_F1, ANSWER_THRESHOLD
from graphrag_eval_lc.texts import counted, one_line
from graphrag_eval_lc.view.samples import repeat_of

LABEL_COLUMNS: Final = (*ANSWER_COLUMNS, "Label", "Note")
_LONGEST: Final = 300


class _Model(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Accepted(_Model):
    """An output that a reader accepted as the reference: the places of both steps, from 0."""

    group: int
    step: int
    actual: int


class QuestionNote(_Model):
    """What a reader noted of a question."""

    key: str
    question_id: str
    reference: Literal["wrong"] | None = None
    judge: Literal["right", "wrong"] | None = None
    note: str = ""
    accepted: tuple[Accepted, ...] = ()

    @property
    def says(self) -> str:
        """What is wrong, and the reader's text."""
        marks = [
            f"the {name} is {mark}" for name, mark in (("reference", self.reference), ("judge", self.judge)) if mark
        ]
        return ": ".join(filter(None, (", ".join(marks), one_line(self.note, _LONGEST)))) or "outputs accepted"


class Notes(_Model):
    """The notes that a report exported, and the run that they are of."""

    kind: Literal["notes"]
    folder: str | None = None
    run_id: str | None = None
    notes: tuple[QuestionNote, ...]


def read_notes(path: str | PathLike[str]) -> Notes:
    """Return the notes in a file that a report exported.

    Raises:
        OptionError: The file cannot be read, or does not have the notes of a report.
    """
    try:
        return Notes.model_validate_json(Path(path).read_bytes())
    except OSError as problem:
        raise cannot_read(Path(path), problem) from problem
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(map(str, first["loc"]))
        hint = "Give the file that “Export notes” of a report saved."
        raise OptionError(
            f"these are not the notes of a report ({where}: {first['msg']})", path=path, hint=hint
        ) from None


@dataclass(frozen=True, slots=True)
class NotedPlace:
    """A place in the dataset that a note is about: its line, what was noted, and the output that replaces its own."""

    line: int | None
    text: str
    output: NewOutput | None = None


@dataclass(frozen=True, slots=True)
class NotedDataset:
    """A dataset's text, with the places that notes are about in the order of the dataset."""

    places: tuple[NotedPlace, ...]
    file: TextFile

    @property
    def outputs(self) -> list[NewOutput]:
        """The outputs that were accepted."""
        return [place.output for place in self.places if place.output is not None]

    def new_text(self) -> str:
        """Return the dataset with the accepted outputs; comments, order and anchors stay.

        Raises:
            DatasetError: An output cannot be replaced without changing something else.
        """
        return with_new_outputs(self.file, self.outputs)


def noted_dataset(notes: Notes, dataset: Path, results: Iterable[Mapping[str, Any]]) -> NotedDataset:
    """Return the places in a dataset that notes on the results of a run are about.

    An output is accepted only if the dataset has the reference that the reader saw.

    Raises:
        DatasetError: The dataset cannot be read, or is not a list of templates.
    """
    records = dataset_records(dataset)
    if records.file is None or not isinstance(records.values, list) or records.file.format not in ("yaml", "json"):
        raise DatasetError("this is not a list of templates", path=dataset, hint="Give a dataset in YAML or JSON.")
    by_question: dict[str, list[QuestionNote]] = {}
    for note in notes.notes:
        by_question.setdefault(note.question_id, []).append(note)
    seen = {each: result for each, result in _by_key(results) if each[0] in by_question}
    places: list[NotedPlace] = []
    new_outputs: dict[Location, str] = {}
    for location, question in _questions(records.values):
        for note in by_question.pop(str(question.get("id")), ()):
            places.append(NotedPlace(records.line_of(location), f"{note.question_id}: {note.says}"))
            for accepted in note.accepted:
                at = (*location, "reference_steps", accepted.group, accepted.step)
                result = seen.get((note.question_id, _repeat_in(note)))
                outcome = _replacement(notes, accepted, at, _step_at(question, accepted), result)
                if not isinstance(outcome, str) and at in new_outputs:
                    is_same = new_outputs[at] == outcome.output
                    outcome = (
                        f"{'accepted already' if is_same else 'not replaced'}: another repeat's output is accepted"
                    )
                if not isinstance(outcome, str):
                    new_outputs[at] = outcome.output
                text, output = (outcome, None) if isinstance(outcome, str) else ("", outcome)
                text = text or f"the output of {output.source['step'] if output else ''} is accepted"
                step = f"{note.question_id}, group {accepted.group + 1} step {accepted.step + 1}"
                places.append(NotedPlace(records.line_of((*at, "output")), f"{step}: {text}", output))
    places += [NotedPlace(None, f"{each}: the dataset has no such question") for each in by_question]
    return NotedDataset(tuple(places), records.file)


def _questions(templates: Iterable[Any]) -> Iterator[tuple[Location, Mapping[str, Any]]]:
    for at, template in enumerate(templates):
        questions = template.get("questions") if isinstance(template, Mapping) else None
        for place, question in enumerate(questions if isinstance(questions, list) else ()):
            if isinstance(question, Mapping):
                yield (at, "questions", place), question


def _by_key(results: Iterable[Mapping[str, Any]]) -> Iterator[tuple[tuple[str, int], Mapping[str, Any]]]:
    for result in results:
        yield (str(result["question_id"]), repeat_of(result)), result


def _repeat_in(note: QuestionNote) -> int:
    """Return the repeat that a note is of, as the report's keys have it: ``q #2``."""
    number = note.key.rpartition(" #")[2]
    return int(number) if note.key != note.question_id and number.isdecimal() else 1


def _step_at(holder: Mapping[str, Any] | None, accepted: Accepted) -> Mapping[str, Any] | None:
    try:
        step = ((holder or {}).get("reference_steps") or ())[accepted.group][accepted.step]
    except (IndexError, KeyError, TypeError):
        return None
    return step if isinstance(step, Mapping) else None


def _replacement(
    notes: Notes,
    accepted: Accepted,
    location: Location,
    reference: Mapping[str, Any] | None,
    result: Mapping[str, Any] | None,
) -> NewOutput | str:
    """Return the output that replaces a reference, or why none does."""
    seen, steps = _step_at(result, accepted), (result or {}).get("actual_steps") or ()
    if result is None or seen is None or not 0 <= accepted.actual < len(steps):
        return "not replaced: the run has no such step"
    if reference is None or reference.get("output") is None:
        return "not replaced: the dataset has no output here"
    if reference["output"] != seen.get("output"):
        return "not replaced: the reference changed since the run"
    step = steps[accepted.actual]
    if step.get("status") != "success" or step.get("output") is None or step.get("output_cut") is not None:
        return "not replaced: the call has no complete output"
    text = _output_text(step["output"])
    if MASK in text:
        return "not replaced: a part of the output is masked"
    with suppress(UnreadableOutput):  # such as a text, which has no columns
        for found in check_rows_step(StepView({**reference, "output": text})):
            if REQUIRED_COLUMNS in found.location:
                return f"not replaced: {found.what}, which {REQUIRED_COLUMNS} names ({found.hint.rstrip('.')})"
    source = {
        "run": notes.run_id or str(notes.folder or "unknown"),
        "step": str(step.get("id", accepted.actual)),
        "date": datetime.now(UTC).date().isoformat(),
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
    }
    return NewOutput(location, text, source)


def _output_text(output: Any) -> str:
    """Return an output as datasets have it: SPARQL JSON has a line for each row."""
    try:
        value = json.loads(output) if isinstance(output, str) else output
    except ValueError:
        return str(output)
    is_rows = isinstance(value, Mapping) and isinstance(value.get("head"), Mapping)
    is_rows = is_rows and isinstance(value.get("results"), Mapping)
    return result_text(value) if is_rows else output if isinstance(output, str) else json_text(value)


def labels_csv(notes: Notes, results: Iterable[Mapping[str, Any]]) -> tuple[str, int]:
    """Return the answers whose judge a reader marked right or wrong, as CSV for ``judge agreement``; and how many."""
    wanted = {(note.question_id, _repeat_in(note)): note for note in notes.notes if note.judge is not None}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(LABEL_COLUMNS)
    count = 0
    for key, result in _by_key(results):
        note, score = wanted.get(key), result.get(ANSWER_F1)
        if note is None or not isinstance(score, int | float):
            continue
        is_correct = (score >= ANSWER_THRESHOLD) == (note.judge == "right")
        answers = (result.get(name) or "" for name in ("question_text", "reference_answer", "actual_answer"))
        writer.writerow([*answers, int(is_correct), note.note])
        count += 1
    return text.getvalue(), count


def notes_summary(noted: NotedDataset, notes: Notes, *, is_written: bool) -> str:
    """Return one line on the notes."""
    parts = [
        (sum(note.reference == "wrong" for note in notes.notes), "reference is wrong", "references are wrong"),
        (sum(note.judge == "wrong" for note in notes.notes), "judge's verdict is wrong", "judge's verdicts are wrong"),
    ]
    found = ", ".join(counted(number, *words) for number, *words in parts if number)
    number = counted(len(noted.outputs), "output")
    done = f"; {number} {'replaced' if is_written else 'can be replaced with --write'}" if noted.outputs else ""
    return f"{counted(len(notes.notes), 'note')}: {found or 'no reference and no judge is wrong'}{done}."
