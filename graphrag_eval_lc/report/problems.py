"""What went wrong: a funnel of stages, a matrix of steps against answers, and errors and warnings by kind."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from graphrag_eval_lc.aggregation.sample_values import counts_of
from graphrag_eval_lc.config import EvaluationConfig, Scoring
from graphrag_eval_lc.matching import StepView, UnreadableOutput
from graphrag_eval_lc.matching.iri_discovery import holds_whole
from graphrag_eval_lc.matching.rows import SparqlResults
from graphrag_eval_lc.matching.rows.media_types import actual_results, reference_results
from graphrag_eval_lc.matching.steps import scored_groups
from graphrag_eval_lc.matching.unknown_tools import UnknownTools
from graphrag_eval_lc.registry.metric_spec import error_key
from graphrag_eval_lc.registry.metrics import ANSWER_F1, STEPS_SCORE, UNDECIDED, error_keys, registered_metrics
from graphrag_eval_lc.report.formats import args_text, one_line
from graphrag_eval_lc.report.reported_run import ANSWER_THRESHOLD, ReportedSample
from graphrag_eval_lc.report.steps import is_iri, is_query, step_name, step_views

STAGES = ("IRI found", "query valid", "query non-empty", "rows right", "answer right")
_ROWS, _ANSWER = STAGES.index("rows right"), STAGES.index("answer right")

# Whether a question passes each stage; None where it has no reference for the stage.
Outcomes = Sequence[bool | None]


class Funnel:
    """Counts at which stage questions with a reference query fail.

    Args:
        config: The configuration, for the names of tools and for which groups of steps are scored.
    """

    def __init__(self, config: EvaluationConfig) -> None:
        self._config = config
        self._outcomes: dict[str, Outcomes] = {}
        self._not_judged: set[str] = set()
        self._undecided: set[str] = set()
        self._outside = 0
        self._is_judged = False

    def add(self, sample: ReportedSample) -> None:
        """Add a sample."""
        self._is_judged = self._is_judged or sample.is_judged
        outcomes = _outcomes(sample, self._config)
        if outcomes is None:
            self._outside += 1
        else:
            self._outcomes[sample.key] = outcomes
            if outcomes[_ROWS] is None and dict(counts_of(sample.result)).get(UNDECIDED):
                self._undecided.add(sample.key)
            if sample.answer_right is None and sample.result.get("reference_answer") is not None:
                self._not_judged.add(sample.key)

    def record(self) -> dict[str, Any] | None:
        """Return the section ``funnel``; None where no question has a reference query.

        Each sample that enters a stage passes, falls out, is passed over (it has no reference for the stage, or did
        not need it), at the rows is undecided or, at the answer, is not judged (there is a reference, but no judge gave
        a score).
        """
        if not self._outcomes:
            return None
        stages: list[dict[str, Any]] = []
        left = dict(self._outcomes)
        for at, name in enumerate(STAGES):
            is_known = any(outcomes[at] is not None for outcomes in self._outcomes.values())
            if not is_known or (at == _ANSWER and not self._is_judged):
                continue
            passed_over = {key for key, outcomes in left.items() if outcomes[at] is None}
            not_judged = len(passed_over & self._not_judged) if at == _ANSWER else 0
            undecided = len(passed_over & self._undecided) if at == _ROWS else 0
            fell_out = [key for key, outcomes in left.items() if outcomes[at] is False]
            stages.append(
                {
                    "name": name,
                    "entered": len(left),
                    "passed": len(left) - len(passed_over) - len(fell_out),
                    "passed_over": len(passed_over) - not_judged - undecided,
                    "not_judged": not_judged,
                    **({"undecided": undecided} if undecided else {}),
                    "fell_out": fell_out,
                }
            )
            for key in fell_out:
                del left[key]
        return {"stages": stages, "questions": len(self._outcomes), "outside": self._outside}


def _outcomes(sample: ReportedSample, config: EvaluationConfig) -> Outcomes | None:
    """Return which stages a sample passes; None where it has no reference query."""
    groups = sample.result.get("reference_steps") or ()
    diagnoses = sample.result.get("steps_diagnosis") or ()
    scored = scored_groups(groups, config.steps.counted)
    steps = [
        (step, diagnosis, at in scored)
        for at, (group, diagnosed) in enumerate(zip(groups, diagnoses, strict=False))
        for step, diagnosis in zip(group, diagnosed, strict=False)
    ]
    views = step_views(config)
    queries = [each for each in steps if is_query(each[0], views)]
    if not queries:
        return None
    names = {str(step.get("name")) for step, _, _ in queries}
    asked = [step for step in sample.result.get("actual_steps") or () if step_name(step, config) in names]
    valid = [step for step in asked if step.get("status") == "success"]
    counted = [diagnosis for _, diagnosis, counts in queries if counts]
    certain = [each for each in counted if each.get("outcome") != "undecided"]
    is_right = _all(each["matched"] and each["score"] == 1.0 for each in certain)
    is_open = is_right is not False and len(certain) < len(counted)
    has_found = _all(
        # Where steps are graded, one that was found far down is worth less.
        diagnosis["score"] > 0 or _is_used(step.get("output"), asked)
        for step, diagnosis, _ in steps
        if is_iri(step, views)
    )
    references = [views.reference_view(step) for step, _, _ in queries]
    return (
        # A right query did not need the IRI that was not found.
        None if (is_right or is_open) and not has_found else has_found,
        bool(valid),
        any("output_cut" in step or _gives_answer(views.actual_view(step), references) for step in reversed(valid))
        if any(_has_answer(reference_results, reference) for reference in references)
        else None,
        None if is_open else is_right,
        sample.answer_right,
    )


def _all(passed: Iterable[bool]) -> bool | None:
    """Return whether all passed; None where there are none."""
    known = list(passed)
    return all(known) if known else None


def _is_used(iri: Any, queries: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether a query has an IRI, wherever the agent got it from."""
    return isinstance(iri, str) and any(holds_whole(args_text(query.get("args")), iri) for query in queries)


