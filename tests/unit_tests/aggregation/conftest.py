from collections.abc import Callable

import pytest

from graphrag_eval_lc.registry import MetricSpec
from graphrag_eval_lc.registry.metrics import RegisteredMetric, metrics_of_users


@pytest.fixture
def metrics(monkeypatch: pytest.MonkeyPatch) -> Callable[[MetricSpec], None]:
    """Give what registers a metric for the time of a test."""

    def register(spec: MetricSpec) -> None:
        monkeypatch.setitem(metrics_of_users, spec.key, RegisteredMetric(spec, lambda *_: None))

    return register
