"""The section ``gates``: the means that a run must reach, and how much worse than a baseline it may be."""

import math
import re
import sys
from typing import Any, Final, Self

from pydantic import Field, field_validator, model_validator

from graphrag_eval_lc.config.base import Section, mistake

_CHANGE = re.compile(r"\+(?P<number>[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?)(?P<percent>%?)")
_WITH_EXPONENT = re.compile(r"-?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+")


class GateConfig(Section):
    """One gate: exactly one of the conditions ``under`` to ``regression``, of a metric.

    ``under``, and ``over`` as a number, are about one run; all others compare a run with a baseline, so only
    ``compare`` can check them.

    Attributes:
        metric: A metric, or one of its statistics over the samples as in ``elapsed_sec.p95``; None: the main metric.
        template: Only the questions of this template; None: all.
        under: The gate fails if the mean is below this.
        over: The gate fails if the mean is above this: a number, or an increase over the baseline as ``"+10%"`` or
            ``"+0.05"``.
        max_drop: How much worse than the baseline the mean may be, at least 0: of a score between 0 and 1 points, of
            all else a share of the baseline's mean.
        max_drop_per_template: The same for the mean of each template.
        max_lost: How many questions that were right in the baseline may be wrong, at least 0.
        max_lost_per_template: The same for each template.
        regression: As ``max_drop``, but if the test is strong enough to find a drop of 0.05, its p-value decides.
        confident: Whether only a sure drop fails: the lower end of its 95 % interval counts in place of the drop.

    Example:
        >>> GateConfig(metric="steps_score", max_drop=0.05, template="notes").needs_baseline
        True
    """

    metric: str | None = Field(default=None, min_length=1)
    template: str | None = None
    under: float | None = Field(default=None, allow_inf_nan=False)
    over: float | str | None = None
    max_drop: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    max_drop_per_template: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    max_lost: int | None = Field(default=None, ge=0)
    max_lost_per_template: int | None = Field(default=None, ge=0)
    regression: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    confident: bool = False

    @field_validator("over", mode="before")
    @classmethod
    def _is_a_number_or_an_increase(cls, value: Any) -> Any:
        if isinstance(value, str) and _WITH_EXPONENT.fullmatch(value):  # which YAML 1.1 reads as a text
            value = float(value)
        if value is None or _is_bound(value):
            return value
        what = f"{value!r:.40} is not a number or an increase over the baseline"
        raise mistake(what, 'Write a bound as 30, a share of the baseline\'s mean as "+10%", a difference as "+0.05".')

    @property
    def condition(self) -> str:
        """The key of the condition that is set."""
        return next(key for key in CONDITIONS if getattr(self, key) is not None)

    @property
    def drop_limit(self) -> float | None:
        """The drop that is allowed, of all templates or of each; None for another condition."""
        return next(
            (each for each in (self.max_drop, self.max_drop_per_template, self.regression) if each is not None), None
        )

    @property
    def needs_baseline(self) -> bool:
        """Whether it holds a run against a baseline."""
        return self.condition != "under" and not isinstance(self.over, int | float)

    @model_validator(mode="after")
    def _has_one_condition(self) -> Self:
        given = [key for key in CONDITIONS if getattr(self, key) is not None]
        if len(given) != 1:
            what = f"a gate has one condition, not {' and '.join(given)}" if given else "the gate has no condition"
            raise mistake(what, f"Give one of {', '.join(CONDITIONS)}.")
        condition = self.condition
        if self.template is not None and condition.endswith("_per_template"):
            what = f"{condition} holds in each template, and the gate names one"
            raise mistake(what, f"Leave template out, or write {condition.removesuffix('_per_template')}.", "template")
        if self.confident and self.drop_limit is None:
            what = f"confident is about drops, and {condition} limits none"
            raise mistake(what, "Leave confident out.", "confident")
        return self


def _is_bound(value: Any) -> bool:
    """Return whether a value is a finite number, or an increase by one; no run could be above an infinite one."""
    if isinstance(value, str):
        change = _CHANGE.fullmatch(value)
        return change is not None and math.isfinite(float(change["number"]))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max  # which whole numbers can exceed


CONDITIONS: Final = tuple(key for key in GateConfig.model_fields if key not in {"metric", "template", "confident"})
