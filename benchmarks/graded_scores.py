"""How well scores reflect the number of an agent's mistakes: binary and graded ones, with planted faults.

Run it as ``python benchmarks/graded_scores.py``; it takes some seconds and needs the extra ``demo``. The demo's agent
answers the demo's dataset once. Between 0 and 4 faults of random kinds are planted in each recorded response, one after
the other: in a call without a fault, or as an extra call. This is repeated with other seeds, and all responses are
scored: binary by the last group, binary by all groups, and graded. A score is good if it falls with each fault, that
is, if its rank correlation (Spearman) with their number is near -1. The mean of each question's correlation counts,
since a fault costs more if a question needs fewer steps; the correlation over all responses is also shown. Only
questions that the agent answers without a fault count. Some faults do not affect a question, such as a missing column
that is not needed; they count all the same. The order of calls is unchanged: it is measured by ``steps_order`` and not
by a score.

``--quick`` uses a third of the seeds. The exit code is 1 if a goal is missed.
"""

import argparse
import json
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any, Final, NamedTuple

from scipy.stats import spearmanr

from graphrag_eval_lc import load_dataset, run_benchmark, run_evaluation
from graphrag_eval_lc.demo import DATASET_PATH
from graphrag_eval_lc.demo.agent import create_demo_agent

SEEDS, MOST_FAULTS = 6, 4
GOAL: Final = -0.8  # upper limit of the mean rank correlation of graded scores within a question

Step = dict[str, Any]
Steps = list[Step]
# Each returns the changed keys of a call, or None if the fault cannot be planted there.
Fault = Callable[[Step, random.Random], Step | None]

GRADINGS: Final[Mapping[str, Mapping[str, Any]]] = {
    "binary, last group": {"scoring": "last_group"},
    "binary, all groups": {"scoring": "all_groups"},
    "graded": {"grading": "graded"},
}


