"""Fixtures for several rooms: an OpenAI stub that judges whole runs, and resetting the matchers."""

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
    """Return a function that removes all matchers registered since the test began, as in a new process."""
    return saved_registrations()
