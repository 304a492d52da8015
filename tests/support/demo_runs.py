"""Runs of the demo's agent with judged answers, with all or some of its mistakes."""

from pathlib import Path
from typing import Any
from unittest.mock import patch

from graphrag_eval_lc import BenchmarkRun, run_benchmark
from graphrag_eval_lc.demo import DATASET_PATH
from graphrag_eval_lc.demo.agent import create_demo_agent
from graphrag_eval_lc.demo.plans import SLIPS
from graphrag_eval_lc.judges.model_interface import Answer, Asked


class AnswerJudge:
    """Finds two claims in every answer: both correct in two of three answers, both wrong in the third."""

    name = "judge of the tests"

    async def aask(self, system: str, user: str, schema: type[Answer]) -> Asked[Answer]:
        """Return an answer in the requested form."""
        is_right = sum(user.encode()) % 3 > 0
        claims = ["The first claim.", "The second claim."]
        judgement: dict[str, Any] = {"reason": "So it is."}
        if "true_positives" in schema.model_fields:
            judgement["true_positives"] = claims if is_right else []
            judgement["false_positives"] = judgement["false_negatives"] = [] if is_right else claims
        elif "verdict" in schema.model_fields:
            judgement["verdict"] = int(is_right)
        else:
            judgement = {"statements": [{"statement": "One.", "reason": "So.", "attributed": int(is_right)}]}
        return Asked(schema.model_validate(judgement), 0.001)


def demo_run(folder: Path, *, mistakes: int = len(SLIPS), **options: Any) -> BenchmarkRun:
    """Run the demo into a folder. The agent makes only the first ``mistakes`` of its mistakes."""
    others = dict.fromkeys(list(SLIPS)[mistakes:])
    with patch.dict(SLIPS, others):
        return run_benchmark(
            create_demo_agent, DATASET_PATH, output_dir=folder, llm=AnswerJudge(), progress="off", **options
        )
