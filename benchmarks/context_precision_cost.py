"""What context precision sends and costs with long references, one by one and in batches.

Run it as ``python benchmarks/context_precision_cost.py``. A question has retrieved contexts of 1,000 characters and
reference texts of 500,000 characters in total, which are part of each request. A local server counts the requests and
their bytes at four bytes per token: a prefix shared with an answered request is read from the provider's cache, as with
OpenAI from 1,024 tokens on. ``--quick`` uses a tenth of the data. The exit code is 1 if a goal is missed: the amount
sent is at most linear in the number of contexts, and a batch of 10 sends at most 0.12 of what single requests send.
"""

import argparse
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from graphrag_eval_lc.config import GenerationConfig
from graphrag_eval_lc.judges import ContextPrecision
from graphrag_eval_lc.judges.models import as_judge_model

CONTEXTS = 500
REFERENCE_CHARACTERS = 500_000
PRICES = {"input": 0.15, "cached": 0.075, "output": 0.6}  # USD per million tokens, gpt-4o-mini
ANSWER_TOKENS = 40
CACHED_FROM = 4096  # bytes
GROWTH_GOAL = 1.05  # relative to twice as much for twice as many contexts
BATCH_GOAL = 0.12


sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
OpenAIStub: Any = import_module("support.openai_stub").OpenAIStub


class Sent(NamedTuple):
    """What computing one score sent and cost."""

    requests: int
    megabytes: float
    usd: float


class Meter:
    """Answers each request, and keeps only its cost."""

    def __init__(self, stub: Any) -> None:
        self._stub = stub
        self._answered = ""
        self.sent = Sent(0, 0.0, 0.0)
        stub.answer = self._answer

    def _answer(self, request: Any) -> dict[str, Any]:
        text = request.system + request.user
        length, cached = len(text.encode()), _shared(text, self._answered)
        cached = cached if cached >= CACHED_FROM else 0
        self._answered = text
        contexts = request.user.count("<context")
        usd = (length - cached) / 4 * PRICES["input"] + cached / 4 * PRICES["cached"]
        usd += contexts * ANSWER_TOKENS * PRICES["output"]
        self.sent = Sent(self.sent.requests + 1, self.sent.megabytes + length / 1e6, self.sent.usd + usd / 1e6)
        self._stub.requests.clear()
        verdicts: list[Any] = [{"context": number, "reason": "R.", "verdict": 1} for number in range(1, contexts + 1)]
        return {"verdicts": verdicts} if "verdicts" in json.dumps(request.schema) else {"reason": "R.", "verdict": 1}


def _shared(text: str, other: str) -> int:
    """Return the length of the common prefix of two texts."""
    low, high = 0, min(len(text), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if text[:middle] == other[:middle] else (low, middle - 1)
    return low


def measured(contexts: int, characters: int, batch: int) -> Sent:
    """Return what computing the precision of some contexts sends."""
    with OpenAIStub() as stub:
        meter = Meter(stub)
        model = as_judge_model(GenerationConfig.model_validate({"base_url": stub.base_url, "api_key": "k"}))
        reference = "The line goes from the substation to the wind farm. " * (characters // 52)
        texts = [f"Context {number}. " + "It has a transformer of 132 kV. " * 31 for number in range(contexts)]
        score = ContextPrecision(model, batch=batch).score(
            user_input="Which line is it?", reference=reference, retrieved_contexts=texts
        )
        assert score.value == 1.0
        return meter.sent


def main() -> int:
    """Print the table, and return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of all")
    part = 10 if parser.parse_args().quick else 1
    characters = REFERENCE_CHARACTERS // part
    found: dict[tuple[int, int], Sent] = {}
    print(f"{'batch':>6}{'contexts':>10}{'requests':>10}{'MB sent':>10}{'USD':>10}")
    for batch in (1, 10, 50):
        for contexts in (CONTEXTS // 2 // part, CONTEXTS // part):
            sent = found[batch, contexts] = measured(contexts, characters, batch)
            print(f"{batch:>6}{contexts:>10}{sent.requests:>10}{sent.megabytes:>10.1f}{sent.usd:>10.4f}")
    half, whole = CONTEXTS // 2 // part, CONTEXTS // part
    growth = max(found[batch, whole].megabytes / found[batch, half].megabytes / 2 for batch in (1, 10, 50))
    share = found[10, whole].megabytes / found[1, whole].megabytes
    print(f"growth for twice the contexts: {2 * growth:.2f} (goal: {2 * GROWTH_GOAL:.2f})")
    print(f"a batch of 10 sends {share:.3f} of one by one (goal: {BATCH_GOAL})")
    return int(growth > GROWTH_GOAL or share > BATCH_GOAL)


if __name__ == "__main__":
    sys.exit(main())
