"""The metrics and evaluators that users registered, which are called for each response beside those that are passed."""

from collections.abc import Iterable
from typing import Any

from graphrag_eval_lc.errors import JudgeError, OptionError
from graphrag_eval_lc.judges.custom_functions import CustomFunction, Evaluator, custom_functions
from graphrag_eval_lc.registry.custom_metrics import registered_evaluators
from graphrag_eval_lc.registry.metric_spec import LARGEST
from graphrag_eval_lc.registry.metrics import RegisteredMetric, registered_metrics


class MetricFunction(CustomFunction):
    """A metric that a user registered: ``(question, response) -> float | None``.

    Args:
        metric: The metric.

    Attributes:
        spec: Its declaration.
    """

    def __init__(self, metric: RegisteredMetric) -> None:
        super().__init__(metric.function, metric.spec.key)
        self._takes = ()  # whatever its parameters are called
        self.spec = metric.spec
        self.registered_as = f"metric {self.name}"

    def _values_of(self, given: Any) -> dict[str, Any]:
        """Give the number under the metric's key, and nothing for None."""
        if given is None:
            return {}
        item = getattr(given, "item", None)  # numpy's numbers
        value = item() if callable(item) else given
        if not isinstance(value, int | float):
            raise JudgeError(f"the metric {self.name} gave {given!r:.80}, which is neither a number nor None")
        low, high = self.spec.range
        if not abs(value) <= LARGEST:  # NaN and infinities, too
            raise JudgeError(f"the metric {self.name} gave {value:g}; where there is nothing to measure it gives None")
        if (low is not None and value < low) or (high is not None and value > high):
            bounds = f"from {'-∞' if low is None else f'{low:g}'} to {'∞' if high is None else f'{high:g}'}"
            raise JudgeError(f"the metric {self.name} gave {value}, and is declared with a range {bounds}")
        return {self.name: value}


def all_functions(passed: Iterable[Evaluator | CustomFunction]) -> list[CustomFunction]:
    """Give all functions that evaluate each response, each with a name of its own.

    Args:
        passed: Those that are passed beside the registered ones, which go before and keep their names; one that is
            registered too counts once.

    Raises:
        OptionError: One of them cannot be an evaluator.
    """
    if not isinstance(passed, Iterable):
        raise OptionError(f"evaluators cannot be {passed!r}", key="evaluators", mend="Give a list of functions.")
    registered: list[CustomFunction] = [MetricFunction(metric) for metric in registered_metrics().values()]
    registered += [_evaluator(name, function) for name, function in registered_evaluators().items()]
    known = [each.function for each in registered]
    return custom_functions([*registered, *(each for each in passed if not any(each is one for one in known))])


def has_registered_functions() -> bool:
    """Tell whether there is a registered metric or evaluator."""
    return bool(registered_metrics() or registered_evaluators())


def _evaluator(name: str, function: Evaluator) -> CustomFunction:
    evaluator = CustomFunction(function, name)
    evaluator.registered_as = f"evaluator {name}"
    return evaluator
