"""Answers and errors of real models and servers in many forms, over real HTTP."""

import json
import re
from pathlib import Path
from typing import Any

from support.openai_stub import Fault, OpenAIStub, StubRequest, http_error

from graphrag_eval_lc.config import GenerationConfig
from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.judges import AnswerCorrectness, JudgeScore
from graphrag_eval_lc.judges.openai_models import OpenAIJudgeModel

QUESTION = {
    "user_input": "Where is Hasle, and at which voltage?",
    "reference": "Hasle is in NO1. Hasle has 420 kV.",
    "response": "Hasle is in NO1. Hasle has 300 kV.",
}
SORTED = {
    "reason": "The place agrees; the voltage does not.",
    "true_positives": ["Hasle is in NO1."],
    "false_positives": ["Hasle has 300 kV."],
    "covered_claims": ["Hasle is in NO1."],
    "false_negatives": ["Hasle has 420 kV."],
}
MODES = ["json_schema", "tools", "json_object", "text"]


def cases(folder: Path, name: str) -> list[dict[str, Any]]:
    lines = (folder / "cases" / "judges" / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def judge_of(stub: OpenAIStub) -> AnswerCorrectness:
    settings = GenerationConfig(model="m", base_url=stub.base_url, api_key="k")
    return AnswerCorrectness(OpenAIJudgeModel(settings, max_retries=1))


def test_answers_are_parsed(conformance_dir: Path) -> None:
    problems = [problem for case in cases(conformance_dir, "answers.jsonl") for problem in problems_of_answer(case)]
    assert problems == []


def problems_of_answer(case: dict[str, Any]) -> list[str]:
    message = case.get("message") or {"role": "assistant", "content": case["content"]}
    with OpenAIStub() as stub:
        stub.chat_faults.extend([Fault(change=lambda answer: answer["choices"][0].update(message=message))] * 2)
        score = outcome(judge_of(stub))
        requests = len(stub.requests)
    if case["expected"] is None:
        return [] if isinstance(score, JudgeError) and requests == 2 else [f"{case['id']}: {requests} {score}"]
    read = score if isinstance(score, JudgeError) else {**score.details, "reason": score.reason}
    if requests == 1 and isinstance(read, dict) and case["expected"].items() <= read.items():
        return []
    return [f"{case['id']}: {requests} requests, {read}"]


def outcome(judge: AnswerCorrectness) -> JudgeScore | JudgeError:
    try:
        return judge.score(**QUESTION)
    except JudgeError as problem:
        return problem


def test_errors_have_the_expected_consequence(conformance_dir: Path) -> None:
    problems = [problem for case in cases(conformance_dir, "errors.jsonl") for problem in problems_of_error(case)]
    assert problems == []


def problems_of_error(case: dict[str, Any]) -> list[str]:
    sent = 0

    def fault_of(request: StubRequest) -> Fault | None:
        nonlocal sent
        if case["at"] != "any" and MODES.index(request.mode) < MODES.index(case["at"]):
            return http_error(400, f"'{request.mode}' is not supported", param="response_format", code=None)
        if case["at"] not in {"any", request.mode} or (case["times"] and sent >= case["times"]):
            return None
        sent += 1
        return Fault(case["status"], case["headers"], case["body"])

    with OpenAIStub() as stub:
        stub.fault_of = fault_of
        stub.answer = lambda _: SORTED
        judge = judge_of(stub)
        first = outcome(judge)
        of_first = len(stub.requests)
        second = outcome(judge)
        bodies = [request.body for request in stub.requests]
        modes = [request.mode for request in stub.requests]
    found = consequence(case, first, bodies[:of_first], modes[:of_first])
    if case["follows"] == "final":
        is_said = all(re.search(pattern, str(first)) for pattern in case["says"])
        return [] if isinstance(first, JudgeError) and is_said else [f"{case['id']}: {first}"]
    if found and isinstance(second, JudgeScore) and len(bodies) == of_first + 1:
        return []
    return [f"{case['id']}: {modes}, {first}"]


def consequence(
    case: dict[str, Any], score: JudgeScore | JudgeError, bodies: list[dict[str, Any]], modes: list[str]
) -> bool:
    """Return whether the expected requests follow the error and lead to a score."""
    if isinstance(score, JudgeError):
        return False
    if case["follows"] == "retry":
        return len(bodies) == 2 and bodies[0] == bodies[1]
    if case["follows"] == "shrink":
        return len(bodies) == 2 and bodies[1]["max_tokens"] < bodies[0]["max_tokens"]
    wanted = MODES.index({"plain": "text"}.get(case["follows"], case["follows"]))
    at = modes.index(case["at"])
    return modes.count(case["at"]) == 1 and MODES.index(modes[at + 1]) >= wanted
