"""What went wrong: a funnel of stages, a matrix of steps against answers, and errors and warnings by kind."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from graphrag_eval_lc.aggregation.sample_values import counts_of
from graphrag_eval_lc.config import EvaluationConfig, Scoring
from graphrag_eval_lc.matching import StepView, UnreadableOutput
from graphrag_eval_lc.matching.iri_discovery import place_of
from graphrag_eval_lc.matching.rows import SparqlResults
from graphrag_eval_lc.matching.rows.row_steps import ROWS, actual_results, reference_results
from graphrag_eval_lc.matching.steps import scored_groups
from graphrag_eval_lc.matching.unknown_tools import UnknownTools
from graphrag_eval_lc.registry.metric_spec import error_key
from graphrag_eval_lc.registry.metrics import (
    ANSWER_F1,
    ANSWER_THRESHOLD,
    STEPS_SCORE,
    UNDECIDED,
    error_keys,
    metrics_of_users,
)
from graphrag_eval_lc.report.formats import args_text
from graphrag_eval_lc.report.steps import SampleSteps
from graphrag_eval_lc.texts import one_line
from graphrag_eval_lc.view.failures import kind_of, without_particulars
from graphrag_eval_lc.view.samples import Sample

STAGES = ("IRI found", "a query ran", "a query had rows", "rows right", "answer right")
_ROWS, _ANSWER = STAGES.index("rows right"), STAGES.index("answer right")

# Whether a question passes each stage; None if it has no reference for the stage.
Outcomes = Sequence[bool | None]


class Funnel:
    """Counts at which stage questions with a reference query fail."""

    def __init__(self) -> None:
        self._stages = [_Stage(name) for name in STAGES]
        self._inside = self._outside = 0
        self._is_judged = False

    def add(self, sample: Sample, steps: SampleSteps) -> None:
        """Add a sample with its steps."""
        self._is_judged = self._is_judged or sample.is_judged
        outcomes = _outcomes(sample, steps) if steps.groups else None
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
                    stage.not_judged += at == _ANSWER and sample.result.get("reference_answer") is not None
                    stage.undecided += at == _ROWS and bool(dict(counts_of(sample.result)).get(UNDECIDED))
                elif not outcome:
                    stage.fell_out.append(sample.key)
                    is_in = False

    def record(self) -> dict[str, Any] | None:
        """Return the section ``funnel``; None if no question has a reference query.

        Each sample that enters a stage passes, falls out, is passed over (it has no reference for the stage, or did
        not need it), at the rows is undecided or, at the answer, is not judged (there is a reference, but no judge
        returned a score).
        """
        if not self._inside:
            return None
        known = [stage for stage in self._stages if stage.is_known]
        if known and known[-1].name == STAGES[_ANSWER] and not self._is_judged:
            known.pop()
        stages = [stage.record() for stage in known]
        return {"stages": stages, "questions": self._inside, "outside": self._outside}


@dataclass(slots=True)
class _Stage:
    """A stage of the funnel: how many samples came to it, and what became of them."""

    name: str
    is_known: bool = False
    entered: int = 0
    passed_over: int = 0
    not_judged: int = 0
    undecided: int = 0
    fell_out: list[str] = field(default_factory=list)

    def record(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "entered": self.entered,
            "passed": self.entered - self.passed_over - len(self.fell_out),
            "passed_over": self.passed_over - self.not_judged - self.undecided,
            "not_judged": self.not_judged,
            **({"undecided": self.undecided} if self.undecided else {}),
            "fell_out": self.fell_out,
        }


def _outcomes(sample: Sample, steps: SampleSteps) -> Outcomes | None:
    """Return which stages a sample passes; None if it has no reference query."""
    places = [
        (group, place, diagnosis)
        for group, (references, diagnosed) in enumerate(zip(steps.groups, steps.diagnoses, strict=False))
        for place, (_, diagnosis) in enumerate(zip(references, diagnosed, strict=False))
    ]
    queries = [each for each in places if steps.shown_as(*each[:2]) == "rows"]
    if not queries:
        return None
    names = {str(steps.groups[group][place].get("name")) for group, place, _ in queries}
    asked = [at for at, step in enumerate(steps.actual) if steps.name_of(step) in names]
    valid = [at for at in asked if steps.actual[at].get("status") == "success"]
    counted = [diagnosis for group, _, diagnosis in queries if group in steps.scored]
    certain = [each for each in counted if each.get("outcome") != "undecided"]
    is_right = _all(each["matched"] and each["score"] == 1.0 for each in certain)
    is_open = is_right is not False and len(certain) < len(counted)
    has_found = _all(
        # Where steps are graded, one that was found far down is worth less.
        diagnosis["score"] > 0 or _is_used(steps.groups[group][place].get("output"), (steps.actual[at] for at in asked))
        for group, place, diagnosis in places
        if steps.shown_as(group, place) == "iri"
    )
    return (
        # A right query did not need the IRI that was not found.
        None if (is_right or is_open) and not has_found else has_found,
        bool(valid),
        _is_answered(steps, queries, valid),
        None if is_open else is_right,
        sample.answer_right,
    )


def _is_answered(
    steps: SampleSteps, queries: Sequence[tuple[int, int, Mapping[str, Any]]], valid: Sequence[int]
) -> bool | None:
    """Return whether a query that succeeded returned rows or an answer; None if no reference query does."""
    in_full = [each for each in queries if each[2]["score"] == 1.0 and steps.kind_of(*each[:2]) is ROWS]
    # What has all rows of a reference query has rows. That was read when it was scored, so a value in it is of a row.
    if any('"value"' in str(steps.groups[group][place].get("output")) for group, place, _ in in_full):
        return True
    answering = [each for each in queries if _has_answer(reference_results, steps.reference(*each[:2]))]
    if not answering:
        return None
    if any(each in answering for each in in_full):
        return True
    references = [steps.reference(group, place) for group, place, _ in queries]
    return any(
        "output_cut" in steps.actual[at] or _gives_answer(steps.actual_view(at), references) for at in reversed(valid)
    )


def _all(passed: Iterable[bool]) -> bool | None:
    """Return whether all passed; None if there are none."""
    known = list(passed)
    return all(known) if known else None


def _is_used(iri: Any, queries: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether a query has an IRI, wherever the agent got it from."""
    return isinstance(iri, str) and any(place_of(args_text(query.get("args")), iri) is not None for query in queries)


