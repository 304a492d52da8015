"""Selects the questions of a dataset that are asked, scored, checked or shown: those that pass every filter."""

import difflib
import random
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_eval_lc.dataset.loading import questions_of
from graphrag_eval_lc.errors import DatasetError, GraphRAGEvalError, OptionError
from graphrag_eval_lc.records import QuestionWithTemplate, Template
from graphrag_eval_lc.texts import counted, plural

_MOST_SEEDS = 2**32


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The questions that a run asks, or that are scored: all, or those that pass every filter.

    Example:
        >>> templates = [{"template_id": "t", "questions": [{"id": f"q{n}", "question_text": "?"} for n in range(9)]}]
        >>> [question["id"] for _, question in Selection(sample=3, seed=1).apply(templates)]
        ['q1', 'q2', 'q8']
    """

    limit: int | None = None  # the first questions in the dataset's order, at most this many; at least 1
    template_ids: Sequence[str] = ()
    question_ids: Sequence[str] = ()
    sample: int | None = None  # this many random questions, of those with these ids; all if there are fewer; at least 1
    # the seed of the sample: it draws the same questions in any order of the dataset. If none is given, one is drawn
    seed: int | None = None
    answered_only: bool = False  # only questions that have a response; the method answered applies it

    def __post_init__(self) -> None:
        for name in ("limit", "sample"):
            if (number := getattr(self, name)) is not None and number < 1:
                raise OptionError(f"{name} is at least 1, not {number}")
        if self.seed is not None and self.sample is None:
            raise OptionError("a seed alone selects nothing", hint="Give the size of the sample too.")
        for name in ("template_ids", "question_ids"):
            given: Any = getattr(self, name)
            if given is None or isinstance(given, str):
                given = () if given is None else (given,)
            elif not isinstance(given, Collection):
                raise OptionError(f"{name} cannot be {given!r:.80}", key=name, hint="Give a list of ids.")
            object.__setattr__(self, name, tuple(dict.fromkeys(map(str, given))))
        if self.sample is not None and self.seed is None:
            object.__setattr__(self, "seed", random.SystemRandom().randrange(_MOST_SEEDS))

    @property
    def is_all(self) -> bool:
        """Whether nothing is filtered out."""
        return not self.as_dict()

    def apply(self, templates: Iterable[Template]) -> list[QuestionWithTemplate]:
        """Return the selected questions with their templates in the dataset's order; ignores ``answered_only``."""
        given = list(templates)
        pairs = list(questions_of(given))
        ids = [str(question["id"]) for _, question in pairs]
        seen: set[str] = set()
        for identifier in ids:
            if identifier in seen:
                hint = "Give each question another id."
                raise DatasetError("two questions have this id", question_id=identifier, hint=hint)
            seen.add(identifier)
        self.refuse_unknown([str(template["template_id"]) for template in given], ids)
        names = self.by_id()
        selected = [pair for pair in pairs if names(pair[0]["template_id"], pair[1]["id"])]
        if self.sample is not None and self.sample < len(selected):
            in_order = sorted(str(question["id"]) for _, question in selected)
            drawn = set(random.Random(self.seed).sample(in_order, self.sample))
            selected = [pair for pair in selected if str(pair[1]["id"]) in drawn]
        if not selected and not self.is_all:
            raise DatasetError("no question is left by the selection", hint="Select fewer things at the same time.")
        return selected if self.limit is None else selected[: self.limit]

    def answered(self, questions: list[QuestionWithTemplate], answered: Container[str]) -> list[QuestionWithTemplate]:
        """Return the questions that have a response; without ``answered_only``, return all of them."""
        if not self.answered_only:
            return questions
        found = [pair for pair in questions if str(pair[1]["id"]) in answered]
        if questions and not found:
            what = f"none of {counted(len(questions), 'question')} has a response"
            raise DatasetError(what, hint="Check that the question ids of the responses are those of the dataset.")
        return found

    def by_id(self) -> Callable[[object, object], bool]:
        """Return a function that checks whether a template id and a question id pass the filters by id."""
        templates, questions = frozenset(self.template_ids), frozenset(self.question_ids)

        def names(template_id: object, question_id: object) -> bool:
            is_template = not templates or str(template_id) in templates
            return is_template and (not questions or str(question_id) in questions)

        return names

    def refuse_unknown(
        self,
        template_ids: Iterable[str],
        question_ids: Iterable[str],
        *,
        error: type[GraphRAGEvalError] = DatasetError,
        where: str = "The dataset",
    ) -> None:
        """Refuse selected ids that do not exist."""
        for kind, given, existing in (
            ("template", self.template_ids, template_ids),
            ("question", self.question_ids, question_ids),
        ):
            known = dict.fromkeys(existing) if given else {}
            unknown = [identifier for identifier in given if identifier not in known]
            if unknown:
                near = difflib.get_close_matches(unknown[0], known, n=3, cutoff=0.5)
                others = f" (and {len(unknown) - 1} more that were named)" if len(unknown) > 1 else ""
                first = ", ".join(list(known)[:10]) + (", …" if len(known) > 10 else "")
                hint = f"Did you mean {' or '.join(near)}?" if near else f"{where} has: {first or 'none'}."
                raise error(f"unknown {kind} {unknown[0]}{others}", hint=hint)

    def as_dict(self) -> dict[str, Any]:
        """Return the given filters as run.json stores them; ``{}`` means all questions."""
        values: dict[str, Any] = {
            "limit": self.limit,
            "template_ids": list(self.template_ids) or None,
            "question_ids": list(self.question_ids) or None,
            "sample": self.sample,
            "seed": self.seed,
            "answered_only": self.answered_only or None,
        }
        return {name: value for name, value in values.items() if value is not None}


def answered_note(answered: int, total: int, done: str = "scored") -> str:
    """Return a note that only the questions with a response count."""
    have, these = plural(answered, "has", "have"), plural(answered, "it is", "these are")
    return f"{answered:,} of {counted(total, 'question')} {have} a response; only {these} {done}"
