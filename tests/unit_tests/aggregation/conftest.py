from collections.abc import Callable

import pytest

from graphrag_eval_lc.registry import MetricSpec
from graphrag_eval_lc.registry import metrics as registry


@pytest.fixture
def metrics(monkeypatch: pytest.MonkeyPatch) -> Callable[[MetricSpec], None]:
    """Give what registers a metric for the time of a test."""

    def register(spec: MetricSpec) -> None:
        monkeypatch.setitem(registry.metrics_of_users, spec.key, registry.RegisteredMetric(spec, lambda *_: None))

    return register
