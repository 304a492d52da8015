"""The numbers of the results taken up so far: a row for each result, and by metric the rows with their values."""

from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from statistics import fmean

from graphrag_eval_lc.aggregation.measurements import Metrics
from graphrag_eval_lc.aggregation.numbers import Numbers
from graphrag_eval_lc.aggregation.sample_values import Sample, is_error
from graphrag_eval_lc.registry.metrics import metric_spec

Question = tuple[str, Hashable]


class Column:
    """The measured values of one metric, each with the row of its result; a step metric may have several a row."""

    __slots__ = ("numbers", "rows")

    def __init__(self) -> None:
        self.rows = array("I")
        self.numbers = Numbers()

    def append(self, row: int, value: float) -> None:
        """Add a value."""
        self.rows.append(row)
        self.numbers.append(value)

    def items(self) -> Iterable[tuple[int, float]]:
        """Give the values with their rows."""
        return zip(self.rows, self.numbers.values(), strict=True)


class Samples:
    """The results of a run as far as statistics need them.

    Args:
        metrics: The figures that are taken up.

    Attributes:
        repeats: The highest ``repeat`` that a result carries; 1 where none does.
    """

    def __init__(self, metrics: Metrics) -> None:
        self.repeats = 1
        self._metrics = metrics
        self._template_ids: list[str] = []
        self._question_ids: list[Hashable] = []
        self._failures = bytearray()
        self._columns: dict[str, Column] = {}
        self._known_ids: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._template_ids)

    def add(self, sample: Sample, *, is_counted: bool) -> None:
        """Take up a result; the values of one that is not counted are left out."""
        row = len(self)
        template_id = str(sample["template_id"])
        self._template_ids.append(self._known_ids.setdefault(template_id, template_id))
        question_id = sample.get("question_id")
        self._question_ids.append(row if question_id is None else str(question_id))
        self._failures.append(is_error(sample))
        repeat = sample.get("repeat")
        if isinstance(repeat, int) and repeat > self.repeats:
            self.repeats = repeat
        if is_counted:
            for numbers in (self._metrics.sample_numbers(sample), self._metrics.step_numbers(sample)):
                for metric, value in numbers:
                    column = self._columns.get(metric)
                    if column is None:
                        column = self._columns[metric] = Column()
                    column.append(row, value)

    def template_ids(self) -> Iterable[str]:
        """Give the templates of which there are results, the first seen first."""
        return self._known_ids

    def metrics(self) -> Set[str]:
        """Give the metrics that were measured."""
        return self._columns.keys()

    def sample_counts(self) -> Counter[tuple[str, bool]]:
        """Give the number of results by template and whether they failed."""
        return Counter(zip(self._template_ids, map(bool, self._failures), strict=True))

    def question_counts(self) -> Counter[str]:
        """Give the number of questions by template."""
        return Counter(template_id for template_id, _ in set(self._questions()))

    def running_mean(self, metric: str) -> float | None:
        """Give the mean of a metric's values so far, at once; None where there is none."""
        column = self._columns.get(metric)
        return column.numbers.mean() if column else None

    def values_by_template(self, metric: str) -> dict[str, list[float]]:
        """Give what statistics are taken over: a metric's values, or with repeats its mean for each question."""
        values: dict[str, list[float]] = {}
        if self.repeats == 1:
            for row, value in self._items(metric):
                values.setdefault(self._template_ids[row], []).append(value)
            return values
        for (template_id, _), repeated in self._values_by_question(metric).items():
            values.setdefault(template_id, []).append(fmean(repeated))
        return values

    def sums_by_template(self, metric: str) -> dict[str, float]:
        """Give the sum of a metric's values, each repeat of its own, for the templates that have any."""
        sums: dict[str, float] = {}
        for row, value in self._items(metric):
            sums[self._template_ids[row]] = sums.get(self._template_ids[row], 0) + value
        return sums

    def outcomes(self, metric: str, threshold: float) -> Mapping[Question, Sequence[bool | None]]:
        """Tell for each question which of its samples passed; None for one that succeeded unmeasured.

        A sample passes where it did not fail and the metric, of steps its mean over them, is at least the threshold;
        at most where less is better.
        """
        values: dict[int, list[float]] = {}
        for row, value in self._items(metric):
            values.setdefault(row, []).append(value)
        is_lower_better = metric_spec(metric).lower_is_better
        passed = {row: _passes(fmean(each), threshold, is_lower_better) for row, each in values.items()}
        outcomes: dict[Question, list[bool | None]] = {}
        for row, question in enumerate(self._questions()):
            outcomes.setdefault(question, []).append(False if self._failures[row] else passed.get(row))
        return outcomes

    def _questions(self) -> Iterable[Question]:
        return zip(self._template_ids, self._question_ids, strict=True)

    def _items(self, metric: str) -> Iterable[tuple[int, float]]:
        """Give the values of a metric with their rows, and a zero for each that is missing and counts so."""
        zeros = self._columns.get(self._metrics.retrieval.zeros_key(metric) or "")
        for row, value in self._columns[metric].items() if metric in self._columns else ():
            yield row, value
        for row, number_of_zeros in zeros.items() if zeros else ():
            yield from ((row, 0.0) for _ in range(int(number_of_zeros)))

    def _values_by_question(self, metric: str) -> dict[Question, list[float]]:
        values: dict[Question, list[float]] = {}
        for row, value in self._items(metric):
            values.setdefault((self._template_ids[row], self._question_ids[row]), []).append(value)
        return values


def _passes(value: float, threshold: float, is_lower_better: bool) -> bool:
    return value <= threshold if is_lower_better else value >= threshold
