"""A run as JUnit XML: a test case for each question, and one for each gate."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from graphrag_eval_lc import __version__
from graphrag_eval_lc.aggregation.sample_values import number
from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.compare import GateResult
from graphrag_eval_lc.compare.runs import RunSource
from graphrag_eval_lc.config import RepeatsConfig
from graphrag_eval_lc.files.writing import replace_file
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.registry.custom_metrics import recorded_only_here
from graphrag_eval_lc.registry.exporters import JUNIT
from graphrag_eval_lc.registry.metric_spec import REASON_ENDING, reason_key
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC, metric_spec
from graphrag_eval_lc.report.formats import amount_text
from graphrag_eval_lc.report.reported_run import ReportedRun, reported_run
from graphrag_eval_lc.run_store.stored_runs import part_of
from graphrag_eval_lc.texts import one_line, shortened, shown_name, visible
from graphrag_eval_lc.view.failures import kind_of, why
from graphrag_eval_lc.view.run_view import RunSummary
from graphrag_eval_lc.view.samples import SeenSample, Verdict, seen_samples
from graphrag_eval_lc.view.scores import passing_sign

# The outcomes of a sample or a question, the worst first. A question has the outcome of its worst sample.
ERROR, FAILURE, SKIPPED, PASSED = range(4)
_TAGS: Final = {ERROR: "error", FAILURE: "failure", SKIPPED: "skipped", PASSED: "system-out"}
_WORDS: Final = {ERROR: "failed", FAILURE: "did not pass", SKIPPED: "was not measured"}
_GATE_STATES: Final = {"passed": PASSED, "failed": FAILURE, "not checked": SKIPPED}

_MESSAGE, _PART, _LINE = 400, 2_000, 600
# GitLab accepts files of less than 30 MB.
_MOST_BYTES_OF_TEXTS = 12_000_000
_LEFT_OUT = "The text is left out, as the file would be too large; the question is in results.jsonl."
# Characters that XML 1.0 forbids, other than those that ``visible`` already replaces by their codes.
_FORBIDDEN = re.compile("[\ufffe\uffff]")


@recorded_only_here()
def write_junit(
    run: RunSource, path: str | PathLike[str] | None = None, *, gates: Sequence[GateResult] | None = None
) -> Path:
    """Write a run as JUnit XML, for the test views of continuous integration.

    Each question is a test case, whose class is the template. It passes if its score ``repeats.metric`` of the
    configuration (``steps_score``) reaches ``repeats.threshold`` (1), and is a failure if it does not. It is an error
    if the agent failed or returned no response, and skipped if it has no such score. A question that was sent several
    times has the outcome of its worst sample. The message of a failure has the score and why it is not better; its
    text has all scores with the judges' reasons, and the answer. The gates are cases of a second suite. The file is
    valid for both of Jenkins' schemas.

    Args:
        run: The folder of a run, what ``run_benchmark``, ``score_run`` or ``load_run`` returned, or a list of results.
        path: The file; None for ``junit.xml`` in the run's folder. An existing one is replaced as a whole.
        gates: The gates as they were checked; None: those of the run's configuration.

    Returns:
        The file's path.

    Raises:
        RunFolderError: The run cannot be read, or the file cannot be written.
        OptionError: No path is given for a run without a folder.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> results = [{"template_id": "t", "question_id": "q", "question_text": "?", "steps_score": 0.5}]
        >>> with TemporaryDirectory() as folder:
        ...     text = write_junit(results, f"{folder}/junit.xml").read_text(encoding="utf-8")
        >>> 'message="steps_score 0.500 (≥ 1 passes)"' in text
        True
    """
    reported = reported_run(run)
    if isinstance(run, BenchmarkRun) and run.output_dir is None and run.config is not None:
        reported = replace(reported, config=run.config)
    target = Path(path) if path is not None else reported.file_of(JUNIT)
    checked = reported.checked_gates() if gates is None else gates
    cases = _Cases(reported.config.repeats)
    properties = _added(cases, reported)
    suites = [_suite(reported.title, cases.by_id.values(), properties)]
    if checked:
        suites.append(_suite("gates", map(_gate_case, checked), {}))
    root = ElementTree.Element("testsuites", {"name": _allowed(reported.title), **_counts(suites)})
    root.extend(suites)
    ElementTree.indent(root, "")
    replace_file(target, [ElementTree.tostring(root, "UTF-8", xml_declaration=True)])
    return target


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is kept of a sample: its outcome, its repeat, and its texts."""

    state: int
    repeat: int
    message: str
    kind: str
    text: str

    def of_repeats(self) -> str:
        if self.state == PASSED:
            return f"Repeat {self.repeat} passed: {self.text}"
        return f"Repeat {self.repeat} {_WORDS[self.state]}:\n{self.text}"


