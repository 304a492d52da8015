"""Coverage of corrected means of a judge's verdicts, compared with the judge's own mean.

Run it as ``python benchmarks/judge_calibration.py``; it takes some minutes and needs the extra ``stats``. Runs with a
known share of right answers are simulated in cells: shares of 0.5, 0.7 and 0.9; judges that accept 0.8 to 0.99 of the
right and reject 0.6 to 0.9 of the wrong answers; 100 and 400 questions; 50 and 100 labelled answers. The intervals:

* ``share``: Rogan and Gladen's share with Lang and Reiczigel's interval, ``calibrated_share``.
* ``mean``: prediction-powered inference, ``calibrated_mean``, with graded scores: right answers mostly near 1.
* ``raw``: that of the judge's own share, ``mean_interval``.

The goal is a coverage of ``share`` and ``mean`` of at least 0.93 in every cell. ``--quick`` simulates a fifth of the
runs. The exit code is 1 if the goal is missed.
"""

import argparse
import itertools
import sys
from collections.abc import Iterator
from random import Random
from typing import Final

from graphrag_eval_lc.metrics.calibration import calibrated_mean, calibrated_share
from graphrag_eval_lc.metrics.intervals import mean_interval

RUNS: Final = 2000
GOAL: Final = 0.93
SHARES = (0.5, 0.7, 0.9)
JUDGES = ((0.95, 0.9), (0.9, 0.7), (0.8, 0.8), (0.99, 0.6))
QUESTIONS, LABELS = (100, 400), (50, 100)

Answer = tuple[bool, bool, float]


def answers(draw: Random, number: int, share: float, judge: tuple[float, float]) -> Iterator[Answer]:
    """Yield, for each answer, whether it is right, whether the judge accepts it, and the judge's score."""
    sensitivity, specificity = judge
    for _ in range(number):
        is_right = draw.random() < share
        is_accepted = draw.random() < (sensitivity if is_right else 1 - specificity)
        yield is_right, is_accepted, draw.betavariate(6, 1) if is_accepted else draw.betavariate(1, 3)


def coverage(runs: int, share: float, judge: tuple[float, float], questions: int, labels: int) -> list[float]:
    """Return how often each interval contains the true share of right answers."""
    draw, covered = Random(f"{share} {judge} {questions} {labels}"), [0, 0, 0]
    for _ in range(runs):
        asked = list(answers(draw, questions, share, judge))
        labelled = list(answers(draw, labels, share, judge))
        is_accepted = [[is_accepted for _, is_accepted, _ in asked]]
        found = (
            calibrated_share(is_accepted, [(is_accepted, is_right) for is_right, is_accepted, _ in labelled]),
            calibrated_mean([[score for *_, score in asked]], [(score, float(right)) for right, _, score in labelled]),
            mean_interval([float(each) for each in is_accepted[0]], range(questions)),
        )
        for index, interval in enumerate(found):
            covered[index] += interval is None or interval.low <= share <= interval.high
    return [count / runs for count in covered]


def main() -> int:
    """Print the coverage of each cell; return 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a fifth of the runs")
    runs = RUNS // 5 if parser.parse_args().quick else RUNS
    print("right  judge's Se, Sp  questions  labels  share   mean    raw")
    lowest = 1.0
    for share, judge, questions, labels in itertools.product(SHARES, JUDGES, QUESTIONS, LABELS):
        found = coverage(runs, share, judge, questions, labels)
        lowest = min(lowest, *found[:2])
        cells = "  ".join(f"{each:.3f}" for each in found)
        print(f"{share:5.1f}  {judge[0]:9.2f}, {judge[1]:.2f}  {questions:9}  {labels:6}  {cells}", flush=True)
    print(f"lowest coverage of the corrected means: {lowest:.3f} (goal: {GOAL})")
    return int(lowest < GOAL)


if __name__ == "__main__":
    sys.exit(main())
