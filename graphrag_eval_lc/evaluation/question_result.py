"""Scores one response against its question's reference, without judges, and returns the result."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, cast

from pydantic import ValidationError

from graphrag_eval_lc.answers.checks import CHECKED_KEYS, checks_record
from graphrag_eval_lc.answers.evidence import Evidence
from graphrag_eval_lc.answers.grounding import grounding_record
from graphrag_eval_lc.config import EvaluationConfig, GraphConfig
from graphrag_eval_lc.files.opening import absolute_path
from graphrag_eval_lc.matching import StepDiagnosis, StepsMatch
from graphrag_eval_lc.matching.outputs import UnreadableOutput
from graphrag_eval_lc.matching.retrieval import retrieval_measures
from graphrag_eval_lc.matching.rows.row_steps import REQUIRED_COLUMNS, reference_results
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.matching.steps import match_viewed_steps, scored_groups
from graphrag_eval_lc.records import (
    CHECK_KEYS,
    NO_RESPONSE,
    PAUSED,
    ActualStep,
    Question,
    Response,
    ResponseModel,
    Result,
    Template,
    is_error,
    step_status,
)
from graphrag_eval_lc.registry.metrics import (
    ANSWER_CHECKS,
    ANSWER_GROUNDING,
    ANSWER_VALUES,
    BUILT_IN,
    JUDGES,
    OUTPUTS_CUT,
    RETRIEVAL_IDS,
    RETRIEVAL_TEXT,
    STEPS_COUNTS,
    STEPS_SCORE,
    STEPS_SCORE_UPPER,
    UNDECIDED,
)

# Prefixes of the keys that evaluations add to actual steps.
_OF_EVALUATION = (RETRIEVAL_IDS, RETRIEVAL_TEXT, "output_cut")
# Measured during the agent's run. Costs are not: they follow from the prices.
_MEASURED = tuple(spec.key for spec in BUILT_IN if spec.spent_by == "agent" and spec.unit != "usd")
# Keys of an earlier evaluation, which are not valid for this one.
_NOT_HANDED_THROUGH = frozenset(
    {
        "id",
        "status",
        "error",
        "custom_metrics",
        *(spec.key for spec in BUILT_IN if spec.kind == "count" and spec.counted_in is None),
        *(
            key
            for spec in BUILT_IN
            if {ANSWER_GROUNDING, ANSWER_CHECKS}.intersection(spec.settings)
            for key in spec.keys
        ),
        ANSWER_VALUES,
        *CHECKED_KEYS,
        *(spec.key for spec in BUILT_IN if spec.needs == "reference_steps" and spec.key != STEPS_SCORE),
        *_MEASURED,
        *(key for judge in JUDGES if judge.over == "questions" for key in judge.keys),
    }
)


def evaluate_question(
    template: Template,
    question: Question,
    response: Response | None,
    config: EvaluationConfig,
    *,
    views: StepViews,
    repeat: int | None = None,
) -> Result:
    """Score one response; None counts as an error sample. ``repeat`` is None if each question is asked once.

    The result consists of shallow copies. It has these keys:

    - those of graphrag-eval and of ``Result``;
    - on retrieval steps ``retrieval_ids_…`` and ``retrieval_text_…``;
    - on any step ``output_cut`` (where its output ends early) and ``comparison_error`` (why it cannot be compared);
    - ``steps_diagnosis``: for each reference step the nearest actual step, the reason and the outcome (match, mismatch
      or undecided);
    - ``steps_counts``: steps that match no reference step, repeated calls and failed calls, none of which changes the
      score; undecided reference steps and cut outputs;
    - other keys of the question and the response.
    """
    response, error = _usable(response)
    actual_steps = [_to_score(step) for step in response.get("actual_steps") or ()]
    result: dict[str, Any] = {
        "template_id": str(template["template_id"]),
        "question_id": str(question["id"]),
        "question_text": question["question_text"],
    }
    if "reference_answer" in question:
        result["reference_answer"] = question["reference_answer"]
    groups = question.get("reference_steps")
    if groups is not None:
        result["reference_steps"] = [[dict(step) for step in group] for group in groups]
    if "actual_answer" in response:
        result["actual_answer"] = response["actual_answer"]
    result["actual_steps"] = actual_steps
    result["status"] = "success" if error is None else "error"
    if error is not None:
        result["error"] = error
    matched = None
    if groups:
        matched = match_viewed_steps(groups, actual_steps, config.steps, views)
        _add_scores(result, matched)
        measured = retrieval_measures(matched.retrieval_pairs(), config.retrieval)
        for index, record in measured.of_steps.items():
            actual_steps[index].update(record)  # type: ignore[typeddict-item]
        result.update(measured.of_result)
    result.update({key: response[key] for key in _MEASURED if response.get(key) is not None})  # type: ignore[literal-required]
    if matched is not None and matched.quality is not None:
        result.update(matched.quality.record())
    if matched is not None:
        is_paused = PAUSED in (response.get("capture_warnings") or ())
        result["steps_diagnosis"] = [
            [_diagnosis_record(step, is_paused=is_paused) for step in group] for group in matched.diagnosis
        ]
        _explain_queries(result, config.graph)
        result[STEPS_COUNTS] = {
            "extra": len(matched.extra),
            "repeated": len(matched.repeated),
            "failed": len(matched.failed),
            UNDECIDED: matched.undecided,
            OUTPUTS_CUT: len(matched.cut),
        }
    if error is None and response.get("actual_answer") is not None:
        result.update(_answer_measures(response["actual_answer"], question, actual_steps, matched, config, views))
    for given in (question, response):
        for key, value in given.items():
            if key not in _NOT_HANDED_THROUGH and key not in result:
                result[key] = value
    if repeat is not None:
        result["repeat"] = repeat
    return cast("Result", result)


def _answer_measures(
    answer: Any,
    question: Question,
    steps: Sequence[ActualStep],
    matched: StepsMatch | None,
    config: EvaluationConfig,
    views: StepViews,
) -> dict[str, Any]:
    """Return the keys that compare an answer with the rows that it came from, and with the reference."""
    groups, checks = question.get("reference_steps") or (), config.answer_checks
    infers = checks.infer is not None and matched is not None
    if not (config.answer_grounding.enabled or infers or any(key in question for key in CHECK_KEYS)):
        return {}
    evidence = Evidence(matched.actual_steps if matched is not None else [views.actual_view(step) for step in steps])
    matches, record = [] if matched is None else matched.matches, dict[str, Any]()
    if config.answer_grounding.enabled:
        record = grounding_record(answer, question["question_text"], evidence, [each.actual for each in matches])
    references, fulfilling = [], set()
    for group in scored_groups(groups, config.steps.counted)[-1:] if infers else ():
        for place, step in enumerate(map(views.reference_view, groups[group])):
            if views.kind_of(step).shown_as == "rows":
                with suppress(UnreadableOutput):
                    references.append((reference_results(step), step.get(REQUIRED_COLUMNS)))
                fulfilling |= {each.actual for each in matches if (each.group, each.reference) == (group, place)}
    return record | checks_record(answer, question, evidence, references, fulfilling)


def _usable(response: Response | None) -> tuple[Response, str | None]:
    """Return the part of a response that can be scored, and its error or None."""
    if response is None:
        return {}, NO_RESPONSE
    try:
        ResponseModel.model_validate({"question_id": "-", **response} if isinstance(response, Mapping) else response)
    except ValidationError as problem:
        first = problem.errors()[0]
        key = ".".join(map(str, first["loc"]))
        return {}, f"the response cannot be used: {key + ': ' if key else ''}{first['msg']}"
    error = response.get("error")
    if error is None and is_error(response):
        error = "the agent failed without a message"
    return response, None if error is None else str(error) or "the agent failed without a message"


def _to_score(step: ActualStep) -> ActualStep:
    """Return a copy of a step with a status and without the keys of an earlier evaluation.

    Hand-written steps may lack a status. Steps of recorded runs have the error message in their output.
    """
    copied = cast("ActualStep", {key: value for key, value in step.items() if not key.startswith(_OF_EVALUATION)})
    status = copied.get("status")
    if status == "success":
        return copied
    if status is None:
        copied["status"] = "success" if copied.get("error") is None else "error"
    elif status != "error":
        copied["status"] = step_status(status)
    if copied["status"] == "error" and copied.get("error") is None:
        output = copied.get("output")
        copied["error"] = output if isinstance(output, str) and output else "the call failed without a message"
    return copied


def _add_scores(result: dict[str, Any], matched: StepsMatch) -> None:
    for match in matched.matches:
        identifier = result["actual_steps"][match.actual].get("id")
        reference_step = result["reference_steps"][match.group][match.reference]
        reference_step["matches"] = str(match.actual) if identifier is None else str(identifier)
    for index, reason in matched.unreadable.items():
        result["actual_steps"][index]["comparison_error"] = reason
    if matched.steps_score is not None:
        result[STEPS_SCORE] = matched.steps_score
    if matched.steps_score_upper is not None:
        result[STEPS_SCORE_UPPER] = matched.steps_score_upper
    for index, where in matched.cut.items():
        result["actual_steps"][index]["output_cut"] = where


def _diagnosis_record(step: StepDiagnosis, *, is_paused: bool) -> dict[str, Any]:
    record: dict[str, Any] = {
        "score": step.score,
        "outcome": step.outcome,
        "matched": step.matched,
        "reason": PAUSED if is_paused and step.nearest is None else step.reason,
    }
    if step.nearest is not None:
        record["nearest"] = step.nearest_id if step.nearest_id is not None else str(step.nearest)
    return record


@cache
def _explaining() -> Any:
    """Return the module that explains failed queries; None if the extra ``graph`` is not installed.

    rdflib uses the standard streams and the current folder while it is imported. An agent may have closed or removed
    them: the score is computed all the same.
    """
    if find_spec("rdflib") is None:
        return None
    try:
        return import_module("graphrag_eval_lc.graph.explained")
    except Exception:
        return None


def with_checked_vocabulary(config: EvaluationConfig) -> EvaluationConfig:
    """Return a config with an absolute path to its vocabulary, which an agent's change of folder leaves valid."""
    graph = config.graph
    if graph.vocabulary is None or not graph.explain or (explaining := _explaining()) is None:
        return config
    graph = graph.model_copy(update={"vocabulary": str(absolute_path(graph.vocabulary))})
    explaining.explainer_of(graph)
    return config.model_copy(update={"graph": graph})


def _explain_queries(result: dict[str, Any], config: GraphConfig) -> None:
    """Add explanations of failed queries to the diagnosis."""
    is_any_failed = any(step["outcome"] == "mismatch" for group in result["steps_diagnosis"] for step in group)
    args = (step.get("args") for step in result["actual_steps"])
    has_query = any(isinstance(each, Mapping) and isinstance(each.get("query"), str) for each in args)
    if config.explain and is_any_failed and has_query and (explaining := _explaining()) is not None:
        explaining.explainer_of(config).add_to(result)
