"""A run as JUnit's XML: a test case for each question, and one for each gate."""

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Final
from xml.sax.saxutils import escape

from graphrag_eval_lc import __version__
from graphrag_eval_lc.aggregation.sample_values import number
from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.compare import GateResult
from graphrag_eval_lc.compare.runs import RunSource
from graphrag_eval_lc.config import RepeatsConfig
from graphrag_eval_lc.errors import cannot_write
from graphrag_eval_lc.files.writing import json_line, replace_file
from graphrag_eval_lc.json_values import parse_json
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.registry.custom_metrics import recorded_only_here
from graphrag_eval_lc.registry.exporters import JUNIT
from graphrag_eval_lc.registry.metric_spec import REASON_ENDING, reason_key
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC, metric_spec
from graphrag_eval_lc.report.formats import amount_text
from graphrag_eval_lc.report.reported_run import (
    ReportedRun,
    part_of,
    reported_run,
    title_of,
)
from graphrag_eval_lc.texts import one_line, shortened, shown_name, visible
from graphrag_eval_lc.view.failures import kind_of, why
from graphrag_eval_lc.view.run_view import RunSummary
from graphrag_eval_lc.view.samples import Sample, Verdict, repeat_of, seen_samples
from graphrag_eval_lc.view.scores import passing_sign

# What came of a sample or a question, the worst first: that of a question is the worst of its samples.
ERROR, FAILURE, SKIPPED, PASSED = range(4)
_TAGS: Final = {ERROR: "error", FAILURE: "failure", SKIPPED: "skipped", PASSED: "system-out"}
_WORDS: Final = {ERROR: "failed", FAILURE: "did not pass", SKIPPED: "was not measured"}

_MESSAGE, _PART, _LINE = 400, 2_000, 600
# GitLab takes files of less than 30 MB.
_MOST_BYTES_OF_TEXTS = 12_000_000
_LEFT_OUT = "The text is left out, as the file would be too large; the question is in results.jsonl."
# What XML 1.0 forbids beside what ``visible`` shows by its code.
_FORBIDDEN = re.compile("[\ufffe\uffff]")


