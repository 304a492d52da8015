"""What machines read of a run: the documents of ``--json``, and the files of continuous integration."""

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.compare import GateResult, RunComparison
from graphrag_eval_lc.compare.comparison_view import PairView, verdict_word
from graphrag_eval_lc.compare.runs import run_results
from graphrag_eval_lc.dataset.validation import Problem
from graphrag_eval_lc.errors import GraphRAGEvalError, OptionError, cannot_write
from graphrag_eval_lc.files.opening import absolute_path
from graphrag_eval_lc.masking import masked_values
from graphrag_eval_lc.registry.custom_metrics import recorded_only_here
from graphrag_eval_lc.report.junit import write_junit
from graphrag_eval_lc.report.markdown_summary import MOST_BYTES, summary_text, write_summary
from graphrag_eval_lc.run_folder import AGGREGATES_FILE, RESPONSES_FILE, RESULTS_FILE, RUN_FILE

DOCUMENT_SCHEMA_PATHS: Final = {
    name: Path(__file__).parent / "schemas" / f"{name}.schema.json" for name in ("run", "comparison", "validation")
}
Document = dict[str, Any]
_FILES = (RUN_FILE, RESPONSES_FILE, RESULTS_FILE, AGGREGATES_FILE, "report.html")
_OF_SCORES = ("mean", "mean_answered", "mean_of_templates", "upper", "low", "high", "interval_note", "questions")
_OF_METRICS = (
    *("metric", "unit", "is_main", "is_spent", "lower_is_better", "number_of_questions", "number_of_templates"),
    *("left_out", "mean_a", "mean_b", "difference", "low", "high", "confidence", "p_value", "adjusted_p_value"),
    *("can_tell", "effect_size", "wins", "ties", "losses", "verdict", "power", "questions_needed_low"),
    *("questions_needed_high", "sentence"),
)


@recorded_only_here()
def run_document(run: BenchmarkRun, gates: Sequence[GateResult]) -> Document:
    """Return a run as ``run --json`` and ``score --json`` print it, with the results of its gates."""
    view, record = run.view(), run_results(run).record
    states, changes = view.headline.states, view.headline.changes
    scores = {}
    for line in view.scores:
        more = {"mean_of_templates": line.mean_of_templates.every or 0.0, "interval_note": line.interval_note or None}
        scores[line.metric] = {key: more[key] if key in more else getattr(line, key) for key in _OF_SCORES}
    templates = {
        line.template_id: {
            "questions": line.questions,
            "errors": line.errors,
            "scores": {metric: score.mean for metric, score in line.scores.items()},
        }
        for line in view.templates
    }
    failures = [
        {
            **{key: getattr(group, key) for key in ("kind", "title", "count", "example")},
            "questions": list(group.keys),
        }
        for group in view.groups
    ]
    return {
        **_head("run"),
        "path": None if run.output_dir is None else str(run.output_dir),
        **{key: None if record.get(key) is None else str(record[key]) for key in ("run_id", "label")},
        "files": [name for name in _FILES if run.output_dir is not None and (run.output_dir / name).is_file()],
        "headline": str(view.headline),
        "changes": None if changes is None else {key: getattr(changes, key) for key in ("run", "broken", "fixed")},
        "questions": view.headline.questions,
        "answered": view.headline.samples - states.get("error", 0),
        "errors": states.get("error", 0),
        "states": {str(state): count for state, count in states.items()},
        "scores": scores,
        "templates": templates,
        "failures": failures,
        "totals": dict(run.aggregates.get("totals", {})),
        "gates": list(map(_gate, gates)),
        "passed": all(gate.has_passed for gate in gates) and run.stopped is None,
        "stopped": None if run.stopped is None else dict(run.stopped),
        "judges": None if run.judges is None else masked_values(dict(run.judges)),
        "warnings": list(run.warnings),
        "notes": list(run.notes),
    }


def comparison_document(comparison: RunComparison, gates: Sequence[GateResult] = ()) -> Document:
    """Return a comparison as ``compare --json`` prints it, with the results of its gates."""
    view = comparison.view(gates)
    return {
        **_head("comparison"),
        "metric": view.metric,
        "runs": [asdict(run) for run in view.runs],
        "pairs": [_pair(pair) for pair in view.pairs],
        "gates": list(map(_gate, gates)),
        "passed": all(gate.has_passed for gate in gates),
        "warnings": list(view.warnings),
    }


def validation_document(problems: Iterable[Problem], note: str | None = None) -> Document:
    """Return what ``validate --json`` prints; a note says which questions were checked, if not all."""
    found = [{"severity": problem.severity, **asdict(problem)} for problem in problems]
    warnings = sum(problem["severity"] == "warning" for problem in found)
    counts = {"errors": len(found) - warnings, "warnings": warnings}
    return {**_head("validation"), **counts, "problems": found, "note": note}


def _head(kind: str) -> Document:
    return {"format_version": 1, "kind": kind}


