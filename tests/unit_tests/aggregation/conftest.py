from collections.abc import Callable

import pytest

from graphrag_eval_lc.registry import MetricSpec
from graphrag_eval_lc.registry.metrics import RegisteredMetric, metrics_of_users


@pytest.fixture
def metrics(monkeypatch: pytest.MonkeyPatch) -> Callable[[MetricSpec], None]:
    """Return a function that registers a metric for one test."""

    def register(spec: MetricSpec) -> None:
        monkeypatch.setitem(metrics_of_users, spec.key, RegisteredMetric(spec, lambda *_: None))

    return register