@recorded_only_here()
def write_junit(
    run: RunSource, path: str | PathLike[str] | None = None, *, gates: Sequence[GateResult] | None = None
) -> Path:
    """Write a run as JUnit's XML, for the views of tests of continuous integration.

    A question is a test case, its template the class. It passes if its score ``repeats.metric`` of the
    configuration (``steps_score``) reaches ``repeats.threshold`` (1), is a failure if it does not, an error if
    the agent failed or returned no response, and skipped if it has no such score. One that was asked several times
    passes if all of its samples pass; else it is what the worst of them is: an error, a failure, or skipped. A
    failure says the score and why it is not better; its text has all scores with the judges' reasons, and the answer.
    The gates are cases of a second suite. The file is valid for both of Jenkins' schemas.

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
    try:
        with TemporaryFile() as texts:
            cases = _Cases(reported.config.repeats, texts)
            properties = _added(cases, reported)
            suites = [_question_suite(cases, title_of(reported), properties)]
            if checked:
                suites.append(_gate_suite(checked))
            replace_file(target, (part.encode("utf-8") for part in _document(title_of(reported), suites)))
    except OSError as problem:  # of the file of texts
        raise cannot_write(target, problem) from problem
    return target


@dataclass(slots=True)
class _Question:
    """What is kept of a question in memory.

    Attributes:
        name: Its id, unique among the cases.
        template_id: Its template.
        state: What came of its worst sample.
        seconds: How long its samples took.
        places: The places of its samples' texts in the file of texts.
    """

    name: str
    template_id: str
    state: int = PASSED
    seconds: float = 0.0
    places: "array[int]" = field(default_factory=lambda: array("q"))


class _Cases:
    """The questions of a run as cases; results are added one at a time, and their texts wait in a file.

    Args:
        config: Which score passes.
        texts: A file for the texts.
    """

    def __init__(self, config: RepeatsConfig, texts: IO[bytes]) -> None:
        self._config = config
        self._texts = texts
        self._questions: dict[str, _Question] = {}
        self._names = Counter[tuple[str, str]]()
        self._left = _MOST_BYTES_OF_TEXTS

    def __iter__(self) -> Iterator[_Question]:
        return iter(self._questions.values())

    def add(self, sample: Sample, verdict: Verdict) -> None:
        """Add a sample."""
        result = sample.result
        identifier = str(result["question_id"])
        question = self._questions.get(identifier)
        if question is None:
            name = shown_name(identifier)
            self._names[name, sample.template_id] += 1
            count = self._names[name, sample.template_id]
            name = name if count == 1 else f"{name} ({count})"
            question = self._questions[identifier] = _Question(name, sample.template_id)
        state = self._state(verdict)
        question.state = min(question.state, state)
        question.seconds += max(0.0, number(result.get(ELAPSED_SEC)) or 0.0)
        text = self._text(sample, state, verdict)
        self._left -= len(text.encode("utf-8"))
        kept = {
            "state": state,
            "repeat": repeat_of(result),
            "message": self._message(sample, state, verdict),
            "type": kind_of(result.get("error")) if state == ERROR else self._config.metric,
            "text": text if self._left >= 0 else _LEFT_OUT,
        }
        question.places.append(self._texts.tell())
        self._texts.write(json_line(kept))

    def samples_of(self, question: _Question) -> list[Mapping[str, Any]]:
        """Return what was kept of a question's samples, by repeat."""
        samples = []
        for place in question.places:
            self._texts.seek(place)
            samples.append(parse_json(self._texts.readline().decode("utf-8")))
        return sorted(samples, key=lambda kept: kept["repeat"])

    def _state(self, verdict: Verdict) -> int:
        if verdict.state == "error":
            return ERROR
        if verdict.metric != self._config.metric:
            return SKIPPED
        return PASSED if verdict.state == "right" else FAILURE

    def _message(self, sample: Sample, state: int, verdict: Verdict) -> str:
        metric = self._config.metric
        if state == ERROR:
            return one_line(why(sample.result, verdict), _MESSAGE)
        if state == SKIPPED or verdict.score is None:
            return one_line(f"{metric} was not measured", _MESSAGE)
        said = f"{metric} {amount_text(verdict.score, metric_spec(metric).unit)}"
        if state == PASSED:
            return one_line(said, _MESSAGE)
        reason = why(sample.result, verdict)
        passing = f"{passing_sign(metric)} {self._config.threshold:g} passes"
        return one_line(f"{said} ({passing}){f': {reason}' if reason else ''}", _MESSAGE)

    def _text(self, sample: Sample, state: int, verdict: Verdict) -> str:
        """Return the text on a sample; on one that passed, only its scores."""
        result = sample.result
        scores = [f"{name} {amount_text(value, metric_spec(name).unit)}" for name, value in sample.scores.items()]
        if state == PASSED:
            return one_line(", ".join(scores), _LINE)
        reason = why(result, verdict)
        parts = [
            *scores,
            *_reason_lines(sample),
            f"Why: {reason}" if reason and state != SKIPPED else "",
            f"Question: {one_line(result.get('question_text', ''), _PART)}",
            _told("Answer", result.get("actual_answer")),
            _told("Reference answer", result.get("reference_answer")),
        ]
        return visible("\n".join(filter(None, parts)))


def _reason_lines(sample: Sample) -> Iterator[str]:
    """Yield the judges' reasons; several scores of a judge have one."""
    for key in dict.fromkeys(metric_spec(metric).reason_key or reason_key(metric) for metric in sample.scores):
        if (reason := sample.result.get(key)) is not None:
            yield f"{shown_name(key.removesuffix(REASON_ENDING))}: {one_line(reason, _LINE)}"


def _told(name: str, text: object) -> str:
    if text is None:
        return ""
    cut = shortened(str(text), _PART, keeps_lines=True, tells=True)
    return f"{name}: {cut}"


def _added(cases: _Cases, run: ReportedRun) -> dict[str, str]:
    """Add a run's samples to the cases, and return the properties of the suite."""
    seen = RunSummary(run.config, run.more_metrics, most_failures=0)
    for sample in seen_samples(run.results, run.metrics()):
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


@dataclass(frozen=True, slots=True)
class _Suite:
    """A suite: its counts, and its cases, which are rendered as they are written."""

    name: str
    counts: Mapping[int, int]
    seconds: float
    properties: Mapping[str, str]
    cases: Iterable[str]


