"""Judges the answers of a table, many at once; each is paid for once, also if a session crashes."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import Protocol, Unpack

from graphrag_eval_lc.config import ConfigSource, expanded, load_config
from graphrag_eval_lc.errors import ConfigError, JudgeError, OptionError, ResponsesError, RunFolderError, cannot_write
from graphrag_eval_lc.evaluation.workers import Workers
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
from graphrag_eval_lc.judges.model import AskingOptions
from graphrag_eval_lc.judges.model_interface import NotAskedError, cost_of, total_cost
from graphrag_eval_lc.judges.models import run_models
from graphrag_eval_lc.judges.scores import JudgeScore, correctness_record
from graphrag_eval_lc.prices import Pricing
from graphrag_eval_lc.registry.metric_spec import error_key
from graphrag_eval_lc.registry.metrics import ANSWER_CORRECTNESS


@dataclass(frozen=True, slots=True)
class AnswerJudge:
    """A judge of answers.

    Attributes:
        correctness: The metric.
        name: The name of its model.
        max_concurrency: How many answers may be judged at once.
        pricing: The prices; afterwards its ``unpriced`` names the models without one.
    """

    correctness: AnswerCorrectness
    name: str
    max_concurrency: int
    pricing: Pricing


def answer_judge(config: ConfigSource, **options: Unpack[AskingOptions]) -> AnswerJudge:
    """Return the judge of a config.

    Args:
        config: Its ``llm``, ``judges``, ``prices`` and ``answer_correctness.prompt`` are used; None is ``llm: {}``,
            OpenAI's default model.
        **options: How the model is asked; see ``run_models``. Its prices are those of the config.

    Raises:
        ConfigError: The config cannot be read, has no ``llm`` section, or its prompt or model cannot be used.
        MissingExtraError: The package that the model needs is not installed.
    """
    settings = load_config({"llm": {}} if config is None else config)
    pricing = Pricing(settings.prices)
    options["pricing"] = pricing
    models = run_models(settings, needs_embeddings=False, **options)
    model = models.generation
    if model is None:
        raise ConfigError(
            "a model to judge with is missing",
            key="llm",
            hint="Add llm: {} for OpenAI's default model, or name yours in llm.generation.",
        )
    section = settings.answer_correctness
    prompt = expanded(section.prompt, "answer_correctness.prompt") if section is not None else None
    judge = AnswerCorrectness(model, prompt, votes=settings.judges.votes, voters=models.voters)
    return AnswerJudge(judge, model.name, settings.judges.max_concurrency, pricing)


Answer = tuple[str, str, str]
"""A question, its reference answer and the actual answer."""


class EarlierCells:
    """The cells of answers that were judged without an error, by answer.

    New ones are added to ``<output>.partial`` as they come, so that a crash loses nothing that was paid for; the output
    itself is only written as a whole.

    Args:
        output: The file that is written in the end.

    Raises:
        RunFolderError: The output exists and holds no judged answers, or a file cannot be read.
    """

    def __init__(self, output: Path) -> None:
        self._partial = _partial_of(output)
        self._kept = _cells_in(output)
        self._journal = JudgeCache(self._partial)

    def get(self, answer: Answer) -> Cells | None:
        """Return the cells of an answer; None if it must be judged."""
        record = self._journal.get(_digest(answer))
        if record is not None and all(isinstance(record.get(column), str) for column in JUDGED_COLUMNS):
            return {column: record[column] for column in JUDGED_COLUMNS}
        return self._kept.get(answer)

    def put(self, answer: Answer, cells: Cells) -> None:
        """Keep the cells of an answer."""
        self._journal.put(_digest(answer), cells)

    def outdated(self, answers: Iterable[Answer]) -> int:
        """Return how many judged answers of the output are not in ``answers``, and will be lost.

        Raises:
            RunFolderError: All of them would be.
        """
        lost = len(self._kept.keys() - set(answers))
        if lost and lost == len(self._kept):
            raise RunFolderError(
                "the file exists and holds judged answers, none of which is in the input",
                path=self._partial.with_suffix(""),
                hint="Give another file, or pass --overwrite.",
            )
        return lost

    def __enter__(self) -> "EarlierCells":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the partial file; remove it if the output is written."""
        self._journal.close()
        if kind is None:
            _remove(self._partial)


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
        answer_places = table.places(ANSWER_COLUMNS)
        judged_places = table.places(JUDGED_COLUMNS)
    except ResponsesError as problem:
        raise RunFolderError(
            f"the file exists and is not a table of judged answers ({problem.what})",
            path=output,
            hint="Give another file, or pass --overwrite.",
        ) from problem
    known: dict[Answer, Cells] = {}
    for row in table.rows:
        cells = dict(zip(JUDGED_COLUMNS, (row[place] for place in judged_places), strict=True))
        if is_judged(cells):
            question, reference, actual = (row[place] for place in answer_places)
            known[question, reference, actual] = cells
    return known


def _digest(answer: Answer) -> str:
    return hashlib.sha256(json.dumps(answer).encode()).hexdigest()


_NOTHING = cells_of({})

