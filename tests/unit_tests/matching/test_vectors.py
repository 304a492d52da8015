"""Outcomes of steps, comparisons and hints for the inputs in ``vectors``.

Outcomes omit empty values and the reasons of rows and unreadable outputs. After an intended change, run
``python tests/unit_tests/matching/test_vectors.py`` to write the current outcomes to the files.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.config import (
    EvaluationConfig,
    OutputConfig,
    RetrievalConfig,
    RowsConfig,
    SparqlConfig,
    StepsConfig,
)
from graphrag_eval_lc.matching import BUILT_IN, StepView, match_steps
from graphrag_eval_lc.matching.matchers import comparison_of
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.matching.unknown_tools import UnknownTools

KINDS = {kind.key: kind for kind in BUILT_IN}


PATHS = sorted(Path(__file__).with_name("vectors").glob("*.jsonl"))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_outcomes_match_the_recorded_ones(path: Path) -> None:
    records = list(map(json.loads, path.read_text(encoding="utf-8").splitlines()))
    outcomes = [f"{record['what']}: {rounded(outcome_of(record))}" for record in records]
    assert outcomes == [f"{record['what']}: {rounded(record['outcome'])}" for record in records]


def rounded(value: Any) -> Any:
    """Return a value as JSON, rounded to nine digits."""
    return json.loads(json.dumps(value), parse_float=lambda text: round(float(text), 9))


def outcome_of(record: dict[str, Any]) -> Any:
    if record["op"] == "steps":
        return _outcome_of_steps(record)
    if record["op"] == "unknown_tools":
        tools = UnknownTools(EvaluationConfig.model_validate(record["config"]), record["names"])
        for groups, response in record["added"]:
            tools.add(groups, response)
        return [[list(tool.tools), tool.suggestion, str(tool)] for tool in tools.found()]
    views = StepView(record["reference"]), StepView(record["actual"])
    compared = comparison_of(KINDS[record["kind"]].matcher, *views)
    outcome = {"score": compared.score, "grade": compared.worth, "outcome": compared.outcome}
    return outcome | ({} if compared.unreadable or compared.cut else {"reason": compared.reason()})


def _outcome_of_steps(record: dict[str, Any]) -> dict[str, Any]:
    options = _options(record["options"])
    match = match_steps(record["reference_steps"], record["actual_steps"], **options)
    steps = StepsConfig(names=options.get("names") or {}, kinds=options.get("kinds") or {})
    views = StepViews(steps, retrieval=options.get("retrieval"))
    references = [step for group in record["reference_steps"] for step in group]
    diagnosed = []
    for reference, step in zip(references, [step for group in match.diagnosis for step in group], strict=True):
        compares_rows = views.kind_of(views.reference_view(reference)).key == "rows"
        has_reason = step.nearest is None or not (compares_rows or step.nearest in (*match.unreadable, *match.cut))
        found = {"nearest": step.nearest, "score": step.score, "outcome": step.outcome, "matched": step.matched}
        diagnosed.append(found | ({"reason": step.reason} if has_reason else {}))
    quality = match.quality
    found = {
        "score": match.steps_score,
        "upper": match.steps_score_upper,
        "undecided": match.undecided,
        "matches": [[each.group, each.reference, each.actual, each.score] for each in match.matches],
        "diagnosis": diagnosed,
        "unreadable": list(match.unreadable),
        "cut": list(match.cut),
        "extra": match.extra,
        "repeated": match.repeated,
        "failed": match.failed,
        "retrieved": [pair.position for pair in match.retrieval_pairs()],
        "quality": None if quality is None else [quality.recall, quality.precision, quality.f1, quality.order],
    }
    return {key: value for key, value in found.items() if value not in (None, [], 0) or key == "score"}


def _options(recorded: dict[str, Any]) -> dict[str, Any]:
    options = dict(recorded)
    for key, section in {"sparql": SparqlConfig, "retrieval": RetrievalConfig, "rows": RowsConfig}.items():
        if options.get(key) is not None:
            options[key] = section.model_validate(options[key])
    outputs = options.get("outputs") or {}
    return options | {"outputs": {name: OutputConfig(**each) for name, each in outputs.items()}}


if __name__ == "__main__":
    for path in PATHS:
        records = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        lines = [json.dumps({**record, "outcome": outcome_of(record)}, ensure_ascii=False) for record in records]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
