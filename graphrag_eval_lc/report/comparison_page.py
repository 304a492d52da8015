"""The comparison of runs as one HTML page: its metrics, its templates, and how each question changed."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any, Final

from graphrag_eval_lc import __version__
from graphrag_eval_lc.compare import GateResult, metric_comparison
from graphrag_eval_lc.compare.comparison_view import ComparisonView, PairComparison, PairView
from graphrag_eval_lc.compare.flips import Flip, ShownStep
from graphrag_eval_lc.compare.metric_comparison import MetricComparison, Pair, difference_of, failures_text
from graphrag_eval_lc.compare.run_comparison import RunComparison
from graphrag_eval_lc.files.writing import replace_file
from graphrag_eval_lc.json_values import json_text, parse_json
from graphrag_eval_lc.registry.exporters import REPORT, exporter
from graphrag_eval_lc.report.formats import call_texts, known_only, shown_value
from graphrag_eval_lc.report.page import COMPARISON_SCRIPTS, inert_json, relative_address, render_page
from graphrag_eval_lc.report.questions import DetailChunks
from graphrag_eval_lc.texts import one_line, shown_name, visible
from graphrag_eval_lc.view.samples import repeat_of, sample_key

_MOST_TEMPLATES: Final = 200  # if there are more, those that differ most are shown
_LABEL: Final = 60

# A difference and the ends of its interval, in percent of the chart's width; 50 means no difference.
Place = dict[str, float | None]


def write_comparison(comparison: RunComparison, path: str | PathLike[str], gates: Sequence[GateResult] = ()) -> Path:
    """Write a comparison and the results of its gates as one self-contained HTML file.

    If a run's folder has a ``report.html``, the page links to it, and each question to its entry there.

    Raises:
        MissingExtraError: Jinja2 is not installed.
        RunFolderError: The file cannot be written, or the results of a run no longer exist.
    """
    target, view = Path(path), comparison.view(gates)
    reports = {}  # the addresses of existing reports, relative to the page's folder
    for run in view.runs:
        report = None if run.path is None else Path(run.path) / exporter(REPORT).file_name
        if report is not None and report.is_file():
            reports[run.letter] = relative_address(report, target.parent)
    replace_file(target, [_page(view, reports).encode("utf-8")])
    return target


def _page(view: ComparisonView, reports: Mapping[str, str]) -> str:
    compared = ComparedQuestions(view)
    metrics = [(pair.pair.run, pair.main) for pair in view.pairs if pair.main is not None]
    lists = {
        "runs": [{"letter": run.letter, "label": one_line(run.label, _LABEL)} for run, _ in metrics],
        "templates": list(dict.fromkeys(question["t"] for question in compared.questions)),
        "unit": next((metric.unit for _, metric in metrics), "score"),
        "reports": dict(reports),
    }
    index = {"questions": compared.questions, "pairs": compared.pairs}
    return render_page(
        "comparison.html.j2",
        COMPARISON_SCRIPTS,
        view=view,
        places={pair.letter: _places(pair.pair.metrics) for pair in view.pairs},
        version=__version__,
        generated=datetime.now(UTC).isoformat(timespec="seconds"),
        texts=metric_comparison,
        failures=failures_text(metric for pair in view.pairs for metric in pair.pair.metrics),
        templates={pair.letter: shown for pair in view.pairs if (shown := _shown_templates(pair))},
        counts={letter: Counter(TURNS[row["w"]] for row in rows) for letter, rows in compared.pairs.items()},
        reports=reports,
        chunks=compared.chunks,
        index_json=inert_json(json_text(index, is_compact=True)),
        lists_json=inert_json(json_text(lists, is_compact=True)),
    )


def _shown_templates(pair: PairView) -> dict[str, Any] | None:
    """Return the templates to show (if there are many, those that differ most) and where to draw their differences."""
    if pair.main is None:
        return None
    found = pair.templates
    most = sorted(found, key=lambda each: -abs(each.difference))[:_MOST_TEMPLATES]
    kept = {each.template_id for each in most}
    widest = max((abs(each.difference) for each in most), default=0.0)
    return {
        "rows": [each for each in found if each.template_id in kept],
        "left_out": len(found) - len(most),
        "metric": pair.main,
        "places": {each.template_id: _place([each.difference], widest) for each in most},
        "has_others": any(each.worse or each.better for each in found),
    }


def _places(metrics: Iterable[MetricComparison]) -> dict[str, Place | None]:
    """Place differences of scores on one scale, and differences of spending, relative to A, on another."""
    places: dict[str, Place | None] = {}
    for is_spent in (False, True):
        values = {}
        for metric in metrics:
            if metric.is_spent is is_spent:
                scale = metric.mean_a if is_spent else 1.0
                ends = [metric.difference, *(metric.interval or ())]
                values[metric.metric] = [end / scale for end in ends] if scale else []
        widest = max((abs(value) for each in values.values() for value in each), default=0.0)
        places |= {name: _place(each, widest) for name, each in values.items()}
    return places


def _place(values: Sequence[float], widest: float) -> Place | None:
    if not values or not widest:
        return None
    difference, *interval = (round(50 + 48 * value / widest, 2) for value in values)
    low, high = interval or (None, None)
    return {"difference": difference, "low": low, "high": high}


# How a question changed. Rows have an index into this tuple; TURNS in comparison_list.js has the same order.
TURNS: Final = ("broken", "fixed", "worse", "better", "not comparable", "same")

_NOT_COMPARABLE, _SAME = TURNS.index("not comparable"), TURNS.index("same")
_QUESTION, _WHY, _DIGITS = 160, 270, 6


@dataclass(slots=True)
class _SeenQuestion:
    """What the list needs from one run about a question; ``keys`` are those of its samples in that run's report."""

    text: str
    template_id: str
    key: str
    keys: dict[int, str] = field(default_factory=dict)