def _gives_answer(actual: StepView, references: Iterable[StepView]) -> bool:
    """Return whether a step returned rows or an answer to ASK, in an evident form or that of some reference."""
    return any(_has_answer(partial(actual_results, reference=reference), actual) for reference in references)


def _has_answer(read: Callable[[StepView], SparqlResults], step: StepView) -> bool:
    """Return whether the output of a step is rows, or the answer to an ASK query."""
    try:
        results = read(step)
    except UnreadableOutput:
        return False
    return results.boolean is not None or results.row_count > 0


class Matrix:
    """Counts right and wrong steps against right and wrong answers, which shows lucky answers."""

    def __init__(self) -> None:
        words = ("right", "wrong")
        self._keys: dict[str, list[str]] = {f"{steps}_{answer}": [] for steps in words for answer in words}
        self._is_judged = False
        self._left_out = 0

    def add(self, sample: Sample) -> None:
        """Add a sample; one whose steps or answer are not scored is in no cell."""
        self._is_judged = self._is_judged or sample.is_judged
        steps, answer = sample.steps_right, sample.answer_right
        if steps is not None and answer is not None:
            self._keys[f"{'right' if steps else 'wrong'}_{'right' if answer else 'wrong'}"].append(sample.key)
        else:
            self._left_out += 1

    def record(self) -> dict[str, Any] | None:
        """Return the section ``matrix``; None if no answer was judged."""
        if not self._is_judged:
            return None
        right = f"Steps are right where {STEPS_SCORE} is 1, an answer where {ANSWER_F1} is at least"
        return {**self._keys, "left_out": self._left_out, "threshold_text": f"{right} {ANSWER_THRESHOLD:g}."}


_EXAMPLE = 600
_KIND = 100
_STEP_ERRORS = error_keys("steps")


@dataclass(slots=True)
class _Group:
    example: str
    count: int = 0
    questions: list[str] = field(default_factory=list)

    def add(self, key: str) -> None:
        self.count += 1
        if not self.questions or self.questions[-1] != key:  # samples come one after the other
            self.questions.append(key)

    def record(self) -> dict[str, Any]:
        return {"count": self.count, "example": self.example, "questions": self.questions}


