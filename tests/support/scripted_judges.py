"""Models with predefined answers that record the questions they receive: the other side of the judge protocol."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from graphrag_eval_lc.judges.model_interface import Answer, Asked, Vectors


@dataclass(frozen=True)
class Question:
    system: str
    user: str
    schema: type[BaseModel]


class ScriptedJudge:
    """Returns its answers in order. Exceptions among them are raised."""

    name = "scripted:judge"

    def __init__(self, answers: Sequence[dict[str, Any] | Exception], *, cost: float | None = 0.01) -> None:
        self._answers = iter(answers)
        self._cost = cost
        self.asked: list[Question] = []

    async def aask(self, system: str, user: str, schema: type[Answer]) -> Asked[Answer]:
        self.asked.append(Question(system, user, schema))
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return Asked(schema.model_validate(answer), self._cost)


class ScriptedEmbeddings:
    """Returns vectors by text."""

    name = "scripted:embeddings"

    def __init__(self, vectors: Mapping[str, Sequence[float]], *, cost: float | None = 0.001) -> None:
        self._vectors = vectors
        self._cost = cost
        self.asked: list[list[str]] = []

    async def aembed(self, texts: Sequence[str]) -> Asked[Vectors]:
        self.asked.append(list(texts))
        return Asked(tuple(tuple(self._vectors[text]) for text in texts), self._cost)


class MemoryCache(dict[str, Any]):
    """A judge cache in memory."""

    def put(self, digest: str, record: Any) -> None:
        self[digest] = record
