"""Judges the answers of a table concurrently; each answer is paid for only once, even if a session crashes."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import Protocol, Unpack

from graphrag_eval_lc.config import ConfigSource, load_config
from graphrag_eval_lc.errors import ConfigError, JudgeError, OptionError, ResponsesError, RunFolderError, cannot_write
from graphrag_eval_lc.evaluation.pipeline import Workers
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.files.writing import replace_file
from graphrag_eval_lc.judges.answer_correctness import AnswerCorrectness
from graphrag_eval_lc.judges.answer_tables import (
    ANSWER_COLUMNS,
    JUDGED_COLUMNS,
    AnswerTable,
    Cells,
    cells_of,
    is_judged,
    read_table,
    table_lines,
)
from graphrag_eval_lc.judges.cache import JudgeCache
from graphrag_eval_lc.judges.judging import answer_correctness_of
from graphrag_eval_lc.judges.model import AskingOptions
from graphrag_eval_lc.judges.model_interface import JudgeScore, NotAskedError, cost_of, metric_record, total_cost
from graphrag_eval_lc.judges.models import run_models
from graphrag_eval_lc.prices import Pricing
from graphrag_eval_lc.registry.metric_spec import error_key
from graphrag_eval_lc.registry.metrics import ANSWER_CORRECTNESS

Answer = tuple[str, str, str]
"""A question, its reference answer and the actual answer."""
MoreColumns = Mapping[str, Callable[[Cells], str]]
"""Additional columns of the output: for each name, the function that makes its cell from the judge's cells."""


@dataclass(frozen=True, slots=True)
class AnswerJudge:
    """A judge of answers; after use, ``pricing.unpriced`` has the models without a price."""

    correctness: AnswerCorrectness
    name: str
    max_concurrency: int
    pricing: Pricing


def answer_judge(config: ConfigSource, **options: Unpack[AskingOptions]) -> AnswerJudge:
    """Return the judge of a config; without a config, one with OpenAI's default model.

    Raises:
        ConfigError: The config cannot be read, has no ``llm`` section, or its prompt or model cannot be used.
        MissingExtraError: The package that the model needs is not installed.
    """
    settings = load_config({"llm": {}} if config is None else config)
    options["pricing"] = pricing = Pricing(settings.prices)
    models = run_models(settings, needs_embeddings=False, **options)
    if models.generation is None:
        raise ConfigError(
            "a model to judge with is missing",
            key="llm",
            hint="Add llm: {} for OpenAI's default model, or name yours in llm.generation.",
        )
    judge = answer_correctness_of(settings, models)
    return AnswerJudge(judge, models.generation.name, settings.judges.max_concurrency, pricing)


class Progress(Protocol):
    """Reports the progress of judging."""

    def started(self, total: int, done: int) -> None:
        """Report the number of different answers, and how many of them were judged earlier."""

    def judged(self, error: str) -> None:
        """Report one more judged answer; ``error`` says why it failed, or is empty."""


@dataclass(slots=True)
class JudgedTable:
    """A judged table.

    Attributes:
        cells: The judge's cells of each row, in the table's order; blank if the row was not judged.
        asked: How many different answers were judged in this session.
        outdated: How many answers of an earlier output are no longer in the table.
        costs: USD of each answer judged in this session; None if unknown.
        given_up: Why the model was no longer asked; None if all answers were judged.
    """

    cells: list[Cells] = field(default_factory=list)
    asked: int = 0
    outdated: int = 0
    costs: list[float | None] = field(default_factory=list)
    given_up: str | None = None

    @property
    def cost(self) -> float | None:
        """The sum of costs; None if one is unknown."""
        return total_cost(self.costs)


def judge_table(
    table: AnswerTable,
    judge: AnswerJudge,
    progress: Progress,
    *,
    chosen: Sequence[bool] | None = None,
    output: Path | None = None,
    overwrite: bool = False,
    more_columns: MoreColumns | None = None,
) -> JudgedTable:
    """Judge the answers of a table, and write them.

    Args:
        table: The table.
        judge: The judge.
        progress: Reports the progress.
        chosen: For each row, whether to judge it; other rows keep the cells of an earlier session. None: all rows.
        output: The file to write: the table's columns, then the judge's, which replace columns of the same names.
            Judged answers in an existing file are kept, except errors. None: nothing is written.
        overwrite: Whether earlier answers are removed first.
        more_columns: Additional columns of that file.

    Raises:
        ResponsesError: The table lacks a column.
        OptionError: The output is the table's own file.
        RunFolderError: The output exists and holds no judged answers, or cannot be written.
    """
    answers = answers_in(table)
    wanted = dict.fromkeys(answers if chosen is None else compress(answers, chosen))
    if output is not None:
        _prepare(output, table, overwrite=overwrite)
    found = JudgedTable()
    with nullcontext() if output is None else _EarlierCells(output) as earlier:
        known: dict[Answer, Cells] = {}
        if earlier is not None:
            known = {answer: cells for answer in answers if (cells := earlier.get(answer)) is not None}
            found.outdated = earlier.outdated(answers)
        missing = [answer for answer in wanted if answer not in known]
        found.asked = len(missing)
        progress.started(len(wanted), len(wanted) - len(missing))

        async def ascored(answer: Answer) -> JudgeScore:
            names = ("user_input", "reference", "response")
            try:
                score = await judge.correctness.ascore(**dict(zip(names, answer, strict=True)))
            except JudgeError as problem:
                found.costs.append(cost_of(problem))
                if isinstance(problem, NotAskedError):
                    found.given_up = str(problem)
                raise
            found.costs.append(score.cost)
            return score

        async def ajudge(answer: Answer) -> None:
            record = await metric_record(ANSWER_CORRECTNESS, ascored(answer))
            known[answer] = cells = cells_of(record or {error_key(ANSWER_CORRECTNESS): found.given_up})
            if earlier is not None and is_judged(cells):
                earlier.put(answer, cells)
            progress.judged(cells["Error"])

        run_sync(lambda: Workers(ajudge, max_concurrency=judge.max_concurrency).arun(missing))
        nothing = cells_of({})
        found.cells = [known.get(answer, nothing) for answer in answers]
        if output is not None:
            replace_file(output, table_lines(_output_rows(table, found.cells, more_columns or {}), output))
    return found


