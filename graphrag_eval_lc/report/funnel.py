"""The failure funnel: at which stage questions with a reference query fall out, and steps against answers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.matching import UnreadableOutput
from graphrag_eval_lc.matching.iri_discovery import holds_whole
from graphrag_eval_lc.matching.sparql import parse_sparql_results
from graphrag_eval_lc.registry.metrics import ANSWER_F1, STEPS_SCORE
from graphrag_eval_lc.report.samples import ANSWER_THRESHOLD, ReportedSample
from graphrag_eval_lc.report.step_names import is_iri, is_query, is_scored, step_name
from graphrag_eval_lc.report.texts import args_text

STAGES = ("IRI found", "query valid", "query non-empty", "rows right", "answer right")
_ANSWER = STAGES.index("answer right")

# Whether a question passes each stage; None where it has no reference for it.
Outcomes = Sequence[bool | None]


class Funnel:
    """Follows each question with a reference query through the stages.

    Args:
        config: The configuration, for the names of the tools and for which groups of steps are scored.
    """

    def __init__(self, config: EvaluationConfig) -> None:
        self._config = config
        self._outcomes: dict[str, Outcomes] = {}
        self._not_judged: set[str] = set()
        self._outside = 0
        self._is_judged = False

    def add(self, sample: ReportedSample) -> None:
        """Take up a sample."""
        self._is_judged = self._is_judged or sample.is_judged
        outcomes = _outcomes(sample, self._config)
        if outcomes is None:
            self._outside += 1
        else:
            self._outcomes[sample.key] = outcomes
            if sample.answer_right is None and sample.result.get("reference_answer") is not None:
                self._not_judged.add(sample.key)

    def record(self) -> dict[str, Any] | None:
        """Give the section ``funnel``; None where no question has a reference query.

        Of what enters a stage, each sample passes, falls out, is passed over (the stage has no reference or was not
        needed) or, of the answers, is not judged (there is a reference, but no judge gave a score).
        """
        if not self._outcomes:
            return None
        stages: list[dict[str, Any]] = []
        left = dict(self._outcomes)
        for at, name in enumerate(STAGES):
            found = [outcomes[at] for outcomes in self._outcomes.values()]
            if found.count(None) == len(found) or (at == _ANSWER and not self._is_judged):
                continue
            passed_over = [key for key, outcomes in left.items() if outcomes[at] is None]
            not_judged = sum(1 for key in passed_over if key in self._not_judged) if at == _ANSWER else 0
            fell_out = [key for key, outcomes in left.items() if outcomes[at] is False]
            stages.append(
                {
                    "name": name,
                    "entered": len(left),
                    "passed": sum(1 for outcomes in left.values() if outcomes[at]),
                    "passed_over": len(passed_over) - not_judged,
                    "not_judged": not_judged,
                    "fell_out": fell_out,
                }
            )
            for key in fell_out:
                del left[key]
        return {"stages": stages, "questions": len(self._outcomes), "outside": self._outside}


def _outcomes(sample: ReportedSample, config: EvaluationConfig) -> Outcomes | None:
    """Tell which stages a sample passes; None where it has no reference query."""
    groups = sample.result.get("reference_steps") or ()
    diagnoses = sample.result.get("steps_diagnosis") or ()
    steps = [
        (step, diagnosis, is_scored(at, groups, config))
        for at, (group, diagnosed) in enumerate(zip(groups, diagnoses, strict=False))
        for step, diagnosis in zip(group, diagnosed, strict=False)
    ]
    queries = [each for each in steps if is_query(each[0])]
    if not queries:
        return None
    names = {str(step.get("name")) for step, _, _ in queries}
    asked = [step for step in sample.result.get("actual_steps") or () if step_name(step, config) in names]
    valid = [step for step in asked if step.get("status") == "success"]
    is_right = _all(diagnosis["matched"] and diagnosis["score"] == 1.0 for _, diagnosis, counts in queries if counts)
    has_found = _all(
        diagnosis["score"] == 1.0 or _is_used(step.get("output"), asked) for step, diagnosis, _ in steps if is_iri(step)
    )
    return (
        # What the query did not need, the question did not fail at.
        None if is_right and not has_found else has_found,
        bool(valid),
        any(_has_answer(step.get("output")) for step in reversed(valid))
        if any(_has_answer(step.get("output")) for step, _, _ in queries)
        else None,
        is_right,
        sample.answer_right,
    )


def _all(passed: Iterable[bool]) -> bool | None:
    """Tell whether all passed; None where there are none."""
    known = list(passed)
    return all(known) if known else None


def _is_used(iri: Any, queries: Iterable[Mapping[str, Any]]) -> bool:
    """Tell whether an IRI stands in a query, so that the agent has it from wherever."""
    return isinstance(iri, str) and any(holds_whole(args_text(query.get("args")), iri) for query in queries)


def _has_answer(output: Any) -> bool:
    """Tell whether an output is SPARQL results with rows, or the answer of an ASK query."""
    try:
        results = parse_sparql_results(output)
    except UnreadableOutput:
        return False
    return results.boolean is not None or results.row_count > 0


class Matrix:
    """Sets right and wrong steps against right and wrong answers, which shows the lucky ones."""

    def __init__(self) -> None:
        self._keys: dict[tuple[bool, bool], list[str]] = {(a, b): [] for a in (True, False) for b in (True, False)}
        self._is_judged = False
        self._left_out = 0

    def add(self, sample: ReportedSample) -> None:
        """Take up a sample; one of which steps or answer are not scored is in no cell."""
        self._is_judged = self._is_judged or sample.is_judged
        steps, answer = sample.steps_right, sample.answer_right
        if steps is not None and answer is not None:
            self._keys[steps, answer].append(sample.key)
        else:
            self._left_out += 1

    def record(self) -> dict[str, Any] | None:
        """Give the section ``matrix``; None where no answer was judged."""
        if not self._is_judged:
            return None
        words = {True: "right", False: "wrong"}
        cells = {f"{words[steps]}_{words[answer]}": keys for (steps, answer), keys in self._keys.items()}
        right = f"Steps are right where {STEPS_SCORE} is 1, an answer where {ANSWER_F1} is at least"
        return {**cells, "left_out": self._left_out, "threshold_text": f"{right} {ANSWER_THRESHOLD:g}."}