def _gate(gate: GateResult) -> Document:
    return {
        "state": gate.state,
        "text": gate.sentence,
        "run": gate.letter or None,
        "metric": gate.metric or None,
        "template": gate.gate.template,
        "value": gate.value if gate.value is not None and math.isfinite(gate.value) else None,
        "bound": gate.bound,
    }


def _pair(view: PairView) -> Document:
    pair, metrics = view.pair, []
    for metric in pair.metrics:
        low, high = metric.interval or (None, None)
        more = {"low": low, "high": high, "verdict": verdict_word(metric)}
        metrics.append({key: more[key] if key in more else getattr(metric, key) for key in _OF_METRICS})
    flips = [
        {
            **{key: getattr(flip, key) for key in ("question_id", "template_id", "direction", "score_a", "score_b")},
            "reason": flip.b.reason or None,
        }
        for flip in pair.flips
    ]
    counts = ("number_of_questions", "number_of_templates", "left_out_a", "left_out_b")
    counted = {key: getattr(pair, key) for key in counts}
    return {"run": view.letter, "headline": view.headline, **counted, "metrics": metrics, "flips": flips}


STEP_SUMMARY: Final = "GITHUB_STEP_SUMMARY"
_NONE: Final = Path("none")


@dataclass(frozen=True, slots=True)
class CiFiles:
    """The files that a command writes for continuous integration, as absolute paths."""

    summary: Path | None = None
    junit: Path | None = None
    step_summary: Path | None = None  # GitHub's job summary, to which the summary is appended
    given: Sequence[Path] = ()  # as the options name them

    @classmethod
    def of(cls, summary: Path | None, junit: Path | None = None) -> "CiFiles":
        """Return the files that a command's options name, and GitHub's job summary unless ``summary`` is ``none``.

        Raises:
            OptionError: A file cannot be written.
        """
        name = os.environ.get(STEP_SUMMARY)
        step_summary = Path(name).absolute() if name and summary != _NONE else None
        given = [path for path in (summary, junit) if path is not None and path != _NONE]
        for path in given:
            check_writable(path)
        # Absolute, because an agent may change the current folder before they are written.
        files = [None if path is None or path == _NONE else absolute_path(path) for path in (summary, junit)]
        if files[0] is not None and step_summary is not None and files[0].resolve() == step_summary.resolve():
            files[0] = None  # the summary is appended, so that what other commands wrote stays
        return cls(files[0], files[1], step_summary, given)

    def write(
        self, run: BenchmarkRun | RunComparison, gates: Sequence[GateResult], *, most_questions: int
    ) -> list[str]:
        """Write the files of a run or a comparison, and return warnings about the job summary.

        Raises:
            RunFolderError: A file that an option names cannot be written.
        """
        warnings = self._add_to_job(run, gates, most_questions)
        for path in (self.summary, self.junit):
            if path is not None:
                make_folder_of(path)
        if self.summary is not None:
            write_summary(run, self.summary, gates=gates, most_questions=most_questions)
        if self.junit is not None and isinstance(run, BenchmarkRun):
            write_junit(run, self.junit, gates=gates)
        return warnings

    def _add_to_job(
        self, run: BenchmarkRun | RunComparison, gates: Sequence[GateResult], most_questions: int
    ) -> list[str]:
        """Append to the job summary; a failure is only a warning, because the user did not request this file."""
        if self.step_summary is None:
            return []
        try:
            taken = self.step_summary.stat().st_size if self.step_summary.exists() else 0
            if taken > MOST_BYTES // 2:
                return [f"the summary of the job is full, nothing was added to {self.step_summary}."]
            text = summary_text(run, gates, most_questions=most_questions, most_bytes=MOST_BYTES - taken)
            with self.step_summary.open("a", encoding="utf-8") as file:
                file.write(f"\n{text}\n" if taken else f"{text}\n")
        except OSError as problem:
            return [f"the summary of the job could not be written: {cannot_write(self.step_summary, problem)}"]
        except GraphRAGEvalError as problem:
            return [f"the summary of the job could not be written: {problem}"]
        return []


def check_writable(path: Path | None) -> None:
    """Refuse a file that cannot be written, before any work is done; its folder need not exist yet.

    Raises:
        OptionError: It cannot be written.
    """
    if path is None:
        return
    if path.is_dir():
        raise OptionError("this is a folder, not a file", path=path, hint="Give the name of a file in it.")
    existing = next(folder for folder in (path, *absolute_path(path).parents) if folder.exists())
    if existing != path and not existing.is_dir():
        raise OptionError(f"{existing} is a file, not a folder", path=path, hint="Give another file.")
    if not os.access(existing, os.W_OK):
        raise OptionError(f"{existing} may not be written", path=path, hint="Give a file where you may write.")


def make_folder_of(path: Path) -> None:
    """Create the folder of a file that is to be written.

    Raises:
        RunFolderError: It cannot be created.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise cannot_write(path, problem) from problem
