"""What ``--json`` prints: a run, a comparison or the problems of a dataset as one JSON document with a schema."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.compare import GateResult, RunComparison
from graphrag_eval_lc.compare.comparison_view import PairView, verdict_word
from graphrag_eval_lc.compare.metric_comparison import MetricComparison
from graphrag_eval_lc.compare.runs import run_results
from graphrag_eval_lc.dataset.validation import Problem
from graphrag_eval_lc.masking import masked_values
from graphrag_eval_lc.registry.custom_metrics import recorded_only_here
from graphrag_eval_lc.run_folder import AGGREGATES_FILE, RESPONSES_FILE, RESULTS_FILE, RUN_FILE


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class GateDocument(_Document):
    """A gate and its outcome."""

    state: Literal["passed", "failed", "not checked"]
    """``not checked``: it could not be compared."""
    text: str
    """What was found, for people."""
    run: str | None = None
    """The letter of the run, in a comparison."""
    metric: str | None = None
    """The metric that the gate limits."""
    template: str | None = None
    """The template of the gate; null: all."""
    value: float | None = None
    """What the bound is compared with: a statistic, a drop, an increase or a number; null if it is not finite."""
    bound: float | None = None
    """The highest value that passes; for a lowest mean, the lowest."""


class ScoreDocument(_Document):
    """A score over all questions that have it."""

    mean: float
    """The mean over all questions; failed ones count as 0 (if less is better, as the highest value)."""
    mean_answered: float | None
    """The mean over the questions that were answered."""
    mean_of_templates: float
    """The mean of the templates' means, failed questions as in ``mean``."""
    upper: float | None
    """The mean if all undecided steps matched; null if none is undecided."""
    low: float | None
    """The lower end of the 95 % interval of ``mean``; null if it cannot be computed."""
    high: float | None
    """The upper end."""
    interval_note: str | None
    """Why the interval is missing or may be too narrow."""
    questions: int
    """How many questions have the score."""


class TemplateDocument(_Document):
    """A template of a run."""

    questions: int
    """How many of its questions the run has."""
    errors: int
    """How many samples of these failed."""
    scores: dict[str, float]
    """The mean of each score, failed questions as 0."""


class FailureGroupDocument(_Document):
    """Failures of one kind, which have one cause by the rules of this package."""

    kind: str
    """The kind, such as ``wrong property`` or ``error``."""
    title: str
    """A sentence that distinguishes groups of this kind, without values."""
    count: int
    """How many samples failed so."""
    example: str
    """The reason of the worst one."""
    questions: list[str]
    """Their question ids, the worst first, with `` #`` and the repeat from the second on."""


class ChangesDocument(_Document):
    """What changed since an earlier run."""

    run: str
    """What it is called."""
    broken: list[str]
    """The ids of the questions that were right there only."""
    fixed: list[str]
    """The ids of those that are right here only."""


class RunDocument(_Document):
    """A run that was scored."""

    format_version: Literal[1] = 1
    """Increases if a key is removed or changes its meaning; new keys may be added at any time."""
    kind: Literal["run"] = "run"
    """The kind of the document."""
    path: str | None
    """The run's folder."""
    run_id: str | None
    """The run's id."""
    label: str | None
    """Its label."""
    files: list[str]
    """The files in its folder."""
    headline: str
    """The run in one line."""
    changes: ChangesDocument | None
    """What changed since the baseline or the run before on the same dataset; null if there is none."""
    questions: int
    """How many questions it has."""
    answered: int
    """How many samples were answered."""
    errors: int
    """How many samples failed."""
    states: dict[str, int]
    """How many samples are ``right``, ``partly`` right, ``wrong``, ``undecided``, ``error`` or ``unscored``."""
    scores: dict[str, ScoreDocument]
    """By score, the main one first."""
    templates: dict[str, TemplateDocument]
    """By template id, in the dataset's order."""
    failures: list[FailureGroupDocument]
    """Why samples are not right, the largest group first."""
    totals: dict[str, Any]
    """What the run spent, as in aggregates.yaml."""
    gates: list[GateDocument]
    """The gates that were checked."""
    passed: bool
    """Whether no gate failed, all could be checked, and the run was not stopped."""
    stopped: dict[str, Any] | None
    """``reason``, ``message`` and ``left_out`` of a run that ended early."""
    judges: dict[str, Any] | None
    """The judges' models and metrics, as in run.json."""
    warnings: list[str]
    """What to know about the run."""
    notes: list[str]
    """Which questions were scored, if not all."""


class ComparedRunDocument(_Document):
    """A run of a comparison."""

    letter: str
    """The run's letter in the comparison; A is the baseline."""
    label: str
    """Its label, or the name of its folder."""
    path: str | None
    """Its folder."""
    number_of_questions: int
    """How many questions it has."""
    number_of_samples: int
    """How many results it has."""
    number_of_errors: int
    """How many of these samples failed."""


