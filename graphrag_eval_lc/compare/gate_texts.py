"""Gates as texts of the command line: ``[TEMPLATE/]METRIC[.STATISTIC]=VALUE``."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from pydantic import ValidationError

from graphrag_eval_lc.config import GateConfig
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC, MAIN_METRIC, TOTAL_TOKENS, is_declared

Statistic = Literal["mean", "median", "p95", "min", "max", "sum"]
STATISTICS: Final[tuple[Statistic, ...]] = get_args(Statistic)
MEAN: Final[Statistic] = "mean"

UNDER_EXAMPLE: Final = f"--fail-under {MAIN_METRIC}=0.9"
OVER_EXAMPLE: Final = f"--fail-over {ELAPSED_SEC}.p95=30"
INCREASE_EXAMPLE: Final = f"--fail-over {TOTAL_TOKENS}=+10%"

_NO_NAME = re.compile(r"[<>\s]")


@dataclass(frozen=True, slots=True)
class GateText:
    """The parts of a gate's text.

    Attributes:
        metric: The metric, with its statistic where one is named: what ``GateConfig.metric`` takes.
        value: What stands behind the last equals sign.
        template: What stands before the last slash of the name; None: all questions.
    """

    metric: str
    value: str
    template: str | None = None

    @property
    def name(self) -> str:
        """What stands before the last equals sign."""
        return self.metric if self.template is None else f"{self.template}/{self.metric}"


def gate_text(text: str, example: str, what: str = "gate") -> GateText:
    """Split a gate's text: the value at the last equals sign, the metric at the last slash before it.

    Args:
        text: The text.
        example: The option with a right text, for messages.
        what: What the text should be, for messages.

    Raises:
        OptionError: It has no value, or a name that no metric has.

    Example:
        >>> gate_text("how=many/steps_score=0.8", "--fail-under steps_score=0.9")
        GateText(metric='steps_score', value='0.8', template='how=many')
    """
    name, _, value = text.rpartition("=")
    template, slash, metric = name.rpartition("/")
    metric, value = metric.strip(), value.strip()
    # Else steps_score>=0.9 would be of a metric "steps_score>".
    if not metric or not value or _NO_NAME.search(metric) or (slash and not template):
        raise wrong_text(text, example, what)
    return GateText(metric, value, template if slash else None)


def wrong_text(text: str, example: str, what: str = "gate") -> OptionError:
    """Return the error of a text that is no gate."""
    return OptionError(f"{text!r} is no {what}", hint=f"Write it as {example}.")


def number_in(text: str) -> float | None:
    """Return a number; None for another text, NaN and infinities.

    Example:
        >>> number_in(".9"), number_in("1_0"), number_in("inf")
        (0.9, None, None)
    """
    try:
        number = math.nan if "_" in text else float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def metric_and_statistic(name: str) -> tuple[str, Statistic]:
    """Split a name such as ``elapsed_sec.p95``; a metric that is declared under the whole name is that.

    Example:
        >>> metric_and_statistic("elapsed_sec.p95"), metric_and_statistic("steps_score")
        (('elapsed_sec', 'p95'), ('steps_score', 'mean'))
    """
    metric, _, ending = name.rpartition(".")
    for statistic in STATISTICS:
        if metric and ending == statistic and not is_declared(name):
            return metric, statistic
    return name, MEAN


def gates_under(texts: Iterable[str]) -> list[GateConfig]:
    """Read what ``--fail-under`` takes.

    Raises:
        OptionError: A text has another form, or requires the same twice.

    Example:
        >>> [(gate.template, gate.metric, gate.under) for gate in gates_under(["notes/steps_score=0.8"])]
        [('notes', 'steps_score', 0.8)]
    """
    gates = []
    for text in texts:
        parts = gate_text(text, UNDER_EXAMPLE, "requirement")
        least = number_in(parts.value)
        # A change has a sign: of a least mean it would be another gate.
        if least is None or parts.value.startswith("+"):
            raise wrong_text(text, UNDER_EXAMPLE, "requirement")
        gates.append(GateConfig(metric=parts.metric, template=parts.template, under=least))
    refuse_twice(gates, "is required twice")
    return gates


def gates_over(texts: Iterable[str], *, has_baseline: bool = False) -> list[GateConfig]:
    """Read what ``--fail-over`` takes.

    Args:
        texts: The texts.
        has_baseline: Whether an increase such as ``total_tokens=+10%`` can be checked.

    Raises:
        OptionError: A text has another form, bounds the same twice, or needs a baseline that there is not.

    Example:
        >>> [(gate.metric, gate.over) for gate in gates_over(["elapsed_sec.p95=30", "total_tokens=5000"])]
        [('elapsed_sec.p95', 30.0), ('total_tokens', 5000.0)]
        >>> gates_over(["total_tokens=+10%"], has_baseline=True)[0].needs_baseline
        True
    """
    example = f"{OVER_EXAMPLE} or {INCREASE_EXAMPLE}" if has_baseline else OVER_EXAMPLE
    gates = []
    for text in texts:
        parts = gate_text(text, example, "bound")
        most = parts.value if parts.value.startswith("+") else number_in(parts.value)
        try:
            gate = GateConfig(metric=parts.metric, template=parts.template, over=most)
        except ValidationError:
            raise wrong_text(text, example, "bound") from None
        if gate.needs_baseline and not has_baseline:
            raise OptionError(
                f"{text!r} bounds the increase over a baseline, and one run has none",
                hint=f"Hold it against another run: compare RUN_A RUN_B --fail-over {text}; or give the greatest "
                f"value, such as {OVER_EXAMPLE}.",
            )
        gates.append(gate)
    refuse_twice(gates, "is bounded twice")
    return gates


def refuse_twice(gates: Sequence[GateConfig], what: str) -> None:
    """Refuse two gates of the same condition on the same metric and template.

    Raises:
        OptionError: There are two; ``what`` is what is said of their metric.
    """
    seen: set[tuple[str, str | None, str, bool]] = set()
    for gate in gates:
        name = gate.metric or MAIN_METRIC
        key = (name, gate.template, gate.condition, gate.needs_baseline)
        if key in seen:
            raise OptionError(
                f"{name if gate.template is None else f'{gate.template}/{name}'} {what}",
                hint="Leave one of them out.",
            )
        seen.add(key)
