"""What tests of several rooms share: a stub of the OpenAI API that judges whole runs, and forgetting matchers."""

from collections.abc import Callable, Iterator

import pytest
from support.judged_runs import judgement
from support.openai_stub import OpenAIStub

from graphrag_eval_lc.registry.plugins import saved_registrations


@pytest.fixture
def judge() -> Iterator[OpenAIStub]:
    with OpenAIStub() as stub:
        stub.answer = judgement
        yield stub


@pytest.fixture
def openai_stub() -> Iterator[OpenAIStub]:
    with OpenAIStub() as stub:
        yield stub


@pytest.fixture
def forget_matchers() -> Callable[[], None]:
    """Give what forgets all matchers that were registered since the test began, as a new process would."""
    return saved_registrations()
