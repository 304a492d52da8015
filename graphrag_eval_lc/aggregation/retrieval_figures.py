"""The measures of retrieval in results, and the reference steps that nothing fulfilled."""

from collections.abc import Iterable, Iterator, Set

from graphrag_eval_lc.aggregation.sample_values import Sample, is_error, number, steps_of
from graphrag_eval_lc.config import RetrievalConfig
from graphrag_eval_lc.registry.metrics import BUILT_IN, metric_spec

# By what the names of the measures begin with.
_MISSING_KEYS = {spec.key: spec.missing_key for spec in BUILT_IN if spec.is_family and spec.missing_key is not None}


class RetrievalFigures:
    """Finds in results what was measured of retrieval without a language model.

    Args:
        config: The section on retrieval.

    Attributes:
        missing_keys: Under which results say how many reference steps nothing fulfilled.
    """

    missing_keys = tuple(_MISSING_KEYS.values())

    def __init__(self, config: RetrievalConfig) -> None:
        self._is_missing_zero = config.missing == "zero"
        self._expected = config.metric_keys()
        self._found: dict[str, dict[str, None]] = {prefix: {} for prefix in _MISSING_KEYS}

    def numbers(self, sample: Sample) -> Iterator[tuple[str, float]]:
        """Give each measure of each step, and how many reference steps are missing under a key of its own.

        The measures of a failed question are 0.
        """
        has_failed = is_error(sample)
        keys = [key for key in self.missing_keys if key in sample]
        for key in keys:
            if isinstance(count := sample[key], int) and count >= 0:
                yield key, count
        for step in steps_of(sample) if keys else ():  # without such reference steps nothing is measured
            for key in step:
                prefix = next((prefix for prefix in _MISSING_KEYS if key.startswith(prefix)), None)
                value = None if prefix is None else number(step[key])
                if value is not None and has_failed:
                    value = metric_spec(key).value_in_failure(value)
                if prefix is not None and value is not None:
                    self._found[prefix][key] = None
                    yield key, value

    def names(self, missing: Set[str]) -> Iterable[str]:
        """Give the measures that have figures.

        Args:
            missing: The keys under which results said that something is missing.
        """
        for prefix, found in self._found.items():
            # Where nothing at all was fulfilled there are zeros of what would have been measured.
            is_zero = self._is_missing_zero and _MISSING_KEYS[prefix] in missing
            yield from found or (self._expected[prefix] if is_zero else ())

    def zeros_key(self, metric: str) -> str | None:
        """Give the key under which results say how many zeros a metric has more; None where that is none."""
        if not self._is_missing_zero:
            return None
        return next((key for prefix, key in _MISSING_KEYS.items() if metric.startswith(prefix)), None)