def _gives_answer(actual: StepView, references: Iterable[StepView]) -> bool:
    """Return whether a step gave rows or the answer to an ASK query, in an evident form or that of some reference."""
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

    def add(self, sample: ReportedSample) -> None:
        """Add a sample; one whose steps or answer are not scored is in no cell."""
        self._is_judged = self._is_judged or sample.is_judged
        steps, answer = sample.steps_right, sample.answer_right
        if steps is not None and answer is not None:
            self._keys[f"{'right' if steps else 'wrong'}_{'right' if answer else 'wrong'}"].append(sample.key)
        else:
            self._left_out += 1

    def record(self) -> dict[str, Any] | None:
        """Return the section ``matrix``; None where no answer was judged."""
        if not self._is_judged:
            return None
        right = f"Steps are right where {STEPS_SCORE} is 1, an answer where {ANSWER_F1} is at least"
        return {**self._keys, "left_out": self._left_out, "threshold_text": f"{right} {ANSWER_THRESHOLD:g}."}


_EXAMPLE = 600
_KIND = 100
_STEP_ERRORS = error_keys("steps")
_CLASS = re.compile(r"([A-Za-z_][\w.]*(?:Error|Exception|Timeout|Interrupt|Exit|Group|Cancelled))(?=[:(\s]|$)")
# What differs between errors of one kind: numbers, ids with digits, and texts in quotes or brackets.
_PARTICULAR = re.compile(r"""\([^()]*\)|'[^']*'|"[^"]*"|\S*\d\S*""")


@dataclass(slots=True)
class _Group:
    example: str
    count: int = 0
    questions: dict[str, None] = field(default_factory=dict)

    def add(self, key: str) -> None:
        self.count += 1
        self.questions[key] = None

    def record(self) -> dict[str, Any]:
        return {"count": self.count, "example": self.example, "questions": list(self.questions)}


