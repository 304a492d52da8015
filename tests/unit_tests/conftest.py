"""A stub of the OpenAI API that judges whole runs, fresh for each test."""

from collections.abc import Iterator

import pytest
from judged_runs import judgement
from openai_stub import OpenAIStub


@pytest.fixture
def judge() -> Iterator[OpenAIStub]:
    with OpenAIStub() as stub:
        stub.answer = judgement
        yield stub
