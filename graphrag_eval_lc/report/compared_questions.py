"""The list of a comparison: what became of each question from A to another run, packed for the browser."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from graphrag_eval_lc.compare.comparison_view import ComparisonView, PairComparison
from graphrag_eval_lc.compare.flips import Flip, QuestionSide, ShownStep
from graphrag_eval_lc.compare.metric_comparison import MetricComparison, Pair, difference_of
from graphrag_eval_lc.json_values import parse_json
from graphrag_eval_lc.report.formats import call_texts, known_only, shown_value
from graphrag_eval_lc.report.questions import DetailChunks
from graphrag_eval_lc.texts import one_line, shown_name, visible
from graphrag_eval_lc.view.samples import repeat_of, sample_key

# What became of a question; rows have its place in this order, as TURNS in comparison_list.js has them.
TURNS: Final = ("now wrong", "now right", "worse", "better", "not comparable", "same")

_NOT_COMPARABLE, _SAME = TURNS.index("not comparable"), TURNS.index("same")
_QUESTION, _DIGITS = 160, 6


@dataclass(slots=True)
class _SeenQuestion:
    """What the list needs of a question in one run.

    Attributes:
        text: The question, shortened.
        template_id: Its template as it is shown.
        key: By which the run's report lists its first sample.
        keys: By which it lists the repeats.
    """

    text: str
    template_id: str
    key: str
    keys: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ComparedList:
    """The questions of a comparison.

    Attributes:
        templates: The templates of the questions, in A's order.
        index: What the list shows: ``questions`` (of each ``k``, its key in this page, ``q``, its text, and ``t``, its
            template), and in ``pairs`` by letter the rows of a run: ``i``, the place of the question; ``a`` and ``b``,
            its values; ``w``, the place of what became of it in ``TURNS``. If there is anything to say, also ``c``,
            the chunk with its details, ``l``, by letter its key in the run's report if that is another one (None
            if it is not in it), ``u``, that undecided steps count 0, and ``n``, why it cannot be compared.
        chunks: The details of the questions that flipped, packed.
        counts: By letter, how many questions there are of each of ``TURNS``.
    """

    templates: list[str]
    index: dict[str, Any]
    chunks: list[str]
    counts: dict[str, Counter[str]]


def compared_list(view: ComparisonView) -> ComparedList:
    """Return the questions of all runs that have the main metric, in one pass over the results of each run.

    Args:
        view: The comparison.
    """
    builder = _Builder(view)
    pairs: dict[str, list[dict[str, Any]]] = {}
    chunks: list[str] = []
    counts: dict[str, Counter[str]] = {}
    for place, shown in enumerate(view.pairs, start=1):
        pair, metric, letter = shown.pair, shown.main, shown.letter
        if metric is None:
            continue
        # Each run has chunks of its own, as they hold details by the keys of questions.
        details = DetailChunks()
        rows = list(builder.rows(pair, metric, place, details, len(chunks)))
        chunks += details.packed()
        pairs[letter] = rows
        counts[letter] = Counter(TURNS[row["w"]] for row in rows)
    return ComparedList(builder.templates(), {"questions": builder.questions, "pairs": pairs}, chunks, counts)


class _Builder:
    """Makes the rows of all runs, which share the texts and keys of the questions."""

    def __init__(self, view: ComparisonView) -> None:
        self.questions: list[dict[str, str]] = []
        self._view = view
        self._places: dict[str, int] = {}
        self._taken: set[str] = set()

    @cached_property
    def _seen(self) -> list[dict[str, _SeenQuestion]]:
        """The questions of each run by id; empty for a comparison that does not know where results are."""
        return [_questions_of(results) for results in self._view.sources]

    def templates(self) -> list[str]:
        """Return the templates of all questions that have a row."""
        return list(dict.fromkeys(question["t"] for question in self.questions))

    def rows(
        self, pair: PairComparison, metric: MetricComparison, place: int, details: DetailChunks, first_chunk: int
    ) -> Iterator[dict[str, Any]]:
        """Yield the rows of a run: first what flipped, then what cannot be compared, then what is the same."""
        letter = pair.run.letter
        in_a, in_b = (self._seen[0], self._seen[place]) if self._seen else ({}, {})
        values = {each.question_id: each.values.get(metric.metric) for each in pair.questions}
        flips = {flip.question_id: flip for flip in pair.flips}
        turns = {each: _turn(known, flips.get(each), metric) for each, known in values.items()}
        notes = {each: "not measured in both" for each, known in values.items() if known is None}
        notes |= {each: "only in A" for each in in_a if each not in values}
        notes |= {each: f"only in {letter}" for each in in_b if each not in values}
        others = [each for each in {**turns, **notes} if each not in flips]
        others.sort(key=lambda each: _rank(turns.get(each, _NOT_COMPARABLE), values.get(each)))
        template_ids = {each.question_id: shown_name(each.template_id) for each in pair.questions}
        for identifier in (*flips, *others):
            sides = {"A": in_a.get(identifier), letter: in_b.get(identifier)}
            flip, known = flips.get(identifier), next(filter(None, sides.values()), None)
            text = known.text if known else one_line("" if flip is None else flip.question_text, _QUESTION)
            number = self._place_of(
                identifier, text, template_ids.get(identifier) or (known.template_id if known else "")
            )
            key = self.questions[number]["k"]
            chunk = None if flip is None else first_chunk + details.add(key, _detail(flip, letter))
            a, b = (
                None if value is None else round(value, _DIGITS) for value in values.get(identifier) or (None, None)
            )
            yield known_only(
                {
                    "i": number,
                    "a": a,
                    "b": b,
                    "w": turns.get(identifier, _NOT_COMPARABLE),
                    "c": chunk,
                    "l": _other_keys(sides, key, flip) or None,
                    "u": 1 if flip is not None and flip.is_undecided else None,
                    "n": notes.get(identifier),
                }
            )

    def _place_of(self, identifier: str, text: str, template: str) -> int:
        if identifier not in self._places:
            self._places[identifier] = len(self.questions)
            # Ids that are shown alike still have keys of their own.
            key = sample_key({"question_id": identifier}, self._taken)
            self.questions.append({"k": key, "q": text, "t": template})
        return self._places[identifier]


def _rank(turn: int, values: Pair | None) -> tuple[int, float]:
    """Return a rank that is lower for what is listed before others: the larger change, of the same kind."""
    return turn, 0.0 if values is None else -abs(difference_of(values))


def _turn(values: Pair | None, flip: Flip | None, metric: MetricComparison) -> int:
    """Return what became of a question as its place in ``TURNS``."""
    if values is None:
        return _NOT_COMPARABLE
    if flip is not None:
        return TURNS.index(flip.direction)
    difference = difference_of(values)
    if not difference:
        return _SAME
    # Of what was spent nothing is right or wrong, and there are no flips.
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
    """Return by letter the keys in the runs' reports, if they differ from that in this page."""
    found: dict[str, str | None] = {}
    for (letter, seen), side in zip(sides.items(), (None, None) if flip is None else (flip.a, flip.b), strict=True):
        in_report = None if seen is None else seen.keys.get(side.repeat, seen.key) if side is not None else seen.key
        if in_report != key:
            found[letter] = in_report
    return found