class ComparedQuestions:
    """The questions of all runs that have the main metric, read in one pass over the results of each run.

    ``questions`` has for each question ``k``, its key in this page, ``q``, its text, and ``t``, its template.
    ``pairs`` has the rows of each run by its letter: ``i`` is the index of the question, ``a`` and ``b`` its values,
    and ``w`` is how it changed, as an index into ``TURNS``. Some rows have more keys: ``c`` is the number of the chunk
    in ``chunks`` with the details. ``l`` has by letter the key in that run's report, if it is a different one (None if
    the report lacks the question). ``u`` says that undecided steps count 0, ``n`` why the question is not comparable,
    ``y`` why it is not right.
    """

    def __init__(self, view: ComparisonView) -> None:
        self.questions: list[dict[str, str]] = []
        self.pairs: dict[str, list[dict[str, Any]]] = {}
        self.chunks: list[str] = []
        self._places: dict[str, int] = {}
        self._taken: set[str] = set()
        pairs = [(place, each.pair, each.main) for place, each in enumerate(view.pairs, start=1) if each.main]
        # Empty for a comparison that does not know where results are.
        seen = [_questions_of(results) for results in view.sources] if pairs else []
        for place, pair, metric in pairs:
            in_both = (seen[0], seen[place]) if seen else ({}, {})
            # Each run has its own chunks, because a chunk has one entry for each question key.
            details = DetailChunks()
            self.pairs[pair.run.letter] = list(self._rows(pair, metric, *in_both, details))
            self.chunks += details.packed()

    def _rows(
        self,
        pair: PairComparison,
        metric: MetricComparison,
        in_a: Mapping[str, _SeenQuestion],
        in_b: Mapping[str, _SeenQuestion],
        details: DetailChunks,
    ) -> Iterator[dict[str, Any]]:
        """Yield the rows of a run: flips first, then questions that cannot be compared, then unchanged ones."""
        letter, first_chunk = pair.run.letter, len(self.chunks)
        values = {each.question_id: each.values.get(metric.metric) for each in pair.questions}
        flips = {flip.question_id: flip for flip in pair.flips}
        turns = {each: _turn(known, flips.get(each), metric) for each, known in values.items()}
        notes = {each: "not measured in both" for each, known in values.items() if known is None}
        notes |= {each: "only in A" for each in in_a if each not in values}
        notes |= {each: f"only in {letter}" for each in in_b if each not in values}

        def rank(identifier: str) -> tuple[int, float]:  # the larger change of the same kind comes first
            known = values.get(identifier)
            return turns.get(identifier, _NOT_COMPARABLE), 0.0 if known is None else -abs(difference_of(known))

        others = sorted((each for each in {**turns, **notes} if each not in flips), key=rank)
        template_ids = {each.question_id: shown_name(each.template_id) for each in pair.questions}
        for identifier in (*flips, *others):
            sides = {"A": in_a.get(identifier), letter: in_b.get(identifier)}
            flip, known = flips.get(identifier), next(filter(None, sides.values()), None)
            if identifier not in self._places:
                self._places[identifier] = len(self.questions)
                text = known.text if known else one_line("" if flip is None else flip.question_text, _QUESTION)
                template = template_ids.get(identifier) or (known.template_id if known else "")
                # Ids that look the same on the page still get different keys.
                key = sample_key({"question_id": identifier}, self._taken)
                self.questions.append({"k": key, "q": text, "t": template})
            number = self._places[identifier]
            key = self.questions[number]["k"]
            a, b = (
                None if value is None else round(value, _DIGITS) for value in values.get(identifier) or (None, None)
            )
            yield known_only(
                {
                    "i": number,
                    "a": a,
                    "b": b,
                    "w": turns.get(identifier, _NOT_COMPARABLE),
                    "c": None if flip is None else first_chunk + details.add(key, _detail(flip, letter)),
                    "l": _other_keys(sides, key, flip) or None,
                    "u": 1 if flip is not None and flip.is_undecided else None,
                    "y": one_line(flip.why, _WHY) or None if flip is not None else None,
                    "n": notes.get(identifier),
                }
            )