def _question_suite(cases: _Cases, name: str, properties: Mapping[str, str]) -> _Suite:
    counts = Counter(question.state for question in cases)
    seconds = sum(question.seconds for question in cases)
    rendered = (_question_case(question, cases.samples_of(question)) for question in cases)
    return _Suite(name, counts, seconds, properties, rendered)


def _question_case(question: _Question, samples: Sequence[Mapping[str, Any]]) -> str:
    worst = next(kept for kept in samples if kept["state"] == question.state)
    if len(samples) == 1:
        message, text = worst["message"], worst["text"]
    else:
        passed = sum(kept["state"] == PASSED for kept in samples)
        message = f"{passed} of {len(samples)} repeats passed; repeat {worst['repeat']}: {worst['message']}"
        lines = "\n" if question.state == PASSED else "\n\n"
        text = lines.join(_repeat_text(kept) for kept in samples)
    told = _case_result(question.state, message, worst["type"], text)
    return _case(question.template_id, question.name, question.seconds, told)


def _repeat_text(kept: Mapping[str, Any]) -> str:
    if kept["state"] == PASSED:
        return f"Repeat {kept['repeat']} passed: {kept['text']}"
    return f"Repeat {kept['repeat']} {_WORDS[kept['state']]}:\n{kept['text']}"


def _gate_suite(gates: Sequence[GateResult]) -> _Suite:
    states = {"passed": PASSED, "failed": FAILURE, "not checked": SKIPPED}
    known = [(gate, states[gate.state]) for gate in gates]
    taken = Counter[str]()
    rendered = []
    for gate, state in known:
        name = shown_name(gate.title)
        taken[name] += 1
        unique = name if taken[name] == 1 else f"{name} ({taken[name]})"
        said = masked_text(str(gate))
        rendered.append(_case("gates", unique, 0.0, _case_result(state, one_line(said, _MESSAGE), "gate", said)))
    return _Suite("gates", Counter(state for _, state in known), 0.0, {}, rendered)


def _case_result(state: int, message: str, kind: str, text: str) -> str:
    tag, body = _TAGS[state], _text(text)
    if state == PASSED:
        return f"<{tag}>{body}</{tag}>" if body else ""
    if state == SKIPPED:  # which has no attributes in the older of Jenkins' schemas
        return f"<{tag}>{_text(message)}</{tag}>"
    return f'<{tag} message="{_attribute(message)}" type="{_attribute(kind)}">{body}</{tag}>'


def _case(template_id: str, name: str, seconds: float, told: str) -> str:
    names = f'classname="{_attribute(template_id)}" name="{_attribute(name)}" time="{seconds:.3f}"'
    return f"<testcase {names}>{told}</testcase>\n" if told else f"<testcase {names}/>\n"


def _document(name: str, suites: Sequence[_Suite]) -> Iterator[str]:
    total = sum((Counter(suite.counts) for suite in suites), Counter[int]())
    # The schema has no count of skipped cases here.
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f'<testsuites name="{_attribute(name)}" {_counts(total, sum(suite.seconds for suite in suites))}>\n'
    for suite in suites:
        skipped = f'skipped="{suite.counts.get(SKIPPED, 0)}"'
        yield f'<testsuite name="{_attribute(suite.name)}" {_counts(suite.counts, suite.seconds)} {skipped}>\n'
        if suite.properties:
            yield "<properties>\n"
            for key, value in suite.properties.items():
                yield f'<property name="{_attribute(key)}" value="{_attribute(value)}"/>\n'
            yield "</properties>\n"
        yield from suite.cases
        yield "</testsuite>\n"
    yield "</testsuites>\n"


def _counts(counts: Mapping[int, int], seconds: float) -> str:
    known = {"tests": sum(counts.values()), "failures": counts.get(FAILURE, 0), "errors": counts.get(ERROR, 0)}
    return " ".join(f'{key}="{value}"' for key, value in {**known, "time": f"{seconds:.3f}"}.items())


def _attribute(text: str) -> str:
    return escape(_allowed(text), {'"': "&quot;"})


def _text(text: str) -> str:
    return escape(_allowed(text))


def _allowed(text: str) -> str:
    return _FORBIDDEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", visible(text))
