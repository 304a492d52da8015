"""The samples of a run: the selected questions and their repeats, and which of them are still to be asked."""

import difflib
import random
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_eval_lc.dataset.loading import questions_of, repeats_of
from graphrag_eval_lc.errors import DatasetError, OptionError
from graphrag_eval_lc.records import Question, Template
from graphrag_eval_lc.run_folder import Key, Summary

_MOST_SEEDS = 2**32
_UNANSWERED = Summary(is_error=False, is_interrupted=True, is_superseded=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The questions that a run asks: all, or those that pass every filter.

    Attributes:
        limit: At most so many, the first in the dataset's order; at least 1.
        template_ids: Only questions of these templates.
        question_ids: Only these questions.
        sample: So many at random of those with these ids, or all where there are fewer; at least 1.
        seed: The seed of the sample; it draws the same questions in whatever order the dataset has them. Without one it
            is drawn too and stands here.

    Raises:
        OptionError: A number is below 1, or there is a seed but no sample.

    Example:
        >>> templates = [{"template_id": "t", "questions": [{"id": f"q{n}", "question_text": "?"} for n in range(9)]}]
        >>> [question["id"] for _, question in Selection(sample=3, seed=1).apply(templates)]
        ['q1', 'q2', 'q8']
    """

    limit: int | None = None
    template_ids: tuple[str, ...] = ()
    question_ids: tuple[str, ...] = ()
    sample: int | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        for name in ("limit", "sample"):
            if (number := getattr(self, name)) is not None and number < 1:
                raise OptionError(f"{name} is at least 1, not {number}")
        if self.seed is not None and self.sample is None:
            raise OptionError("a seed selects nothing by itself", hint="Give the size of the sample too.")
        for name in ("template_ids", "question_ids"):
            object.__setattr__(self, name, _ids(getattr(self, name)))
        if self.sample is not None and self.seed is None:
            object.__setattr__(self, "seed", random.SystemRandom().randrange(_MOST_SEEDS))

    def apply(self, templates: Iterable[Template]) -> list[tuple[Template, Question]]:
        """Return the selected questions with their templates, in the dataset's order.

        Raises:
            DatasetError: The dataset has a question id twice or lacks an id that was given, or no question is left.
        """
        given = list(templates)
        pairs = list(questions_of(given))
        ids = [str(question["id"]) for _, question in pairs]
        _refuse_repeated(ids)
        _refuse_unknown(self.template_ids, [str(template["template_id"]) for template in given], "template")
        _refuse_unknown(self.question_ids, ids, "question")
        selected = [pair for pair, identifier in zip(pairs, ids, strict=True) if self._names(pair[0], identifier)]
        if self.sample is not None and self.sample < len(selected):
            in_order = sorted(str(question["id"]) for _, question in selected)
            drawn = set(random.Random(self.seed).sample(in_order, self.sample))
            selected = [pair for pair in selected if str(pair[1]["id"]) in drawn]
        if self.as_dict() and not selected:
            raise DatasetError("no question is left by the selection", hint="Select fewer things at the same time.")
        return selected[: self.limit]

    def as_dict(self) -> dict[str, Any]:
        """Return the filters that were given, as run.json has them; ``{}`` for all questions."""
        values: dict[str, Any] = {
            "limit": self.limit,
            "template_ids": list(self.template_ids) or None,
            "question_ids": list(self.question_ids) or None,
            "sample": self.sample,
            "seed": self.seed,
        }
        return {name: value for name, value in values.items() if value is not None}

    def _names(self, template: Template, question_id: str) -> bool:
        return (not self.template_ids or str(template["template_id"]) in self.template_ids) and (
            not self.question_ids or question_id in self.question_ids
        )


def _ids(given: Any) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(dict.fromkeys(map(str, given)))


def _refuse_repeated(ids: Iterable[str]) -> None:
    seen: set[str] = set()
    for identifier in ids:
        if identifier in seen:
            raise DatasetError(
                "two questions have this id", question_id=identifier, hint="Give each question an id of its own."
            )
        seen.add(identifier)


def _refuse_unknown(given: Sequence[str], known: Collection[str], kind: str) -> None:
    known = list(dict.fromkeys(known))
    unknown = [identifier for identifier in given if identifier not in known]
    if not unknown:
        return
    near = difflib.get_close_matches(unknown[0], known, n=3, cutoff=0.5)
    others = f" (and {len(unknown) - 1} more that were named)" if len(unknown) > 1 else ""
    first = ", ".join(known[:10]) + (", …" if len(known) > 10 else "")
    hint = f"Did you mean {' or '.join(near)}?" if near else f"The dataset has: {first or 'none'}."
    raise DatasetError(f"there is no {kind} {unknown[0]}{others}", hint=hint)


@dataclass(frozen=True, slots=True)
class Sample:
    """One question, asked once.

    Attributes:
        position: Its index among the results: by question in the dataset's order, then by repeat.
        template: The question's template.
        question: The question.
        repeat: The number of the repeat, from 1.
    """

    position: int
    template: Template
    question: Question
    repeat: int

    @property
    def key(self) -> Key:
        """The key of its response in the journal."""
        return str(self.question["id"]), self.repeat


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a run still has to ask.

    Attributes:
        to_ask: The samples to ask, repeat by repeat.
        done: The answered ones, in the order of results.
        errors: How many of those failed.
        warnings: What the user should know of the dataset.
    """

    to_ask: Sequence[Sample]
    done: Sequence[Sample]
    errors: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """The number of samples of the whole run."""
        return len(self.to_ask) + len(self.done)


def samples_of(questions: Sequence[tuple[Template, Question]], repeats: int) -> list[Sample]:
    """Return the samples in the order in which they are asked: the first repeat of all questions, then the second."""
    return [
        Sample(index * repeats + repeat - 1, template, question, repeat)
        for repeat in range(1, repeats + 1)
        for index, (template, question) in enumerate(questions)
    ]


def recorded_samples(questions: Iterable[tuple[Template, Question]], keys: Iterable[Key]) -> list[Sample]:
    """Return the samples that responses with these keys answer; a question without any is a sample too."""
    return [Sample(position, *asked) for position, asked in enumerate(repeats_of(questions, keys))]


def planned(
    samples: Sequence[Sample],
    known: Callable[[Key], Summary | None] | None,
    *,
    retry_errors: bool = False,
    only_scores: bool = False,
    changed: frozenset[str] = frozenset(),
) -> RunPlan:
    """Return what is answered, and what is to be asked.

    Args:
        samples: All samples of the run.
        known: Tells of the responses of earlier sessions; None: there are none.
        retry_errors: Whether failed samples are asked again; interrupted ones always are.
        only_scores: Whether nothing is asked again: an interrupted response counts as it is.
        changed: The ids of questions whose text has changed, which are asked again.
    """
    to_ask: list[Sample] = []
    done: list[Sample] = []
    errors = 0
    for sample in samples:
        summary = (None if known is None else known(sample.key)) or _UNANSWERED
        is_answered = not summary.is_superseded and sample.key[0] not in changed
        is_again = not only_scores and (summary.is_interrupted or (retry_errors and summary.is_error))
        if is_answered and not is_again:
            done.append(sample)
            errors += summary.is_error
        else:
            to_ask.append(sample)
    done.sort(key=lambda sample: sample.position)
    return RunPlan(to_ask, done, errors)
