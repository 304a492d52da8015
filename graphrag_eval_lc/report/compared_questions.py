"""The question list of a comparison: how each question changed from A to another run, packed for the browser."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from graphrag_eval_lc.compare.comparison_view import ComparisonView, PairComparison
from graphrag_eval_lc.compare.flips import Flip, ShownStep
from graphrag_eval_lc.compare.metric_comparison import MetricComparison, Pair, difference_of
from graphrag_eval_lc.json_values import parse_json
from graphrag_eval_lc.report.formats import call_texts, known_only, shown_value
from graphrag_eval_lc.report.questions import DetailChunks
from graphrag_eval_lc.texts import one_line, shown_name, visible
from graphrag_eval_lc.view.samples import repeat_of, sample_key

# How a question changed. Rows have an index into this tuple; TURNS in comparison_list.js has the same order.
TURNS: Final = ("now wrong", "now right", "worse", "better", "not comparable", "same")

_NOT_COMPARABLE, _SAME = TURNS.index("not comparable"), TURNS.index("same")
_QUESTION, _DIGITS = 160, 6


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
    the report lacks the question). ``u`` says that undecided steps count 0, ``n`` why the question is not comparable.
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
    steps = [known_only({"same": pair.is_same or None, "a": _step(pair.a), "b": _step(pair.b)}) for pair in flip.steps]
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