@dataclass(slots=True)
class _Case:
    """A test case: its class, its name, how long it took, and its samples."""

    group: str
    name: str
    seconds: float = 0.0
    samples: list[_Kept] = field(default_factory=list)

    def element(self, name: str) -> ElementTree.Element:
        samples = sorted(self.samples, key=lambda kept: kept.repeat)
        worst = min(samples, key=lambda kept: kept.state)
        message, text = worst.message, worst.text
        if len(samples) > 1:
            passed = sum(kept.state == PASSED for kept in samples)
            message = f"{passed} of {len(samples)} repeats passed; repeat {worst.repeat}: {worst.message}"
            text = ("\n" if worst.state == PASSED else "\n\n").join(kept.of_repeats() for kept in samples)
        names = {"classname": self.group, "name": name, "time": f"{self.seconds:.3f}"}
        case = ElementTree.Element("testcase", {key: _allowed(value) for key, value in names.items()})
        if worst.state == PASSED and not text:
            return case
        outcome = ElementTree.SubElement(case, _TAGS[worst.state])
        # Skipped has no attributes in the older of Jenkins' schemas.
        outcome.text = _allowed(message if worst.state == SKIPPED else text)
        if worst.state in (ERROR, FAILURE):
            outcome.attrib |= {"message": _allowed(message), "type": _allowed(worst.kind)}
        return case


class _Cases:
    """The questions of a run as cases; results are added one at a time, and only their texts are kept."""

    def __init__(self, config: RepeatsConfig) -> None:
        self.by_id: dict[str, _Case] = {}
        self._config = config
        self._left = _MOST_BYTES_OF_TEXTS

    def add(self, sample: SeenSample, verdict: Verdict) -> None:
        result, identifier = sample.result, sample.question_id
        case = self.by_id.setdefault(identifier, _Case(sample.template_id, shown_name(identifier)))
        case.seconds += max(0.0, number(result.get(ELAPSED_SEC)) or 0.0)
        is_passing = PASSED if verdict.state == "right" else FAILURE
        state = ERROR if verdict.state == "error" else is_passing if verdict.metric == self._config.metric else SKIPPED
        reason = why(result, verdict)
        text = self._text(sample, state, reason)
        self._left -= len(text.encode("utf-8"))
        kind = kind_of(result.get("error")) if state == ERROR else self._config.metric
        message = one_line(self._message(state, verdict, reason), _MESSAGE)
        case.samples.append(_Kept(state, sample.repeat, message, kind, text if self._left >= 0 else _LEFT_OUT))

    def _message(self, state: int, verdict: Verdict, reason: str) -> str:
        metric = self._config.metric
        if state == ERROR:
            return reason
        if state == SKIPPED or verdict.score is None:
            return f"{metric} was not measured"
        score_text = f"{metric} {amount_text(verdict.score, metric_spec(metric).unit)}"
        if state == PASSED:
            return score_text
        passing = f"{passing_sign(metric)} {self._config.threshold:g} passes"
        return f"{score_text} ({passing}){f': {reason}' if reason else ''}"

    def _text(self, sample: SeenSample, state: int, reason: str) -> str:
        """Return the text on a sample; if it passed, only its scores."""
        result = sample.result
        scores = [f"{name} {amount_text(value, metric_spec(name).unit)}" for name, value in sample.scores.items()]
        if state == PASSED:
            return one_line(", ".join(scores), _LINE)
        # Several scores of a judge have one reason.
        reasons = dict.fromkeys(metric_spec(metric).reason_key or reason_key(metric) for metric in sample.scores)
        answers = {"Answer": result.get("actual_answer"), "Reference answer": result.get("reference_answer")}
        parts = [
            *scores,
            *(
                f"{shown_name(key.removesuffix(REASON_ENDING))}: {one_line(result[key], _LINE)}"
                for key in reasons
                if result.get(key) is not None
            ),
            f"Why: {reason}" if reason and state != SKIPPED else "",
            f"Question: {one_line(result.get('question_text', ''), _PART)}",
            *(
                f"{name}: {shortened(str(text), _PART, keeps_lines=True, counts_rest=True)}"
                for name, text in answers.items()
                if text is not None
            ),
        ]
        return visible("\n".join(filter(None, parts)))