class MetricDocument(_Document):
    """A metric of a run, compared with the baseline."""

    metric: str
    """The metric."""
    unit: str
    """Its unit."""
    is_main: bool
    """Whether it is the main metric, which was chosen beforehand."""
    is_spent: bool
    """Whether it is tokens, time or cost."""
    lower_is_better: bool
    """Whether less of it is better."""
    number_of_questions: int
    """How many questions have it in both runs."""
    number_of_templates: int
    """How many templates these have."""
    left_out: int
    """How many questions have it in only one of the runs."""
    mean_a: float
    """The mean in A, failed questions as 0."""
    mean_b: float
    """The mean in the other run."""
    difference: float
    """The other run's mean minus that of A."""
    low: float | None
    """The lower end of the difference's interval."""
    high: float | None
    """The upper end."""
    confidence: float
    """The level of the interval; higher than 0.95 for metrics that are adjusted together."""
    p_value: float
    """Its own p-value."""
    adjusted_p_value: float
    """The p-value that decides the verdict."""
    can_tell: bool
    """Whether enough templates differ for a p-value below 0.05."""
    effect_size: float | None
    """The mean difference in standard deviations of the differences."""
    wins: int
    """How many questions are better in the other run."""
    ties: int
    """How many are the same."""
    losses: int
    """How many are worse."""
    verdict: Literal["better", "worse", "the same", "no evidence", "cannot tell"]
    """The verdict on the other run."""
    power: float | None
    """The share of such comparisons in which a drop of 0.05 would be detected."""
    questions_needed_low: int | None
    """How many questions are needed to detect the difference: the lower end of the range."""
    questions_needed_high: int | None
    """The upper end; null: unknown."""
    sentence: str
    """The same as a sentence."""


class FlipDocument(_Document):
    """A question whose main metric changed."""

    question_id: str
    """The question."""
    template_id: str
    """Its template, as A has it."""
    direction: str
    """``now wrong``, ``now right``, ``worse`` or ``better``."""
    score_a: float
    """Its score in A, with repeats their mean."""
    score_b: float
    """Its score in the other run."""
    reason: str | None
    """Why its score in the other run is not the best one."""


class PairDocument(_Document):
    """A run compared with the baseline A."""

    run: str
    """The letter of the run."""
    headline: str
    """The verdict for people: both means, and how many questions are broken and fixed."""
    number_of_questions: int
    """How many questions both have; only these are compared."""
    number_of_templates: int
    """How many templates these have."""
    left_out_a: int
    """How many questions only A has."""
    left_out_b: int
    """How many only the other run has."""
    metrics: list[MetricDocument]
    """The metrics that both have."""
    flips: list[FlipDocument]
    """The questions whose main metric changed, broken ones first."""


class ComparisonDocument(_Document):
    """Runs compared with a baseline."""

    format_version: Literal[1] = 1
    """Increases if a key is removed or changes its meaning; new keys may be added at any time."""
    kind: Literal["comparison"] = "comparison"
    """The kind of the document."""
    metric: str | None
    """The main metric."""
    runs: list[ComparedRunDocument]
    """The runs, the baseline first."""
    pairs: list[PairDocument]
    """Each other run, compared with the baseline."""
    gates: list[GateDocument]
    """The gates that were checked."""
    passed: bool
    """Whether no gate failed and all could be checked."""
    warnings: list[str]
    """Differences that make the runs hard to compare."""


class ProblemDocument(_Document):
    """A mistake in a dataset or in responses."""

    severity: Literal["error", "warning"]
    """``error`` if it cannot be evaluated as intended, otherwise ``warning``."""
    what: str
    """What is wrong."""
    hint: str
    """How to fix it."""
    path: str | None
    """The file."""
    line: int | None
    """The line, from 1."""
    question_id: str | None
    """The question."""
    key: str | None
    """The key, such as ``[0].questions[2].id``."""


class ValidationDocument(_Document):
    """Mistakes in a dataset and in responses to it."""

    format_version: Literal[1] = 1
    """Increases if a key is removed or changes its meaning; new keys may be added at any time."""
    kind: Literal["validation"] = "validation"
    """The kind of the document."""
    errors: int
    """How many problems there are."""
    warnings: int
    """How many warnings."""
    problems: list[ProblemDocument]
    """All of them, in the order of the files."""
    note: str | None
    """Which questions were checked, if not all."""


_DOCUMENTS: Mapping[str, type[_Document]] = {
    "run": RunDocument,
    "comparison": ComparisonDocument,
    "validation": ValidationDocument,
}
DOCUMENT_SCHEMA_PATHS = {name: Path(__file__).parent / "schemas" / f"{name}.schema.json" for name in _DOCUMENTS}