def _detail(flip: Flip, letter: str) -> dict[str, Any]:
    """Return what opens beneath a question: plain JSON values, whose texts are shown as text."""
    sides = zip(("A", letter), (flip.a, flip.b), (flip.score_a, flip.score_b), strict=True)
    detail = {
        "question": visible(flip.question_text),
        "reference_answer": None if flip.reference_answer is None else visible(flip.reference_answer),
        "sides": [_side(*each) for each in sides],
        "steps": [
            known_only({"same": pair.is_same or None, "a": _step(pair.a), "b": _step(pair.b)}) for pair in flip.steps
        ],
    }
    return known_only(detail)


def _side(letter: str, side: QuestionSide, score: float) -> dict[str, Any]:
    return known_only(
        {
            "letter": letter,
            "score": round(score, _DIGITS),
            "failed": True if side.status == "error" else None,
            "undecided": side.is_undecided or None,
            "repeat": side.repeat if side.repeat > 1 else None,
            "reason": visible(side.reason) or None,
            "answer": None if side.answer is None else visible(side.answer),
        }
    )


def _step(step: ShownStep | None) -> dict[str, Any] | None:
    if step is None:
        return None
    return known_only(
        {
            "name": shown_name(step.name),
            **_call_texts(step.args),
            "output": shown_value(step.output) or None,
            "failed": True if step.status == "error" else None,
            "fulfils": step.fulfils or None,
            "sec": step.elapsed_sec,
        }
    )


def _call_texts(text: str) -> dict[str, str]:
    """Return a call's query and other arguments; all as they are if they were cut and are not JSON any more."""
    try:
        return call_texts(parse_json(text))
    except (ValueError, RecursionError):
        return {"args": visible(text)} if text else {}
