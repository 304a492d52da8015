"""All that a report shows of one question when it is opened."""

from collections.abc import Iterator, Mapping
from typing import Any

from graphrag_eval_lc.aggregation.measurements import Metrics
from graphrag_eval_lc.aggregation.sample_values import number
from graphrag_eval_lc.aggregation.totals import failed_attempts_of
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.report.samples import ReportedSample, is_spent
from graphrag_eval_lc.report.side_by_side import extra_steps, step_groups, uses_of
from graphrag_eval_lc.report.texts import shown_name, value_text, without_middle
from graphrag_eval_lc.report.timeline import model_rows, timeline
from graphrag_eval_lc.report.transcript import transcript

_CORRECTNESS = ("answer_recall", "answer_precision", "answer_f1")
_CLAIMS = {
    "supported": "answer_true_positives",
    "wrong": "answer_false_positives",
    "missing": "answer_false_negatives",
}


def detail_of(sample: ReportedSample, config: EvaluationConfig, metrics: Metrics) -> dict[str, Any]:
    """Give the detail of a sample: plain JSON values, all texts to be shown as text."""
    result = sample.result
    groups = step_groups(result, config)
    steps = result.get("actual_steps") or []
    events = timeline(steps)
    for at, use in uses_of(groups).items():
        events[at]["used_for"] = use
    detail: dict[str, Any] = {
        "key": sample.key,
        "question": without_middle(str(result.get("question_text", ""))),
        "template": sample.template_id,
        "status": "error" if sample.has_failed else "success",
        **_texts(result),
        "claims": _claims(result),
        "measures": list(_measures(sample, config, metrics)),
        "failed_attempts": list(_failed_attempts(result)),
        "warnings": [without_middle(str(warning)) for warning in result.get("capture_warnings") or ()],
        "total_sec": number(result.get("elapsed_sec")),
        "stalled_sec": number(result.get("stalled_sec")),
        "total_tokens": number(result.get("total_tokens")),
        "timeline": events,
        "models": model_rows(result.get("llm_calls")),
        "transcript": transcript(result),
        "run_id": None if result.get("run_id") is None else shown_name(result["run_id"]),
        "started_at": None if result.get("started_at") is None else shown_name(result["started_at"]),
        "groups": groups,
        "extra_steps": extra_steps(groups, steps) if groups else [],
        "counts": result.get("steps_counts"),
    }
    return {key: value for key, value in detail.items() if value is not None}


def _texts(result: Mapping[str, Any]) -> dict[str, str]:
    texts = {key: result.get(key) for key in ("error", "reference_answer", "actual_answer")}
    return {key: value_text(value) for key, value in texts.items() if value is not None}


def _claims(result: Mapping[str, Any]) -> dict[str, Any] | None:
    """Give the claims of reference and actual answer as a judge sorted them; None where none did."""
    if not any(isinstance(result.get(key), list) for key in _CLAIMS.values()):
        return None
    claims: dict[str, Any] = {
        name: [without_middle(str(claim)) for claim in result.get(key) or ()] for name, key in _CLAIMS.items()
    }
    reason = result.get("answer_correctness_reason")
    return claims if reason is None else {**claims, "reason": without_middle(str(reason))}


def _measures(sample: ReportedSample, config: EvaluationConfig, metrics: Metrics) -> Iterator[dict[str, Any]]:
    """Give all that was measured of a question, also what its judges failed at."""
    result = sample.result
    prefixes = dict.fromkeys(_CORRECTNESS, "answer_correctness")
    for evaluation in config.custom_evaluations or ():
        prefixes.update(dict.fromkeys(evaluation.outputs, evaluation.name))
    names = [metric for metric in ("steps_score", *metrics.names()) if not is_spent(metric, metrics)]
    told: set[str] = set()
    for metric in dict.fromkeys(names):
        prefix = prefixes.get(metric, metric)
        keys = {"reason": f"{metric}_reason", "error": f"{prefix}_error", "cost": f"{prefix}_cost"}
        beside = {name: result.get(key) for name, key in keys.items() if result.get(key) is not None}
        if prefix in told:  # what several metrics share is told beside the first
            beside = {name: value for name, value in beside.items() if name == "reason"}
        value = result.get(metric)
        if value is not None or "error" in beside:
            told.add(prefix)
            yield {
                "name": shown_name(metric),
                "value": value if number(value) is not None else None if value is None else value_text(value),
                **{name: item if number(item) is not None else value_text(item) for name, item in beside.items()},
            }
    for metric in sample.scores:
        if metric.startswith("retrieval_") and metric not in metrics.names():
            yield {"name": metric, "value": sample.scores[metric]}


def _failed_attempts(result: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for attempt in failed_attempts_of(result):
        steps = attempt.get("actual_steps")
        yield {
            "error": without_middle(str(attempt.get("error") or "failed without a message")),
            "seconds": number(attempt.get("elapsed_sec")),
            "tokens": number(attempt.get("total_tokens")),
            "calls": len(steps) if isinstance(steps, list) else 0,
        }
