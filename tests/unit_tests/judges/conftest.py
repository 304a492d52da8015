"""The stub of the OpenAI API, fresh for each test of the judges, and short waits before requests are sent again."""

from collections.abc import Iterator

import pytest
from openai_stub import OpenAIStub

from graphrag_eval_lc.judges import model_calls


@pytest.fixture
def openai_stub() -> Iterator[OpenAIStub]:
    with OpenAIStub() as stub:
        yield stub


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_calls, "FIRST_WAIT_SEC", 0.01)