class Problems:
    """Groups errors, undecided steps and warnings by kind.

    Args:
        config: The configuration, for the names of custom evaluations.
        functions: The names of the functions that judged.
        reference_names: The names of the dataset's reference steps, beside those that the samples have.
    """

    def __init__(
        self, config: EvaluationConfig, functions: Iterable[str] = (), reference_names: Iterable[str] = ()
    ) -> None:
        custom = [evaluation.name for evaluation in config.custom_evaluations or ()]
        own = dict.fromkeys((*custom, *functions, *registered_metrics()))
        self._error_keys = (*error_keys("questions"), *map(error_key, own))
        self._errors: dict[tuple[str, str], _Group] = {}
        self._scoring: Scoring = config.steps.counted
        self._warnings: dict[str, _Group] = {}
        self._unknown_tools = UnknownTools(config, reference_names)
        self._calling: dict[str, _Group] = {}  # by unknown tool

    def add(self, sample: ReportedSample) -> None:
        """Add a sample."""
        if sample.has_failed:
            error = sample.result.get("error") or "failed without a message"
            self._add("question", kind_of(error), error, sample.key)
        for step in sample.result.get("actual_steps") or ():
            name = one_line(step.get("name"), _KIND)
            if step.get("status") == "error":
                self._add("call", f"{name}: {kind_of(step.get('error'))}", step.get("error"), sample.key)
            elif step.get("comparison_error") is not None:
                why = step["comparison_error"]
                self._add("call", f"{name}: output that cannot be compared", why, sample.key)
            elif step.get("output_cut") is not None:
                self._add("call", f"{name}: output that ends before its end", step["output_cut"], sample.key)
        for name, why in _undecided(sample.result, self._scoring):
            self._add("undecided", f"{one_line(name, _KIND)}: not known whether it fits", why, sample.key)
        for judge, error in _judge_errors(sample.result, self._error_keys):
            self._add("judge", f"{judge}: {kind_of(error)}", error, sample.key)
        for warning in sample.result.get("capture_warnings") or ():
            self._warnings.setdefault(_general(warning), _Group(one_line(warning, _EXAMPLE))).add(sample.key)
        self._add_tools(sample)

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

    def _add_tools(self, sample: ReportedSample) -> None:
        self._unknown_tools.add(sample.result.get("reference_steps"), sample.result)
        tools = {str(step.get("name")) for step in sample.result.get("actual_steps") or ()}
        for tool in tools:
            if not self._unknown_tools.knows(tool):
                self._calling.setdefault(tool, _Group("")).add(sample.key)

    def _tools(self) -> Iterator[dict[str, Any]]:
        for unknown in self._unknown_tools.found():
            keys = dict.fromkeys(key for tool in unknown.tools for key in self._calling[tool].questions)
            group = _Group(one_line(str(unknown), _EXAMPLE), len(keys), keys)
            kind = f"{', '.join(unknown.tools)}: no reference step has that name"
            yield {"where": "name", "kind": one_line(kind, _KIND), **group.record()}

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


def kind_of(error: Any) -> str:
    """Return the kind of an error: the class that its text begins with, else the text without its particulars.

    Example:
        >>> kind_of("ValueError: no row 7"), kind_of("Client error '400' for row 7 of x")
        ('ValueError', 'Client error … for row … of x')
    """
    text = str(error)
    named = _CLASS.match(text)
    return one_line(named[1], _KIND) if named else _general(text)


def _general(text: Any) -> str:
    return one_line(_PARTICULAR.sub("…", one_line(text, 2 * _KIND)), _KIND)


def _judge_errors(result: Mapping[str, Any], keys: Iterable[str]) -> Iterator[tuple[str, str]]:
    for key in keys:
        if isinstance(error := result.get(key), str):
            yield one_line(key.removesuffix("_error"), _KIND), error
    for step in result.get("actual_steps") or ():
        for key, error in step.items():
            if key in _STEP_ERRORS and isinstance(error, str):
                yield key.removesuffix("_error"), error
