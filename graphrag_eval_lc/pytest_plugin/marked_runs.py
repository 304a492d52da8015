"""The runs of a session: the questions that one test asks, with one set of its other parameters, are one run."""

import hashlib
import re
from dataclasses import dataclass
from typing import Any

import pytest

from graphrag_eval_lc.pytest_plugin.datasets import MarkedDataset, question_of

_LONGEST = 80
_NOT_IN_A_NAME = re.compile(r"[^\w.-]+")


@dataclass(frozen=True, slots=True)
class MarkedRun:
    """What one test asks, with one set of its other parameters.

    Attributes:
        test: The test's node id, without brackets.
        variant: Its other parameters, as they stand in brackets; empty where it has none.
        dataset: Its dataset.
    """

    test: str
    variant: str
    dataset: MarkedDataset

    @property
    def key(self) -> str:
        """Unlike that of any other run of the session, and the same in each process."""
        return hashlib.sha256(f"{self.test}[{self.variant}]".encode("utf-8", "backslashreplace")).hexdigest()[:16]

    @property
    def name(self) -> str:
        """The marker's name, else that of the test, with the variant."""
        return "-".join(filter(None, (self.dataset.name or self.test.rpartition("::")[2], self.variant)))


def run_of(item: pytest.Item) -> MarkedRun:
    """Return the run that a test belongs to, which has a question."""
    question = question_of(item)
    assert question is not None
    test = item.nodeid.removesuffix(f"[{_callspec(item).id}]")
    return MarkedRun(test, _variant(item, question.id), question.dataset)


def _callspec(item: pytest.Item) -> Any:
    return item.callspec  # type: ignore[attr-defined]


def _variant(item: pytest.Item, question: str) -> str:
    """Return the id of a test without that of its question."""
    callspec = _callspec(item)
    others = sorted(name for name in callspec.params if name != "graphrag_question")
    if not others:
        return ""
    escaped = question.encode("unicode_escape").decode("ascii")  # as pytest writes what is not ASCII
    for text in (question, escaped):
        for pattern in (f"-{text}-", f"-{text}", f"{text}-"):
            start, end = pattern.startswith("-"), pattern.endswith("-")
            whole = str(callspec.id)
            if start and end and pattern in whole:
                return whole.replace(pattern, "-", 1)
            if start and not end and whole.endswith(pattern):
                return whole.removesuffix(pattern)
            if end and not start and whole.startswith(pattern):
                return whole.removeprefix(pattern)
    return "-".join(f"{name}{callspec.indices[name]}" for name in others)
