"""What went wrong: a funnel of stages, a matrix of steps against answers, and errors and warnings by kind."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from graphrag_eval_lc.aggregation.sample_values import counts_of, number
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.matching import UnreadableOutput
from graphrag_eval_lc.matching.iri_discovery import place_of
from graphrag_eval_lc.matching.rows.row_steps import ROWS, actual_results, reference_results
from graphrag_eval_lc.matching.unknown_tools import UnknownTools
from graphrag_eval_lc.registry.metric_spec import error_key
from graphrag_eval_lc.registry.metrics import (
    ANSWER_F1,
    ANSWER_THRESHOLD,
    STEPS_SCORE,
    STEPS_SCORE_UPPER,
    UNDECIDED,
    error_keys,
    metrics_of_users,
)
from graphrag_eval_lc.report.formats import args_text
from graphrag_eval_lc.report.steps import ReferenceStep, SampleSteps
from graphrag_eval_lc.texts import one_line
from graphrag_eval_lc.view.failures import kind_of, without_particulars
from graphrag_eval_lc.view.samples import SeenSample

STAGES: Final = ("IRI found", "a query ran", "a query had rows", "rows right", "answer right")
_ROWS, _ANSWER = STAGES.index("rows right"), STAGES.index("answer right")
# Query results in JSON whose first row has a value; any other output has to be parsed.
_FIRST_VALUE: Final = re.compile(r'"bindings"\s*:\s*\[\s*\{\s*"')

# Whether a question passes each stage; None if it has no reference for the stage.
Outcomes = Sequence[bool | None]


@dataclass(slots=True)
class _Stage:
    """A stage of the funnel: how many samples reached it, and their outcomes."""

    name: str
    is_known: bool = False
    entered: int = 0
    passed_over: int = 0
    not_judged: int = 0
    undecided: int = 0
    fell_out: list[str] = field(default_factory=list)


class Funnel:
    """Counts at which stage questions with a reference query fail, and whether steps and answers are right."""

    def __init__(self) -> None:
        self._stages = [_Stage(name) for name in STAGES]
        self._inside = self._outside = 0
        self._is_judged = False
        words = ("right", "wrong")
        self._matrix: dict[str, list[str]] = {f"{steps}_{answer}": [] for steps in words for answer in words}
        self._left_out = 0  # of the matrix

    def add(self, sample: SeenSample, steps: SampleSteps) -> None:
        """Add a sample with its steps."""
        result = sample.result
        score, upper, answer = (
            None if (given := result.get(key)) is None else number(given)
            for key in (STEPS_SCORE, STEPS_SCORE_UPPER, ANSWER_F1)
        )
        is_open = score is not None and upper is not None and score < 1.0 <= upper  # by undecided steps
        answer_right = None if answer is None else answer >= ANSWER_THRESHOLD
        if sample.has_failed:
            answer_right = None if result.get("reference_answer") is None else False
        elif answer is not None:
            self._is_judged = True
        if score is None or is_open or answer_right is None:
            self._left_out += 1
        else:
            words = ("right" if is_right else "wrong" for is_right in (score >= 1.0, answer_right))
            self._matrix["_".join(words)].append(sample.key)
        outcomes = _outcomes(steps, answer_right)
        if outcomes is None:
            self._outside += 1
            return
        self._inside += 1
        is_in = True
        for at, (stage, outcome) in enumerate(zip(self._stages, outcomes, strict=True)):
            stage.is_known = stage.is_known or outcome is not None
            if is_in:
                stage.entered += 1
                if outcome is None:
                    stage.passed_over += 1
                    stage.not_judged += at == _ANSWER and result.get("reference_answer") is not None
                    stage.undecided += at == _ROWS and bool(counts_of(result).get(UNDECIDED))
                elif not outcome:
                    stage.fell_out.append(sample.key)
                    is_in = False

    def record(self) -> dict[str, Any] | None:
        """Return the section ``funnel``; None if no question has a reference query.

        Each sample that enters a stage passes it, drops out, or skips it (it has no reference for the stage, or did
        not need it). At the rows it may also be undecided. At the answer it may also be unjudged (there is a
        reference, but no judge returned a score).
        """
        if not self._inside:
            return None
        known = [stage for stage in self._stages if stage.is_known]
        if known and known[-1].name == STAGES[_ANSWER] and not self._is_judged:
            known.pop()
        stages = [
            {
                "name": stage.name,
                "entered": stage.entered,
                "passed": stage.entered - stage.passed_over - len(stage.fell_out),
                "passed_over": stage.passed_over - stage.not_judged - stage.undecided,
                "not_judged": stage.not_judged,
                **({"undecided": stage.undecided} if stage.undecided else {}),
                "fell_out": stage.fell_out,
            }
            for stage in known
        ]
        return {"stages": stages, "questions": self._inside, "outside": self._outside}

    def matrix(self) -> dict[str, Any] | None:
        """Return the section ``matrix``, judged questions by steps and answer; None if no answer was judged."""
        if not self._is_judged:
            return None
        right = f"Steps are right where {STEPS_SCORE} is 1, an answer where {ANSWER_F1} is at least"
        return {**self._matrix, "left_out": self._left_out, "threshold_text": f"{right} {ANSWER_THRESHOLD:g}."}


def _outcomes(steps: SampleSteps, answer_right: bool | None) -> Outcomes | None:
    """Return which stages a sample passes; None if it has no reference query."""
    references = [each for each in steps.references if each.diagnosis]
    queries = [each for each in references if each.shown_as == "rows"]
    if not queries:
        return None
    names = {str(each.step.get("name")) for each in queries}
    asked = [at for at, step in enumerate(steps.actual) if steps.name_of(step) in names]
    valid = [at for at in asked if steps.actual[at].get("status") == "success"]
    counted = [each.diagnosis for each in queries if each.is_scored]
    certain = [each for each in counted if each.get("outcome") != "undecided"]
    is_right = all(each["matched"] and each["score"] == 1.0 for each in certain) if certain else None
    is_open = is_right is not False and len(certain) < len(counted)

    def has_iri(iri: Any) -> bool:  # wherever the agent found it
        texts = (args_text(steps.actual[at].get("args")) for at in asked)
        return isinstance(iri, str) and any(place_of(text, iri) is not None for text in texts)

    # If steps are graded, an IRI that was found far down the list scores less.
    found = [
        each.diagnosis["score"] > 0 or has_iri(each.step.get("output")) for each in references if each.shown_as == "iri"
    ]
    has_found = all(found) if found else None
    return (
        # A right query did not need the IRI that was not found.
        None if (is_right or is_open) and not has_found else has_found,
        bool(valid),
        _is_answered(steps, queries, valid),
        None if is_open else is_right,
        answer_right,
    )


def _is_answered(steps: SampleSteps, queries: Sequence[ReferenceStep], valid: Sequence[int]) -> bool | None:
    """Return whether a query that succeeded returned rows or an answer; None if no reference query does."""
    answering = [each for each in queries if _has_answer(each)]
    if not answering:
        return None
    # A query with all rows of a reference query has rows.
    if any(each.kind is ROWS and each.diagnosis["score"] == 1.0 for each in answering):
        return True
    return any(
        "output_cut" in steps.actual[at] or any(_has_answer(each, steps, at) for each in queries)
        for at in reversed(valid)
    )


def _has_answer(reference: ReferenceStep, steps: SampleSteps | None = None, at: int = 0) -> bool:
    """Return whether the output of a reference step, or of an actual one read like it, is rows or an answer to ASK."""
    output = reference.step.get("output") if steps is None else steps.actual[at].get("output")
    if isinstance(output, str) and _FIRST_VALUE.search(output):
        return True
    try:
        view = reference.view
        results = reference_results(view) if steps is None else actual_results(steps.actual_view(at), view)
        return results.row_count > 0 or results.boolean is not None
    except UnreadableOutput:
        return False


_EXAMPLE, _KIND = 600, 100
_STEP_ERRORS: Final = error_keys("steps")
_ORDER: Final = ("question", "call", "undecided", "judge")
_OF_CALLS: Final = {
    "comparison_error": "output that cannot be compared",
    "output_cut": "output that ends before its end",
}


class Problems:
    """Groups errors, undecided steps and warnings by kind.

    ``functions`` are the names of the functions that judged, ``reference_names`` those of the dataset's reference
    steps, in addition to those in the samples.
    """

    def __init__(
        self, config: EvaluationConfig, functions: Iterable[str] = (), reference_names: Iterable[str] = ()
    ) -> None:
        custom = [evaluation.name for evaluation in config.custom_evaluations or ()]
        own = dict.fromkeys((*custom, *functions, *metrics_of_users))
        self._error_keys = (*error_keys("questions"), *map(error_key, own))
        self._groups: dict[tuple[str, str], dict[str, Any]] = {}
        self.unknown_tools = UnknownTools(config, reference_names)
        self._calling: dict[str, list[str]] = {}  # by unknown tool

    def add(self, sample: SeenSample, steps: SampleSteps) -> None:
        """Add a sample with its steps."""
        key = sample.key
        for where, kind, example in self._found(sample, steps):
            group = self._groups.setdefault(
                (where, kind), {"count": 0, "example": one_line(example, _EXAMPLE), "questions": []}
            )
            group["count"] += 1
            if group["questions"][-1:] != [key]:  # samples come one after the other
                group["questions"].append(key)
        self.unknown_tools.add(steps.groups, sample.result)
        for tool in {str(step.get("name")) for step in steps.actual}:
            if not self.unknown_tools.knows(tool):
                self._calling.setdefault(tool, []).append(key)

    def _found(self, sample: SeenSample, steps: SampleSteps) -> Iterator[tuple[str, str, Any]]:
        """Yield where something is wrong, its kind, and the text of this example."""
        result = sample.result
        if sample.has_failed:
            error = result.get("error") or "failed without a message"
            yield "question", kind_of(error), error
        for step in steps.actual:
            name = step.get("name")
            if step.get("status") == "error":
                yield "call", f"{one_line(name, _KIND)}: {kind_of(step.get('error'))}", step.get("error")
            else:
                for key, kind in _OF_CALLS.items():
                    if key in step and step[key] is not None:
                        yield "call", f"{one_line(name, _KIND)}: {kind}", step[key]
                        break
            for key in _STEP_ERRORS:
                if key in step and isinstance(error := step[key], str):
                    yield "judge", f"{key.removesuffix('_error')}: {kind_of(error)}", error
        for each in steps.references:
            if each.is_scored and each.diagnosis.get("outcome") == "undecided":
                kind = f"{one_line(each.step.get('name'), _KIND)}: not known whether it fits"
                yield "undecided", kind, each.diagnosis.get("reason")
        for key in self._error_keys:
            if key in result and isinstance(error := result[key], str):
                yield "judge", f"{one_line(key.removesuffix('_error'), _KIND)}: {kind_of(error)}", error
        for warning in result.get("capture_warnings") or ():
            yield "warning", without_particulars(warning), warning

    def errors(self) -> list[dict[str, Any]]:
        """Return the section ``errors``: unknown tools, failed questions, calls, undecided steps, judges."""
        tools = []
        for unknown in self.unknown_tools.found():
            if not unknown.tools:  # no call was recorded, which the report says at its top
                continue
            keys = list(dict.fromkeys(key for tool in unknown.tools for key in self._calling[tool]))
            kind = one_line(f"{', '.join(unknown.tools)}: no reference step has that name", _KIND)
            group = {"count": len(keys), "example": one_line(str(unknown), _EXAMPLE), "questions": keys}
            tools.append({"where": "name", "kind": kind, **group})
        return [*tools, *(each for where in _ORDER for each in self.of(where))]

    def of(self, wanted: str) -> list[dict[str, Any]]:
        """Return the groups of one place, such as ``warning`` for what the capture warned of, the largest first."""
        found = [{"where": where, "kind": kind, **of} for (where, kind), of in self._groups.items() if where == wanted]
        return sorted(found, key=lambda group: -group["count"])
