"""Verdicts with the values that ragas computed: equal except for its epsilon and for missing verdicts."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from support.scripted_judges import ScriptedJudge

from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.judges import ContextPrecision, ContextRecall, ContextUtilization

EPSILON = 1e-10  # ragas adds this to the number of relevant contexts


def vectors(conformance_dir: Path, metric: str) -> list[dict[str, Any]]:
    found = json.loads((conformance_dir / "vectors" / "context_precision_ragas.json").read_text(encoding="utf-8"))
    return [vector for vector in found if vector["input"]["metric"] == metric]


def precision_and_utilization(verdicts: list[int]) -> tuple[float | None, float | None]:
    answers = [{"reason": "Because.", "verdict": verdict} for verdict in verdicts]
    contexts = [f"context {rank}" for rank in range(len(verdicts))]
    precision = ContextPrecision(ScriptedJudge(answers))
    utilization = ContextUtilization(ScriptedJudge(answers))
    return (
        precision.score(user_input="Q?", reference="A.", retrieved_contexts=contexts).value,
        utilization.score(user_input="Q?", response="A.", retrieved_contexts=contexts).value,
    )


def test_precision_and_utilization_of_verdicts(conformance_dir: Path) -> None:
    checked = 0
    for vector in vectors(conformance_dir, "llm_verdicts"):
        verdicts, expected = vector["input"]["verdicts"], vector["expected"]
        if "non_binary_verdict" in vector["tags"]:
            with pytest.raises(ValidationError):  # the model is instructed so; ragas computes with it
                precision_and_utilization(verdicts)
            continue
        values = precision_and_utilization(verdicts)
        if not verdicts:
            assert values == (expected["legacy_formula"],) * 2, vector["id"]  # ragas raises an error
            continue
        without_epsilon = 1 + EPSILON / max(1, sum(verdicts))
        for value, name in zip(values, ("ContextPrecision", "ContextUtilization"), strict=True):
            assert value == pytest.approx(expected[name] * without_epsilon, abs=1e-12), vector["id"]
        checked += 1
    assert checked >= 15


def test_recall_of_attributions(conformance_dir: Path) -> None:
    found = vectors(conformance_dir, "llm_context_recall")
    sample = {"user_input": "Q?", "reference": "A.", "retrieved_contexts": ["context"]}
    for vector in found:
        attributed, expected = vector["input"]["attributed"], vector["expected"]["ContextRecall"]
        answer = {"statements": [{"statement": "S.", "reason": "R.", "attributed": one} for one in attributed]}
        if not attributed:
            assert math.isnan(float(expected))
            with pytest.raises(JudgeError, match="no statement"):  # after a second request; ragas returns NaN
                ContextRecall(ScriptedJudge([answer, answer])).score(**sample)
            continue
        metric = ContextRecall(ScriptedJudge([answer]))
        assert metric.score(**sample).value == pytest.approx(expected, abs=1e-12), vector["id"]
    assert len(found) == 3
