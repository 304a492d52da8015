"""What tests of several rooms share: a stub of the OpenAI API that judges whole runs, and a registry of matchers."""

from collections.abc import Callable, Iterator

import pytest
from judged_runs import judgement
from openai_stub import OpenAIStub

from graphrag_eval_lc.matching import registry
from graphrag_eval_lc.registry import registered_only_here


@pytest.fixture
def judge() -> Iterator[OpenAIStub]:
    with OpenAIStub() as stub:
        stub.answer = judgement
        yield stub


@pytest.fixture(autouse=True)
def own_registries() -> Iterator[None]:
    with registered_only_here():
        yield


@pytest.fixture(autouse=True)
def forget_matchers() -> Iterator[Callable[[], None]]:
    """Give what forgets all matchers that were registered since the test began, as a new process would."""
    matchers, fulfilled_by = dict(registry._matchers), dict(registry._fulfilled_by)

    def forget() -> None:
        registry._matchers.clear()
        registry._matchers.update(matchers)
        registry._fulfilled_by.clear()
        registry._fulfilled_by.update(fulfilled_by)

    yield forget
    forget()