def _gate_case(gate: GateResult) -> _Case:
    gate_text = masked_text(str(gate))
    kept = _Kept(_GATE_STATES[gate.state], 1, one_line(gate_text, _MESSAGE), "gate", gate_text)
    return _Case("gates", shown_name(gate.title), samples=[kept])


def _added(cases: _Cases, run: ReportedRun) -> dict[str, str]:
    """Add a run's samples to the cases, and return the properties of the suite."""
    seen = RunSummary(run.config, run.metrics(), most_failures=0)
    for sample in seen_samples(run.results, seen.metrics):
        verdict, _ = seen.add(sample)
        cases.add(sample, verdict)
    view, record = seen.view(earlier=run.earlier()), run.record
    properties: dict[str, Any] = {
        "graphrag-eval-lc": __version__,
        "run_id": record.get("run_id"),
        "commit": part_of(record, "git").get("commit"),
        "dataset": part_of(record, "dataset").get("path"),
        "stopped": part_of(record, "stopped").get("message"),
        "headline": str(view.headline),
        "questions": view.headline.questions,
        "samples": view.headline.samples,
        "errors": view.headline.states.get("error", 0),
    }
    for line in view.scores:
        known = {"": line.mean, ".low": line.low, ".high": line.high, ".answered": line.mean_answered}
        properties |= {f"{line.metric}{ending}": value for ending, value in known.items()}
    properties |= {f"{key}.sum": value for key, value in view.totals.items() if metric_spec(key).is_spent}
    return {
        name: format(value, ".6g") if isinstance(value, float) else one_line(value, _MESSAGE)
        for name, value in properties.items()
        if value is not None
    }


def _suite(name: str, cases: Iterable[_Case], properties: Mapping[str, str]) -> ElementTree.Element:
    suite = ElementTree.Element("testsuite", {"name": _allowed(name)})
    if properties:
        parent = ElementTree.SubElement(suite, "properties")
        for key, value in properties.items():
            ElementTree.SubElement(parent, "property", {"name": _allowed(key), "value": _allowed(value)})
    taken = Counter[tuple[str, str]]()
    for case in cases:
        taken[case.group, case.name] += 1
        count = taken[case.group, case.name]
        suite.append(case.element(case.name if count == 1 else f"{case.name} ({count})"))
    suite.attrib |= {**_counts([suite]), "skipped": str(len(suite.findall("testcase/skipped")))}
    return suite


def _counts(suites: Iterable[ElementTree.Element]) -> dict[str, str]:
    """Return the totals over suites; the schema has no total of skipped cases."""
    cases = [case for suite in suites for case in suite.iter("testcase")]
    tags = Counter(each.tag for case in cases for each in case)
    seconds = sum(float(case.get("time", 0)) for case in cases)
    known = {"tests": len(cases), "failures": tags["failure"], "errors": tags["error"]}
    return {**{key: str(value) for key, value in known.items()}, "time": f"{seconds:.3f}"}


def _allowed(text: str) -> str:
    return _FORBIDDEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", visible(text))