class Problems:
    """Groups errors, undecided steps and warnings by kind.

    Args:
        config: The configuration, for the names of custom evaluations.
        functions: The names of the functions that judged.
        reference_names: The names of the dataset's reference steps, in addition to those in the samples.
    """

    def __init__(
        self, config: EvaluationConfig, functions: Iterable[str] = (), reference_names: Iterable[str] = ()
    ) -> None:
        custom = [evaluation.name for evaluation in config.custom_evaluations or ()]
        own = dict.fromkeys((*custom, *functions, *metrics_of_users))
        self._error_keys = (*error_keys("questions"), *map(error_key, own))
        self._errors: dict[tuple[str, str], _Group] = {}
        self._scoring: Scoring = config.steps.counted
        self._warnings: dict[str, _Group] = {}
        self._unknown_tools = UnknownTools(config, reference_names)
        self._calling: dict[str, _Group] = {}  # by unknown tool

    def add(self, sample: Sample) -> None:
        """Add a sample."""
        if sample.has_failed:
            error = sample.result.get("error") or "failed without a message"
            self._add("question", kind_of(error), error, sample.key)
        for step in sample.result.get("actual_steps") or ():
            if step.get("status") == "error":
                self._add_call(step, kind_of(step.get("error")), step.get("error"), sample.key)
            elif step.get("comparison_error") is not None:
                self._add_call(step, "output that cannot be compared", step["comparison_error"], sample.key)
            elif step.get("output_cut") is not None:
                self._add_call(step, "output that ends before its end", step["output_cut"], sample.key)
        for name, why in _undecided(sample.result, self._scoring):
            self._add("undecided", f"{one_line(name, _KIND)}: not known whether it fits", why, sample.key)
        for judge, error in _judge_errors(sample.result, self._error_keys):
            self._add("judge", f"{judge}: {kind_of(error)}", error, sample.key)
        for warning in sample.result.get("capture_warnings") or ():
            self._warnings.setdefault(without_particulars(warning), _Group(one_line(warning, _EXAMPLE))).add(sample.key)
        self._unknown_tools.add(sample.result.get("reference_steps"), sample.result)
        for tool in {str(step.get("name")) for step in sample.result.get("actual_steps") or ()}:
            if not self._unknown_tools.knows(tool):
                self._calling.setdefault(tool, _Group("")).add(sample.key)

    def errors(self) -> list[dict[str, Any]]:
        """Return the section ``errors``: unknown tools, failed questions, calls, undecided steps, judges.

        Of each the most frequent come first.
        """
        order = ("question", "call", "undecided", "judge")
        groups = sorted(self._errors.items(), key=lambda item: (order.index(item[0][0]), -item[1].count))
        errors = [{"where": where, "kind": kind, **group.record()} for (where, kind), group in groups]
        return [*self._tools(), *errors]

    def tool_warnings(self) -> list[str]:
        """Return the warnings about tools whose names no reference step has."""
        return [str(tool) for tool in self._unknown_tools.found()]

    def capture_warnings(self) -> list[dict[str, Any]]:
        """Return the section ``capture_warnings``, the most frequent first."""
        groups = sorted(self._warnings.items(), key=lambda item: -item[1].count)
        return [{"kind": kind, **group.record()} for kind, group in groups]

    def _tools(self) -> Iterator[dict[str, Any]]:
        for unknown in self._unknown_tools.found():
            keys = list(dict.fromkeys(key for tool in unknown.tools for key in self._calling[tool].questions))
            group = _Group(one_line(str(unknown), _EXAMPLE), len(keys), keys)
            kind = f"{', '.join(unknown.tools)}: no reference step has that name"
            yield {"where": "name", "kind": one_line(kind, _KIND), **group.record()}

    def _add_call(self, step: Mapping[str, Any], kind: str, example: Any, key: str) -> None:
        self._add("call", f"{one_line(step.get('name'), _KIND)}: {kind}", example, key)

    def _add(self, where: str, kind: str, example: Any, key: str) -> None:
        self._errors.setdefault((where, kind), _Group(one_line(example, _EXAMPLE))).add(key)


def _undecided(result: Mapping[str, Any], scoring: Scoring) -> Iterator[tuple[str, str]]:
    """Yield the names of the undecided reference steps of scored groups with the reasons."""
    groups, diagnoses = result.get("reference_steps") or (), result.get("steps_diagnosis") or ()
    scored = scored_groups(groups, scoring)
    for at, (group, diagnosed) in enumerate(zip(groups, diagnoses, strict=False)):
        for step, diagnosis in zip(group, diagnosed, strict=False) if at in scored else ():
            if diagnosis.get("outcome") == "undecided":
                yield str(step.get("name")), str(diagnosis.get("reason"))


def _judge_errors(result: Mapping[str, Any], keys: Iterable[str]) -> Iterator[tuple[str, str]]:
    for key in keys:
        if isinstance(error := result.get(key), str):
            yield one_line(key.removesuffix("_error"), _KIND), error
    for step in result.get("actual_steps") or ():
        for key, error in step.items():
            if key in _STEP_ERRORS and isinstance(error, str):
                yield key.removesuffix("_error"), error
