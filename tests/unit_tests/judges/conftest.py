"""Shortens the waits between retries."""

import pytest

from graphrag_eval_lc.judges import model


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "FIRST_WAIT_SEC", 0.01)
