"""What tests of several rooms share: a stub of the OpenAI API that judges whole runs, and a registry of matchers."""

from collections.abc import Callable, Iterator

import pytest
from judged_runs import judgement
from openai_stub import OpenAIStub

import graphrag_eval_lc.matching  # noqa: F401 - declares the step kinds of the package
from graphrag_eval_lc.registry import registered_only_here
from graphrag_eval_lc.registry.step_kinds import saved_step_kinds


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
    forget = saved_step_kinds()
    yield forget
    forget()
