"""``MetricSpec``, the declaration of a metric, which validation, aggregates, comparison, gates and reports use."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["score", "spent", "count"]
Over = Literal["questions", "steps"]
Unit = str
Need = Literal["reference_steps", "reference_answer", "retrieval_steps", "relevant_ids", "relevant_texts"]

# Numbers above this do not count as values, so that sums and squares never exceed the largest float.
LARGEST: Final = 1e100

# The suffixes of the further keys of a metric, an evaluation or a function.
COST_ENDING: Final = "_cost"
REASON_ENDING: Final = "_reason"
ERROR_ENDING: Final = "_error"

# The units of undeclared metrics, by the suffix of their names.
_UNITS_BY_ENDING = {"_tokens": "tokens", "_sec": "seconds"}


def cost_key(name: str) -> str:
    """Return the key of the cost in USD of the evaluation with a name."""
    return f"{name}{COST_ENDING}"


def reason_key(name: str) -> str:
    """Return the key of the reason for a value."""
    return f"{name}{REASON_ENDING}"


def error_key(name: str) -> str:
    """Return the key that says why a value is missing."""
    return f"{name}{ERROR_ENDING}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSpec:
    """The declaration of a metric.

    Attributes:
        key: Its name in results, aggregates, gates and tables; for a family, the prefix of the names.
        title: A few words on what it measures, for people; empty: its key.
        heading: Its heading in tables of tokens, times and costs; empty: they leave it out.
        kind: ``score`` for how good an answer is, ``spent`` for what it cost, ``count`` for how often something
            happened.
        unit: ``score``, ``tokens``, ``seconds``, ``usd`` or ``count``; any other text is written after the values.
        lower_is_better: Whether lower values are better; always true for ``spent``.
        range: The least and the greatest value, None if unbounded.
        usual_range: The range of axes, as long as all values are in it; None: ``range``.
        over: The items of its mean: ``questions``, or ``steps`` for a metric of single steps.
        needs: What a question must have to be measured; None: nothing.
        requires: All that it needs, in words for people.
        missing_key: The key of results that counts the reference steps that it lacks, as nothing fulfilled them.
        counted_in: The key of the mapping in results that holds this count, which aggregates have if it is above 0;
            None: the result itself has it.
        upper_of: The metric of which it is the upper bound. A result without it counts with that metric's value, and
            aggregates have it only if some result has it.
        is_family: Whether it declares all metrics whose names begin with its key.
        members: The suffixes of its members' names, for a family whose members are always the same.
        family: The key of the family that it belongs to.
        part_of: The metric that it is a part of; if there is room for only one, that metric is shown.
        is_summed_up: Whether aggregates have its statistics; otherwise only the totals have it.
        spent_by: Who spent it, ``agent`` or ``judges``; None for other kinds.
        judge: The judge that computes it, if any.
        settings: The sections of the config that change its values, next to those of its judge.
        cost_key: The key of its cost in USD; None if it costs nothing.
        reason_key: The key of its reason.
        error_key: The key that says why it has no value.
        source: Whose definition it follows.

    Example:
        >>> spec = MetricSpec(key="saved_sec", unit="seconds", lower_is_better=True, range=(0.0, None))
        >>> spec.title, spec.value_of_failure
        ('saved_sec', None)
    """

    key: str
    title: str = ""
    heading: str = ""
    kind: Kind = "score"
    unit: Unit = "score"
    lower_is_better: bool = False
    range: tuple[float | None, float | None] = (0.0, 1.0)
    usual_range: tuple[float, float] | None = None
    over: Over = "questions"
    needs: Need | None = None
    requires: str = ""
    missing_key: str | None = None
    counted_in: str | None = None
    upper_of: str | None = None
    is_family: bool = False
    members: tuple[str, ...] = ()
    family: str | None = None
    part_of: str | None = None
    is_summed_up: bool = True
    spent_by: Literal["agent", "judges"] | None = None
    judge: str | None = None
    settings: tuple[str, ...] = ()
    cost_key: str | None = None
    reason_key: str | None = None
    error_key: str | None = None
    source: str = ""

    def __post_init__(self) -> None:
        if not self.title:
            object.__setattr__(self, "title", self.key)
        if self.is_spent:
            object.__setattr__(self, "lower_is_better", True)

    @property
    def keys(self) -> tuple[str, ...]:
        """Its own key, and its further keys in results: cost, reason, error."""
        keys = (self.key, self.reason_key, self.cost_key, self.error_key, self.missing_key)
        return tuple(key for key in keys if key is not None)

    @property
    def is_spent(self) -> bool:
        """Whether its kind is ``spent``, which is measured for failed questions too."""
        return self.kind == "spent"

    @property
    def is_part(self) -> bool:
        """Whether it is left out if there is no room for all metrics.

        This holds for a part or the upper bound of another metric, and for a member of a family.
        """
        return any(each is not None for each in (self.part_of, self.upper_of, self.family))

    @property
    def depends_on(self) -> tuple[str, ...]:
        """The sections of the config that change its values, including those of its judge.

        Example:
            >>> MetricSpec(key="answer_f1", judge="answer_correctness").depends_on
            ('llm', 'judges', 'answer_correctness')
        """
        return self.settings if self.judge is None else (*self.settings, "llm", "judges", self.judge)

    def shown_range(self, values: Collection[float]) -> tuple[float, float]:
        """Return the range of an axis for some values: the usual or the whole range if it holds all, or their own.

        Example:
            >>> metric, stars = MetricSpec(key="f1"), MetricSpec(key="stars", range=(0, None))
            >>> metric.shown_range([0.2, 0.4]), metric.shown_range([1, 5]), stars.shown_range([2, 5])
            ((0.0, 1.0), (1, 5), (0, 5))
        """
        least, greatest = min(values, default=0.0), max(values, default=1.0)
        for low, high in filter(None, (self.usual_range, self.range)):
            shown = (least if low is None else low, greatest if high is None else high)
            if shown[0] <= least and greatest <= shown[1]:
                return shown
        return least, greatest

    def bounds_of(self, values: Collection[float]) -> tuple[float | None, float | None] | None:
        """Return the least and the greatest possible value; None if the declaration has no range.

        A bound that some value crosses is replaced by None.

        Example:
            >>> MetricSpec(key="f1").bounds_of([0.2, 0.4]), MetricSpec(key="stars", range=(1, 5)).bounds_of([2, 6])
            ((0.0, 1.0), (1, None))
        """
        low, high = self.range
        if low is None and high is None:
            return None
        is_crossed = (low is not None and min(values) < low, high is not None and max(values) > high)
        return (None if is_crossed[0] else low, None if is_crossed[1] else high)

    @property
    def value_of_failure(self) -> float | None:
        """The score of a failed question: the worst value. None if there is none, or if the metric is not a score.

        If higher is better, that is 0, as in graphrag-eval, or the least usual value if that is below 0. If lower is
        better, it is the greatest value.

        Example:
            >>> MetricSpec(key="gain", range=(-5.0, 5.0)).value_of_failure
            -5.0
        """
        if self.kind != "score":
            return None
        if self.lower_is_better:
            return self.range[1]
        return min(0.0, (self.usual_range or self.range)[0] or 0.0)


def undeclared_spec(key: str) -> MetricSpec:
    """Return a declaration for an undeclared metric: a cost if its name ends in ``_cost``, otherwise a score.

    The suffix of the name only determines the unit, not the direction: for ``saved_sec``, higher may be better.

    Example:
        >>> undeclared_spec("tone_cost").is_spent, undeclared_spec("saved_sec").unit
        (True, 'seconds')
    """
    if key.endswith(COST_ENDING):
        return cost_spec(key)
    unit = next((unit for ending, unit in _UNITS_BY_ENDING.items() if key.endswith(ending)), "score")
    return MetricSpec(key=key, unit=unit, range=(None, None), usual_range=(0.0, 1.0))


def cost_spec(key: str) -> MetricSpec:
    """Return the declaration of a judge's cost."""
    return MetricSpec(
        key=key,
        kind="spent",
        unit="usd",
        range=(0.0, None),
        spent_by="judges",
        requires="models with a known price",
        source="genai-prices, or `prices` in the config",
    )