@recorded_only_here()
def run_document(run: BenchmarkRun, gates: Sequence[GateResult]) -> RunDocument:
    """Return a run as ``run --json`` and ``score --json`` print it.

    Args:
        run: The run.
        gates: Its gates, as they were checked.

    Raises:
        RunFolderError: The run's files cannot be read.
    """
    view, record = run.view(), run_results(run).record
    changes = view.headline.changes
    checked = [_gate(gate) for gate in gates]
    return RunDocument(
        path=None if run.output_dir is None else str(run.output_dir),
        run_id=_text(record.get("run_id")),
        label=_text(record.get("label")),
        files=_files(run.output_dir),
        headline=str(view.headline),
        changes=None if changes is None else ChangesDocument(**asdict(changes)),
        questions=view.headline.questions,
        answered=view.headline.samples - view.headline.states.get("error", 0),
        errors=view.headline.states.get("error", 0),
        states={str(state): count for state, count in view.headline.states.items()},
        scores={
            line.metric: ScoreDocument(
                mean=line.mean,
                mean_answered=line.mean_answered,
                mean_of_templates=line.mean_of_templates.every or 0.0,
                upper=line.upper,
                low=line.low,
                high=line.high,
                interval_note=line.interval_note or None,
                questions=line.questions,
            )
            for line in view.scores
        },
        templates={
            line.template_id: TemplateDocument(
                questions=line.questions,
                errors=line.errors,
                scores={metric: score.mean for metric, score in line.scores.items()},
            )
            for line in view.templates
        },
        failures=[
            FailureGroupDocument(
                kind=group.kind, title=group.title, count=group.count, example=group.example, questions=list(group.keys)
            )
            for group in view.groups
        ],
        totals=dict(run.aggregates.get("totals", {})),
        gates=checked,
        passed=_all_passed(checked) and run.stopped is None,
        stopped=None if run.stopped is None else dict(run.stopped),
        judges=None if run.judges is None else masked_values(dict(run.judges)),
        warnings=list(run.warnings),
        notes=list(run.notes),
    )


def comparison_document(comparison: RunComparison, gates: Sequence[GateResult] = ()) -> ComparisonDocument:
    """Return a comparison as ``compare --json`` prints it.

    Args:
        comparison: The comparison.
        gates: Its gates, as they were checked.
    """
    checked, view = [_gate(gate) for gate in gates], comparison.view(gates)
    return ComparisonDocument(
        metric=view.metric,
        runs=[ComparedRunDocument(**asdict(run)) for run in view.runs],
        pairs=[_pair(pair) for pair in view.pairs],
        gates=checked,
        passed=_all_passed(checked),
        warnings=list(view.warnings),
    )


def validation_document(problems: Iterable[Problem], note: str | None = None) -> ValidationDocument:
    """Return what ``validate --json`` prints.

    Args:
        problems: What was found.
        note: Which questions were checked, if not all.
    """
    found = [ProblemDocument(**asdict(problem)) for problem in problems]
    warnings = sum(problem.severity == "warning" for problem in found)
    return ValidationDocument(errors=len(found) - warnings, warnings=warnings, problems=found, note=note)


def document_schema_text(name: str) -> str:
    """Return the JSON Schema (draft 2020-12) of a document as the text of its file.

    Args:
        name: ``run``, ``comparison`` or ``validation``.

    Example:
        >>> '"title": "RunDocument"' in document_schema_text("run")
        True
    """
    schema = _DOCUMENTS[name].model_json_schema(mode="serialization")
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _gate(gate: GateResult) -> GateDocument:
    return GateDocument(
        state=gate.state,
        text=gate.sentence,
        run=gate.letter or None,
        metric=gate.metric or None,
        template=gate.gate.template,
        value=gate.value if gate.value is not None and math.isfinite(gate.value) else None,
        bound=gate.bound,
    )


def _all_passed(gates: Iterable[GateDocument]) -> bool:
    return all(gate.state == "passed" for gate in gates)


def _files(folder: Path | None) -> list[str]:
    if folder is None:
        return []
    names = (RUN_FILE, RESPONSES_FILE, RESULTS_FILE, AGGREGATES_FILE, "report.html")
    return [name for name in names if (folder / name).is_file()]


def _pair(view: PairView) -> PairDocument:
    pair = view.pair
    return PairDocument(
        run=view.letter,
        headline=view.headline,
        number_of_questions=pair.number_of_questions,
        number_of_templates=pair.number_of_templates,
        left_out_a=pair.left_out_a,
        left_out_b=pair.left_out_b,
        metrics=[_metric(metric) for metric in pair.metrics],
        flips=[
            FlipDocument(
                question_id=flip.question_id,
                template_id=flip.template_id,
                direction=flip.direction,
                score_a=flip.score_a,
                score_b=flip.score_b,
                reason=flip.b.reason or None,
            )
            for flip in pair.flips
        ],
    )


def _metric(metric: MetricComparison) -> MetricDocument:
    low, high = metric.interval or (None, None)
    told = {name: getattr(metric, name) for name in MetricDocument.model_fields if hasattr(metric, name)}
    return MetricDocument.model_validate({**told, "low": low, "high": high, "verdict": verdict_word(metric)})


def _text(value: object) -> str | None:
    return None if value is None else str(value)
