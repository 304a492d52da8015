"""Context precision, utilization, recall and answer relevance equal ragas' values for the same verdicts."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from support.ragas_environment import output_of
from support.scripted_judges import ScriptedEmbeddings, ScriptedJudge

from graphrag_eval_lc.judges import AnswerRelevance, ContextPrecision, ContextRecall, ContextUtilization

pytestmark = pytest.mark.full

EPSILON = 1e-10  # ragas adds this to the number of relevant contexts
NUMBER_OF_CASES = 100

# Reads cases as JSON, and prints ragas' values for each case's predefined answers.
SCRIPT = """
import asyncio, json, sys
from ragas.embeddings.base import BaseRagasEmbedding
from ragas.llms.base import InstructorBaseRagasLLM
from ragas.metrics.collections import AnswerRelevancy, ContextPrecision, ContextRecall, ContextUtilization

class ScriptedLLM(InstructorBaseRagasLLM):
    def __init__(self, answers):
        self.answers = iter(answers)
    def generate(self, prompt, response_model):
        return response_model(**next(self.answers))
    async def agenerate(self, prompt, response_model):
        return self.generate(prompt, response_model)

class ScriptedEmbedding(BaseRagasEmbedding):
    def __init__(self, vectors):
        super().__init__()
        self.vectors = vectors
    def embed_text(self, text, **kwargs):
        return self.vectors[text]
    async def aembed_text(self, text, **kwargs):
        return self.vectors[text]

async def values(case):
    contexts = {"user_input": "Q?", "retrieved_contexts": case["contexts"]}
    relevancy = AnswerRelevancy(llm=ScriptedLLM(case["questions"]), embeddings=ScriptedEmbedding(case["vectors"]))
    scores = {
        "precision": await ContextPrecision(llm=ScriptedLLM(case["verdicts"])).ascore(reference="A.", **contexts),
        "utilization": await ContextUtilization(llm=ScriptedLLM(case["verdicts"])).ascore(response="A.", **contexts),
        "recall": await ContextRecall(llm=ScriptedLLM([{"classifications": case["statements"]}])).ascore(
            reference="A.", **contexts
        ),
        "relevance": await relevancy.ascore(user_input="Q?", response="A."),
    }
    return {name: score.value for name, score in scores.items()}

async def main():
    print(json.dumps([await values(case) for case in json.load(sys.stdin)]))

asyncio.run(main())
"""


def random_case(chance: random.Random) -> dict[str, Any]:
    number_of_contexts = chance.randint(1, 12)
    noncommittal = chance.choice([0.0, 0.3, 1.0])
    questions = [
        {"question": chance.choice(["", "one?", "two?", "three?"]), "noncommittal": int(chance.random() < noncommittal)}
        for _ in range(3)
    ]
    size = chance.choice([1, 2, 3, 64, 1536])
    return {
        "contexts": [f"context {rank}" for rank in range(number_of_contexts)],
        "verdicts": [{"reason": "R.", "verdict": chance.randint(0, 1)} for _ in range(number_of_contexts)],
        "statements": [
            {"statement": f"S{number}.", "reason": "R.", "attributed": chance.randint(0, 1)}
            for number in range(chance.randint(1, 10))
        ],
        "questions": questions,
        "vectors": {text: [chance.gauss(0.3, 1) for _ in range(size)] for text in ["Q?", "one?", "two?", "three?"]},
    }


def our_values(case: dict[str, Any]) -> dict[str, float | None]:
    contexts = {"user_input": "Q?", "retrieved_contexts": case["contexts"]}
    precision = ContextPrecision(ScriptedJudge(case["verdicts"])).score(reference="A.", **contexts)
    utilization = ContextUtilization(ScriptedJudge(case["verdicts"])).score(response="A.", **contexts)
    recall = ContextRecall(ScriptedJudge([{"statements": case["statements"]}])).score(reference="A.", **contexts)
    written = [each for each in case["questions"] if each["question"]]
    is_noncommittal = all(each["noncommittal"] for each in written)
    answer = {"questions": [each["question"] for each in written], "noncommittal": int(is_noncommittal)}
    relevance = AnswerRelevance(ScriptedJudge([answer]), ScriptedEmbeddings(case["vectors"]))
    return {
        "precision": precision.value,
        "utilization": utilization.value,
        "recall": recall.value,
        "relevance": relevance.score(user_input="Q?", response="A.").value,
    }


def test_values_equal_those_of_ragas(ragas_python: Path) -> None:
    chance = random.Random(6)
    cases = [random_case(chance) for _ in range(NUMBER_OF_CASES)]
    values = json.loads(output_of(ragas_python, SCRIPT, json.dumps(cases)))
    for case, theirs in zip(cases, values, strict=True):
        relevant = sum(verdict["verdict"] for verdict in case["verdicts"])
        for name in ("precision", "utilization"):
            theirs[name] *= 1 + EPSILON / max(1, relevant)
        assert our_values(case) == pytest.approx(theirs, rel=0, abs=1e-9), case