def main() -> int:
    """Plant the faults, print how the scores fall, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a third of the seeds")
    correlations = measured(SEEDS // 3 if parser.parse_args().quick else SEEDS)
    faults = range(MOST_FAULTS + 1)
    print(f"{'':20}{''.join(f'{count:>8}' for count in faults)}   faults: mean score")
    for title, found in correlations.items():
        print(f"{title:20}{''.join(f'{found.means[count]:8.3f}' for count in faults)}")
    print(f"\n{'':20}   all   within a question: rank correlation with the number of faults")
    for title, found in correlations.items():
        print(f"{title:20}{found.of_all:6.2f}{found.within:8.2f}")
    graded, *others = reversed(list(correlations.values()))
    is_met = graded.within <= GOAL and all(
        graded.within < other.within and graded.of_all < other.of_all for other in others
    )
    print(f"\ngraded within a question at most {GOAL}, nearer to -1 than both others: {'met' if is_met else 'NOT MET'}")
    return 0 if is_met else 1


class Correlation(NamedTuple):
    """How scores correlate with the number of planted faults.

    Attributes:
        of_all: The rank correlation over all responses, -1 to 1.
        within: The mean of the rank correlations within each question.
        means: The mean score by number of faults.
    """

    of_all: float
    within: float
    means: Mapping[int, float]


def measured(seeds: int) -> dict[str, Correlation]:
    """Return the correlation with the number of faults, by kind of score.

    Args:
        seeds: How often faults are planted.
    """
    dataset: Any = load_dataset(DATASET_PATH)
    recorded: Any = run_benchmark(create_demo_agent(), dataset).responses
    flawless = [result["question_id"] for result in _results(dataset, recorded, "graded") if result["steps_score"] == 1]
    chosen = [response for response in recorded if response["question_id"] in flawless]
    scores: dict[str, list[tuple[str, int, float]]] = {title: [] for title in GRADINGS}
    for seed in range(seeds):
        for responses in _with_faults(chosen, random.Random(seed)):
            counts = {response["question_id"]: response["faults"] for response in responses}
            for title, found in scores.items():
                found += [
                    (result["question_id"], counts[result["question_id"]], result["steps_score"])
                    for result in _results(dataset, responses, title)
                    if result["question_id"] in counts
                ]
    return {title: _correlation(found) for title, found in scores.items()}


def _results(dataset: Any, responses: Any, title: str) -> list[Any]:
    found = run_evaluation(dataset, responses, {"steps": dict(GRADINGS[title])})
    return [result for result in found if result["status"] == "success" and "steps_score" in result]


def _correlation(scores: Sequence[tuple[str, int, float]]) -> Correlation:
    by_question: dict[str, list[tuple[int, float]]] = {}
    by_count: dict[int, list[float]] = {}
    for question, count, score in scores:
        by_question.setdefault(question, []).append((count, score))
        by_count.setdefault(count, []).append(score)
    within = [_spearman(pairs) for pairs in by_question.values()]
    means = {count: fmean(found) for count, found in by_count.items()}
    return Correlation(_spearman([(count, score) for _, count, score in scores]), fmean(within), means)


def _spearman(pairs: Sequence[tuple[int, float]]) -> float:
    """Return the rank correlation; 0 if all scores are the same and thus uninformative."""
    counts, scores = zip(*pairs, strict=True)
    return float(spearmanr(counts, scores).statistic) if len(set(scores)) > 1 else 0.0


def _with_faults(responses: Sequence[Mapping[str, Any]], random_: random.Random) -> list[list[dict[str, Any]]]:
    """Return the responses with 0, 1, 2, … faults; each keeps the faults of the one before."""
    stages = [[{**response, "faults": 0} for response in responses]]
    for _ in range(MOST_FAULTS):
        stages.append([_with_fault(response, random_) for response in stages[-1]])
    return stages


def _with_fault(response: Mapping[str, Any], random_: random.Random) -> dict[str, Any]:
    """Return a response with one more fault: in a call without one, or as an extra call."""
    steps = list(response["actual_steps"])
    for fault in random_.sample([*FAULTS, None], len(FAULTS) + 1):
        if fault is None:  # an extra call
            break
        for at in random_.sample(range(len(steps)), len(steps)):
            if steps[at].get("has_fault"):
                continue
            changed = fault(steps[at], random_)
            if changed is not None:
                changed = {**steps[at], **changed, "has_fault": True}
                return {**response, "actual_steps": [*steps[:at], changed, *steps[at + 1 :]], **_one_more(response)}
    at = random_.randrange(len(steps) + 1)
    return {**response, "actual_steps": [*steps[:at], _further(steps, random_), *steps[at:]], **_one_more(response)}


def _one_more(response: Mapping[str, Any]) -> dict[str, int]:
    return {"faults": response["faults"] + 1}


def _further(steps: Steps, random_: random.Random) -> Step:
    """Return an extra call of one of the tools, which finds nothing."""
    step, number = random_.choice(steps), random_.randrange(10**6)
    output = json.dumps({"head": {"vars": ["x"]}, "results": {"bindings": []}})
    args = {**step["args"], "try": number}
    if step["name"] in _SERIES:
        args = {key: f"{value}-{number}" for key, value in args.items()}
    return {**step, "id": f"more-{number}", "status": "success", "args": args, "output": output, "has_fault": True}


_SERIES: Final = frozenset({"retrieve_time_series", "retrieve_data_points"})


def without_rows(step: Step, random_: random.Random) -> Step | None:
    """Remove every second row of a query."""
    del random_
    return _with_rows(step, lambda bindings: bindings[::2] if len(bindings) > 1 else None)


def without_column(step: Step, random_: random.Random) -> Step | None:
    """Remove a column of a query."""

    def change(bindings: list[Any]) -> list[Any] | None:
        names = sorted({name for row in bindings for name in row})
        if len(names) < 2:
            return None
        left_out = random_.choice(names)
        return [{name: term for name, term in row.items() if name != left_out} for row in bindings]

    return _with_rows(step, change)


def wrong_values(step: Step, random_: random.Random) -> Step | None:
    """Replace the values in every second row of a query by those of another entity."""

    def change(bindings: list[Any]) -> list[Any] | None:
        return [row if at % 2 else _of_another(row, random_) for at, row in enumerate(bindings)] or None

    return _with_rows(step, change)


def wrong_iris(step: Step, random_: random.Random) -> Step | None:
    """Make a search find other entities first."""

    def change(bindings: list[Any]) -> list[Any] | None:
        return [*(_of_another(row, random_) for row in bindings), *bindings] or None

    return _with_rows(step, change, "autocomplete_search")


def cut_output(step: Step, random_: random.Random) -> Step | None:
    """Truncate an output to a third."""
    del random_
    output = step.get("output") or ""
    return {"output": output[: len(output) // 3]} if len(output) > 60 and step["name"] not in _SERIES else None


def wrong_arguments(step: Step, random_: random.Random) -> Step | None:
    """Request other data."""
    if step["name"] not in _SERIES:
        return None
    key = random_.choice(sorted(step["args"]))
    return {"args": {**step["args"], key: f"{step['args'][key]}-{random_.randrange(10**6)}"}}


def failed_call(step: Step, random_: random.Random) -> Step | None:
    """Make a call fail."""
    del random_
    return {"status": "error", "error": "timeout", "output": "timeout"} if step["status"] == "success" else None


FAULTS: Final[Sequence[Fault]] = (
    without_rows,
    without_column,
    wrong_values,
    wrong_iris,
    cut_output,
    wrong_arguments,
    failed_call,
)


def _with_rows(step: Step, change: Callable[[list[Any]], list[Any] | None], name: str = "sparql_query") -> Step | None:
    """Return the output of a step with this name with changed rows, or None if nothing can be changed."""
    results = _results_of(step) if step["name"] == name else None
    if results is None:
        return None
    bindings = change(results["results"]["bindings"])
    return None if bindings is None else {"output": json.dumps({**results, "results": {"bindings": bindings}})}


def _of_another(row: Mapping[str, Any], random_: random.Random) -> dict[str, Any]:
    number = random_.randrange(10**6)
    return {name: {**term, "value": f"{term['value']}{number}"} for name, term in row.items()}


def _results_of(step: Step) -> dict[str, Any] | None:
    try:
        results = json.loads(step.get("output") or "")
    except ValueError:
        return None
    return results if isinstance(results, dict) and "results" in results else None


if __name__ == "__main__":
    sys.exit(main())
