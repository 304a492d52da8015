"""Whether slow drift is detected: a trend against the previous run, the first run, and the best run so far.

``python benchmarks/slow_drift.py [--times 200]``: simulates 20 runs of 400 questions in 50 templates; in each run every
question loses 0.01, or nothing. ``found`` is the share of the last runs reported as worse, ``after`` the run in which
half (90 %) of the simulations first report it. Without drift, ``alarms`` is the share of all runs reported as worse,
``any`` the share of simulations with such a run. ``first (3 runs)`` has three pooled runs of the first commit. ``best,
unadjusted`` is ``best`` without multiplying p-values by the number of runs.
"""

import argparse
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from graphrag_eval_lc.metrics.difference import MeanDifference

RUNS, QUESTIONS, TEMPLATES = 20, 400, 50
KINDS = ("previous", "first", "first (3 runs)", "best, unadjusted", "best")
Values = NDArray[np.float64]


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=200)
    times: int = parser.parse_args().times
    random = np.random.default_rng(0)
    for scores in ("binary", "graded"):
        print(f"{scores} scores{'':10}  found  after (90 %)   alarms    any")
        drifting = _alarms(random, scores, 0.01, times)
        steady = _alarms(random, scores, 0.0, times)
        for kind in KINDS:
            found, none = np.array(drifting[kind]), np.array(steady[kind])
            first = np.where(found.any(axis=1), found.argmax(axis=1) + 2, np.inf)
            after = f"{np.median(first):.0f} ({np.quantile(first, 0.9, method='lower'):.0f})"
            shares = f"{none.mean():7.1%}  {none.any(axis=1).mean():5.0%}"
            print(f"  {kind:20}  {found[:, -1].mean():6.0%}  {after:>12}  {shares}")


def _alarms(random: np.random.Generator, scores: str, loss: float, times: int) -> dict[str, list[list[bool]]]:
    """Return, for each simulation, which runs from the second on are reported as worse."""
    alarms: dict[str, list[list[bool]]] = {kind: [] for kind in KINDS}
    for _ in range(times):
        runs = [*_runs(random, scores, loss)]
        pooled = np.mean(runs[:3], axis=0)
        runs = runs[2:]
        best = [int(np.argmax([run.mean() for run in runs[:at]])) for at in range(1, RUNS)]
        for kind in KINDS:
            alarms[kind].append(
                [
                    _is_worse(
                        {"previous": runs[at - 1], "first": runs[0], "first (3 runs)": pooled}.get(
                            kind, runs[best[at - 1]]
                        ),
                        runs[at],
                        at if kind == "best" else 1,
                    )
                    for at in range(1, RUNS)
                ]
            )
    return alarms


def _runs(random: np.random.Generator, scores: str, loss: float) -> Iterator[Values]:
    """Yield three runs of the first commit, then one of each later commit."""
    templates = np.arange(QUESTIONS) % TEMPLATES
    easy = 0.8 + random.normal(0, 0.15, TEMPLATES)[templates] + random.normal(0, 0.15, QUESTIONS)
    for at in (0, 0, *range(RUNS)):
        chance = np.clip(easy, 0.05, 0.95) - loss * at
        if scores == "binary":
            yield (random.random(QUESTIONS) < chance).astype(float)
        else:
            yield np.clip(chance + random.normal(0, 0.25, QUESTIONS), 0, 1)


def _is_worse(a: Values, b: Values, chosen_from: int) -> bool:
    difference = b - a
    found = MeanDifference([[*difference[at::TEMPLATES]] for at in range(TEMPLATES)], scale=1.0)
    return found.difference < 0 and chosen_from * found.p_value < 0.05


if __name__ == "__main__":
    main()