def answers_in(table: AnswerTable) -> list[Answer]:
    """Return the three texts of each row; raise a ResponsesError if a column is missing."""
    question, reference, actual = table.places(ANSWER_COLUMNS)
    return [(row[question], row[reference], row[actual]) for row in table.rows]


# --- what earlier sessions judged, and the output ---


class _EarlierCells:
    """Stores the cells of answers that were judged without an error, by answer.

    New cells are appended to ``<output>.partial`` at once, so that a crash loses nothing that was paid for. The output
    itself is only written as a whole.
    """

    def __init__(self, output: Path) -> None:
        self._output = output
        self._kept = _cells_in(output)
        self._journal = JudgeCache(_partial_of(output))

    def get(self, answer: Answer) -> Cells | None:
        """Return the cells of an answer; None if it still must be judged."""
        record = self._journal.get(_digest(answer))
        if record is not None and all(isinstance(record.get(column), str) for column in JUDGED_COLUMNS):
            return {column: record[column] for column in JUDGED_COLUMNS}
        return self._kept.get(answer)

    def put(self, answer: Answer, cells: Cells) -> None:
        """Store the cells of an answer."""
        self._journal.put(_digest(answer), cells)

    def outdated(self, answers: Iterable[Answer]) -> int:
        """Return how many judged answers in the output are not in ``answers`` and will be lost; raise if all are."""
        lost = len(self._kept.keys() - set(answers))
        if lost and lost == len(self._kept):
            raise RunFolderError(
                "the file exists and holds judged answers, none of which is in the input",
                path=self._output,
                hint="Give another file, or pass --overwrite.",
            )
        return lost

    def __enter__(self) -> "_EarlierCells":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the partial file, and remove it if the output was written."""
        self._journal.close()
        if kind is None:
            _remove(_partial_of(self._output))


def _partial_of(output: Path) -> Path:
    return output.with_name(f"{output.name}.partial")


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as problem:
        raise cannot_write(path, problem) from problem


def _cells_in(output: Path) -> dict[Answer, Cells]:
    if not output.exists() or (output.is_file() and not output.stat().st_size):
        return {}
    try:
        table = read_table(output)
        places, answers = table.places(JUDGED_COLUMNS), answers_in(table)
    except ResponsesError as problem:
        raise RunFolderError(
            f"the file exists and is not a table of judged answers ({problem.what})",
            path=output,
            hint="Give another file, or pass --overwrite.",
        ) from problem
    cells = [dict(zip(JUDGED_COLUMNS, (row[place] for place in places), strict=True)) for row in table.rows]
    return {answer: each for answer, each in zip(answers, cells, strict=True) if is_judged(each)}


def _digest(answer: Answer) -> str:
    return hashlib.sha256(json.dumps(answer).encode()).hexdigest()


def _prepare(output: Path, table: AnswerTable, *, overwrite: bool) -> None:
    if output.resolve() == Path(table.path).resolve():
        raise OptionError(f"{output} is the input itself", hint="Give another file for the output.")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise cannot_write(output.parent, problem) from problem
    for path in (output, _partial_of(output)) if overwrite else ():
        _remove(path)


def _output_rows(table: AnswerTable, cells: Sequence[Cells], more_columns: MoreColumns) -> Iterable[list[str]]:
    written = (*JUDGED_COLUMNS, *more_columns)
    kept = [place for place, column in enumerate(table.columns) if column not in written]
    yield [*(table.columns[place] for place in kept), *written]
    for row, judged in zip(table.rows, cells, strict=True):
        more = (cell_of(judged) for cell_of in more_columns.values())
        yield [*(row[place] for place in kept), *(judged[column] for column in JUDGED_COLUMNS), *more]
