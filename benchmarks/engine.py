"""The overhead of running questions in workers: in isolated processes, and on a Ray cluster.

Run it as ``python benchmarks/engine.py``. 2,000 questions go to an async function that waits 100 ms: 64 at a time in
one process, 8 at a time in 8 isolated processes, then with 1, 2 and 4 workers of a Ray cluster on this machine. The
time from the first answer to the last is compared with questions × latency ÷ concurrency; starting the workers is shown
separately. The CPU time of the main process, the driver, is counted over the same period: it also journals and scores
all responses. Without Ray its rows are skipped. ``--quick`` runs 600 questions. The exit code is 1 if a goal is missed.
The machine should have one processor per worker and one for the driver.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from graphrag_eval_lc import run_benchmark
from graphrag_eval_lc.evaluation.events import RunEvent

QUESTIONS, PLACES = 2_000, 64
PROCESSES = 8  # isolated processes: each is a separate Python
LATENCY_SEC = 0.1
RATIO_GOAL = 1.25
DRIVER_CPU_GOAL_MS = 1.0


async def agent(question: str) -> str:
    """Wait as if for a model."""
    await asyncio.sleep(LATENCY_SEC)
    return f"an answer to {question}"


class Times(NamedTuple):
    """Durations of a run: seconds until the first answer, from there to the last, and the driver's CPU time."""

    start: float
    asking: float
    cpu: float


class Watch:
    """Records when responses end."""

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.ends: list[tuple[float, float]] = []

    def __call__(self, event: RunEvent) -> None:
        """Handle an event of the run."""
        if event.kind == "response_ended":
            self.ends.append((time.perf_counter(), time.process_time()))

    def times(self) -> Times:
        """Return the durations of the run."""
        (first, cpu_first), (last, cpu_last) = self.ends[0], self.ends[-1]
        return Times(first - self.began, last - first, cpu_last - cpu_first)


def measured(questions: int, **options: Any) -> Times:
    """Run the benchmark into a folder, and return its durations."""
    asked = [{"id": f"q{number}", "question_text": f"What is {number}?"} for number in range(questions)]
    dataset: Any = [{"template_id": "t", "questions": asked}]
    with tempfile.TemporaryDirectory() as folder:
        watch = Watch()
        run = run_benchmark(
            f"{Path(__file__).resolve()}:agent",
            dataset,
            output_dir=folder,
            progress="off",
            on_event=watch,
            **{"max_concurrency": PLACES, **options},
        )
    assert run.aggregates["micro"]["number_of_success_samples"] == questions, run.warnings
    return watch.times()


def main() -> int:
    """Print the table, and return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer questions")
    questions = 600 if parser.parse_args().quick else QUESTIONS
    isolated = {"isolate": True, "max_concurrency": PROCESSES}
    ways: dict[str, dict[str, Any]] = {"one process": {}, f"{PROCESSES} isolated processes": isolated}
    if find_spec("ray") is not None:
        ways |= {f"ray, {number} workers": {"engine": "ray", "workers": number} for number in (1, 2, 4)}
    is_met = True
    sys.stdout.write(
        f"{questions:,} questions × {LATENCY_SEC * 1000:g} ms, {PLACES} places, {os.cpu_count()} processors\n"
    )
    sys.stdout.write(f"{'':24}{'start':>9}{'asking':>9}{'ratio':>8}{'driver CPU a question':>24}\n")
    for name, options in ways.items():
        times = measured(questions, **options)
        ideal = (questions - 1) * LATENCY_SEC / options.get("max_concurrency", PLACES)
        ratio, cpu_ms = times.asking / ideal, 1000 * times.cpu / questions
        line = f"{name:24}{times.start:7.1f} s{times.asking:7.1f} s{ratio:8.2f}{cpu_ms:21.2f} ms"
        if "engine" in options:
            missed = ratio > RATIO_GOAL or cpu_ms > DRIVER_CPU_GOAL_MS
            is_met &= not missed
            line += "  goal missed" if missed else "  goal met"
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
