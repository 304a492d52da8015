"""What is declared of a metric: from this validation, aggregates, comparison, gates, frames and reports derive."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

Kind = Literal["score", "spent", "count"]
Over = Literal["questions", "steps"]
Unit = str
Need = Literal["reference_steps", "reference_answer", "retrieval_steps", "relevant_ids", "relevant_texts"]

# Beyond it a number measures nothing: sums and squares of numbers up to here are floats too, however many there are.
LARGEST: Final = 1e100

# How a number without a declaration is written, by the end of its name.
_UNITS_BY_ENDING = {"_tokens": "tokens", "_sec": "seconds", "_cost": "usd"}
_COST = "_cost"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSpec:
    """The declaration of a metric.

    Attributes:
        key: Its name in results, aggregates, gates and tables; of a family what the names begin with.
        title: A few words on what it says, for people; empty: its key.
        heading: What tables of what was spent call it; empty: they leave it out.
        kind: ``score`` says how good an answer is; ``spent`` what it took; ``count`` how often something happened.
        unit: ``score``, ``tokens``, ``seconds``, ``usd`` or ``count``; any other text is written behind the numbers.
        lower_is_better: Whether less of it is better; always so of what is spent.
        range: The least and the greatest value, None where there is no bound.
        usual_range: Over what its values are shown as long as all are in it; None: its range.
        over: What its mean is over: ``questions``, or ``steps`` where it stands on the steps of an answer.
        needs: What a question must have so that it is measured; None: nothing.
        requires: All that it needs, in words for people.
        missing_key: Where results say how many reference steps it could not be measured of, as nothing fulfilled them.
        is_family: Whether it stands for all metrics whose names begin with its key.
        members: The ends of its members' names, of a family that has always the same.
        family: The key of the family that it is of.
        part_of: The metric that sums it up, which is shown where there is no room for both.
        is_summed_up: Whether aggregates have its statistics; if not, it stands in the totals alone.
        spent_by: Who spent it, ``agent`` or ``judges``; None for what is not spent.
        judge: The judge that gives it; None for what no judge gives.
        cost_key: Where its cost stands in USD; None where it costs nothing.
        reason_key: Where its reason stands.
        error_key: Where it is told why it could not be measured.
        source: Whose definition it follows.
        functions: The functions of ``graphrag_eval_lc.metrics`` that give it.

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
    is_family: bool = False
    members: tuple[str, ...] = ()
    family: str | None = None
    part_of: str | None = None
    is_summed_up: bool = True
    spent_by: Literal["agent", "judges"] | None = None
    judge: str | None = None
    cost_key: str | None = None
    reason_key: str | None = None
    error_key: str | None = None
    source: str = ""
    functions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.title:
            object.__setattr__(self, "title", self.key)
        if self.is_spent:
            object.__setattr__(self, "lower_is_better", True)

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys under which results say something of it, its own first."""
        keys = (self.key, self.reason_key, self.cost_key, self.error_key, self.missing_key)
        return tuple(key for key in keys if key is not None)

    @property
    def is_spent(self) -> bool:
        """Whether it says what was spent, so that a failed question's value is what was measured."""
        return self.kind == "spent"

    @property
    def is_part(self) -> bool:
        """Whether it is left out where there is no room for all, as another metric sums it up or it is one of many."""
        return self.part_of is not None or self.family is not None

    @property
    def value_of_failure(self) -> float | None:
        """What a failed question counts as: of scores the worst value, None where that is not known or not meant.

        Where more is better that is 0, as graphrag-eval has it, or the least value where that is usually below 0; where
        less is better the greatest value.

        Example:
            >>> MetricSpec(key="gain", range=(-5.0, 5.0)).value_of_failure
            -5.0
        """
        if self.kind != "score":
            return None
        if self.lower_is_better:
            return self.range[1]
        return min(0.0, (self.usual_range or self.range)[0] or 0.0)

    def value_in_failure(self, measured: float) -> float | None:
        """Return what a failed question counts as that has a value; None where it is left out.

        That is ``value_of_failure`` of a score; what was spent or counted is what was measured.
        """
        return self.value_of_failure if self.kind == "score" else measured


@lru_cache(maxsize=1_000)
def undeclared(key: str) -> MetricSpec:
    """Return what is taken for the declaration of a number that nobody declared: a score, or a cost by its name.

    The end of the name tells how its numbers are written, and nothing else: of ``saved_sec`` more may be better.

    Example:
        >>> undeclared("tone_cost").is_spent, undeclared("saved_sec").is_spent, undeclared("saved_sec").unit
        (True, False, 'seconds')
    """
    unit = next((unit for ending, unit in _UNITS_BY_ENDING.items() if key.endswith(ending)), "score")
    if key.endswith(_COST):
        return cost_spec(key)
    return MetricSpec(key=key, unit=unit, range=(None, None), usual_range=(0.0, 1.0))


def cost_spec(key: str) -> MetricSpec:
    """Return the declaration of what a judge costs."""
    return MetricSpec(
        key=key,
        kind="spent",
        unit="usd",
        lower_is_better=True,
        range=(0.0, None),
        spent_by="judges",
        requires="models with a known price",
        source="genai-prices, or `prices` in the config",
    )