MoreColumns = Mapping[str, Callable[[Cells], str]]
"""Further columns of the output: of each the function that makes its cell from the judge's cells."""


class Progress(Protocol):
    """What reports the progress."""

    def started(self, total: int, done: int) -> None:
        """Take the number of different answers, and of those that were judged earlier."""

    def judged(self, error: str) -> None:
        """Count one more judged answer; ``error`` says why it failed, or is empty."""


@dataclass(frozen=True, slots=True)
class JudgedTable:
    """A judged table.

    Attributes:
        cells: The judge's cells of each row, in the table's order; blank if it was not asked.
        asked: How many different answers were judged now.
        outdated: How many answers of an earlier output are no longer in the table.
        costs: USD of each answer judged now; None if it is not known.
        given_up: Why the model was asked nothing more; None if it was asked to the end.
    """

    cells: list[Cells]
    asked: int = 0
    outdated: int = 0
    costs: list[float | None] = field(default_factory=list)
    given_up: str | None = None

    @property
    def cost(self) -> float | None:
        """Their sum; None if one is not known."""
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
        progress: What reports the progress.
        chosen: Whether each row is judged; others have only the cells of an earlier session. None: all are.
        output: The file to write: the table's columns, then those of the judge, which replace columns of these names.
            Answers that it already holds are kept, except errors. None: nothing is written.
        overwrite: Whether earlier answers are removed first.
        more_columns: Further columns of that file.

    Raises:
        ResponsesError: The table lacks a column.
        OptionError: The output is the table's own file.
        RunFolderError: The output exists and holds no judged answers, or cannot be written.
    """
    answers = answers_in(table)
    wanted = dict.fromkeys(answers if chosen is None else compress(answers, chosen))
    if output is not None:
        _prepare(output, table, overwrite=overwrite)
    with nullcontext() if output is None else EarlierCells(output) as earlier:
        known, outdated = {}, 0
        if earlier is not None:
            known = {answer: found for answer in answers if (found := earlier.get(answer)) is not None}
            outdated = earlier.outdated(answers)
        missing = [answer for answer in wanted if answer not in known]
        progress.started(len(wanted), len(wanted) - len(missing))
        judging = _Judging(judge, progress, None if earlier is None else earlier.put)
        run_sync(lambda: judging.arun(missing))
        known.update(judging.cells)
        cells = [known.get(answer, _NOTHING) for answer in answers]
        if output is not None:
            replace_file(output, table_lines(_output_rows(table, cells, more_columns or {}), output))
    return JudgedTable(cells, len(missing), outdated, judging.costs, judging.given_up)


def answers_in(table: AnswerTable) -> list[Answer]:
    """Return the three texts of each row.

    Raises:
        ResponsesError: The table lacks one of their columns.
    """
    question, reference, actual = table.places(ANSWER_COLUMNS)
    return [(row[question], row[reference], row[actual]) for row in table.rows]


class _Judging:
    """The judging of different answers, many at once."""

    def __init__(self, judge: AnswerJudge, progress: Progress, keep: Callable[[Answer, Cells], None] | None) -> None:
        self.cells: dict[Answer, Cells] = {}
        self.costs: list[float | None] = []
        self.given_up: str | None = None
        self._judge = judge
        self._progress = progress
        self._keep = keep

    async def arun(self, answers: Iterable[Answer]) -> None:
        await Workers(self._judge_answer, places=self._judge.max_concurrency).arun(answers)

    async def _judge_answer(self, answer: Answer) -> None:
        record = await correctness_record(self._score(answer))
        cells = cells_of(record or {error_key(ANSWER_CORRECTNESS): self.given_up})
        self.cells[answer] = cells
        if self._keep is not None and is_judged(cells):
            self._keep(answer, cells)
        self._progress.judged(cells["Error"])

    async def _score(self, answer: Answer) -> JudgeScore:
        question, reference, actual = answer
        try:
            score = await self._judge.correctness.ascore(user_input=question, reference=reference, response=actual)
        except JudgeError as problem:
            self.costs.append(cost_of(problem))
            if isinstance(problem, NotAskedError):
                self.given_up = str(problem)
            raise
        self.costs.append(score.cost)
        return score


def _prepare(output: Path, table: AnswerTable, *, overwrite: bool) -> None:
    if output.resolve() == Path(table.path).resolve():
        raise OptionError(f"{output} is the input itself", hint="Give another file for the output.")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise cannot_write(output.parent, problem) from problem
    if overwrite:
        _remove(output)
        _remove(_partial_of(output))


def _output_rows(table: AnswerTable, cells: Sequence[Cells], more_columns: MoreColumns) -> Iterable[list[str]]:
    written = (*JUDGED_COLUMNS, *more_columns)
    kept = [place for place, column in enumerate(table.columns) if column not in written]
    yield [*(table.columns[place] for place in kept), *written]
    for row, judged in zip(table.rows, cells, strict=True):
        more = (cell_of(judged) for cell_of in more_columns.values())
        yield [*(row[place] for place in kept), *(judged[column] for column in JUDGED_COLUMNS), *more]