def _turn(values: Pair | None, flip: Flip | None, metric: MetricComparison) -> int:
    """Return how a question changed, as an index into ``TURNS``."""
    if values is None:
        return _NOT_COMPARABLE
    if flip is not None:
        return TURNS.index(flip.direction)
    difference = difference_of(values)
    if not difference:
        return _SAME
    # Spending is neither right nor wrong, so it has no flips.
    return TURNS.index("better" if (difference < 0) is metric.lower_is_better else "worse")


def _questions_of(results: Any) -> dict[str, _SeenQuestion]:
    seen: dict[str, _SeenQuestion] = {}
    taken: set[str] = set()
    for result in results:
        key = sample_key(result, taken)
        known = seen.get(identifier := str(result["question_id"]))
        if known is None:
            text = one_line(result.get("question_text") or "", _QUESTION)
            seen[identifier] = _SeenQuestion(text, shown_name(result.get("template_id")), key)
        else:
            known.keys.setdefault(repeat_of(result), key)
    return seen


def _other_keys(sides: Mapping[str, _SeenQuestion | None], key: str, flip: Flip | None) -> dict[str, str | None]:
    """Return by letter the keys in the runs' reports, if they differ from the key in this page."""
    found: dict[str, str | None] = {}
    for (letter, seen), side in zip(sides.items(), (None, None) if flip is None else (flip.a, flip.b), strict=True):
        in_report = None if seen is None else seen.keys.get(side.repeat, seen.key) if side is not None else seen.key
        if in_report != key:
            found[letter] = in_report
    return found


def _detail(flip: Flip, letter: str) -> dict[str, Any]:
    """Return the details that open below a question, as plain JSON values; the page shows their texts as text."""
    sides = [
        known_only(
            {
                "letter": name,
                "score": round(score, _DIGITS),
                "failed": True if side.status == "error" else None,
                "undecided": side.is_undecided or None,
                "repeat": side.repeat if side.repeat > 1 else None,
                "reason": visible(side.reason) or None,
                "answer": None if side.answer is None else visible(side.answer),
            }
        )
        for name, side, score in (("A", flip.a, flip.score_a), (letter, flip.b, flip.score_b))
    ]
    steps = [
        known_only(
            {
                "same": pair.is_same or None,
                "other": True if pair.is_same and not pair.has_same_output else None,
                "a": _step(pair.a),
                "b": _step(pair.b),
            }
        )
        for pair in flip.steps
    ]
    answer = flip.reference_answer
    return known_only(
        {
            "question": visible(flip.question_text),
            "reference_answer": None if answer is None else visible(answer),
            "sides": sides,
            "steps": steps,
        }
    )


def _step(step: ShownStep | None) -> dict[str, Any] | None:
    if step is None:
        return None
    try:
        texts = call_texts(parse_json(step.args))
    except (ValueError, RecursionError):  # the texts were cut and are no longer JSON
        texts = {"args": visible(step.args)} if step.args else {}
    return known_only(
        {
            "name": shown_name(step.name),
            **texts,
            "output": shown_value(step.output) or None,
            "failed": True if step.status == "error" else None,
            "fulfils": step.fulfils or None,
            "sec": step.elapsed_sec,
        }
    )
