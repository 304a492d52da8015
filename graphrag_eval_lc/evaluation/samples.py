"""The samples of a run: the selected questions and their repeats, which of them are asked, and in which shard."""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.records import Key, Question, QuestionWithTemplate, Template
from graphrag_eval_lc.run_folder import Summary

if TYPE_CHECKING:
    from graphrag_eval_lc.judges.request_plan import RequestPlan

_TEXT = re.compile(r"\s*([0-9]+)\s*/\s*([0-9]+)\s*")
_HINT = "Write it as 3/16, the third of sixteen parts; the first is 1/16."


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several parts of a run: ``number``, from 1, ``of`` so many.

    The question id and the repeat alone decide which part a sample belongs to, not the order or other questions.

    Example:
        >>> [str(Shard.read(f"{number}/3")) for number in (1, 2, 3) if Shard(number, 3).has(("q1", 1))]
        ['1/3']
    """

    number: int
    of: int

    @classmethod
    def read(cls, value: object) -> "Shard":
        """Return the shard that a text such as ``3/16`` means; others are an OptionError."""
        if isinstance(value, cls):
            return value
        found = _TEXT.fullmatch(value) if isinstance(value, str) else None
        if found is None:
            raise OptionError(f"shard cannot be {value!r:.80}", key="shard", hint=_HINT)
        number, of = (int(each) for each in found.groups())
        if number == 0 < of:
            hint = f"The first is 1/{of}: if your parts are counted from 0, add 1."
            raise OptionError(f"unknown shard 0/{of}", key="shard", hint=hint)
        if not 1 <= number <= of:
            raise OptionError(f"unknown shard {number}/{of}", key="shard", hint=_HINT)
        return cls(number, of)

    @classmethod
    def in_record(cls, run: Mapping[str, Any]) -> "Shard | None":
        """Return the shard that a run.json is of; None for a whole run."""
        shard = run.get("shard")
        return None if shard is None else cls(shard["number"], shard["of"])

    def has(self, key: Key) -> bool:
        """Return whether a sample, by its question id and repeat, belongs to this part."""
        return shard_number(key, self.of) == self.number

    def part_of(self, whole: int) -> int:
        """Return this part of a whole number; those of all parts add up to it: 3, 3, 2 and 2 of 10."""
        return whole // self.of + (self.number <= whole % self.of)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def shard_number(key: Key, of: int) -> int:
    """Return which of so many parts a sample belongs to, from 1.

    This must never change: a shard is resumed with another version of this package.

    Example:
        >>> [shard_number((f"q{number}", 1), 3) for number in range(9)]
        [2, 1, 3, 1, 1, 2, 2, 3, 1]
    """
    question_id, repeat = key
    digest = hashlib.sha256(f"{repeat}/{question_id}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8]) % of + 1


MOST_REPEATS = 100_000  # of a question, in one run


@dataclass(frozen=True, slots=True)
class Sample:
    """One question, asked once: the ``repeat``, from 1.

    ``position`` is its index among the results, by question in the dataset's order, then by repeat; ``key`` that of its
    response in the journal.
    """

    position: int
    template: Template
    question: Question
    repeat: int
    key: Key = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", (str(self.question["id"]), self.repeat))


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a run still has to ask.

    Attributes:
        to_ask: The samples to ask, repeat by repeat.
        done: The answered ones, in the order of results.
        errors: How many of those failed.
        asked_before: The positions of those to ask that have a response, of a failed or an interrupted attempt.
        notes: Which part of the run this is, if it is one.
        warnings: What the user should know of the dataset.
        judging: What the judges would ask about all samples; None if no model judges.
        agent_cost: About what the agent will cost in USD, by the answers that are there; None if none has a cost.
    """

    to_ask: Sequence[Sample]
    done: Sequence[Sample]
    errors: int = 0
    asked_before: Set[int] = frozenset()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    judging: "RequestPlan | None" = None
    agent_cost: float | None = None

    @property
    def total(self) -> int:
        """The number of samples of the whole run."""
        return len(self.to_ask) + len(self.done)


def samples_of(questions: Sequence[QuestionWithTemplate], repeats: int, shard: Shard | None = None) -> list[Sample]:
    """Return the samples in the order in which they are asked: the first repeat of all questions, then the second."""
    return [
        Sample(index * repeats + repeat - 1, template, question, repeat)
        for repeat in range(1, repeats + 1)
        for index, (template, question) in enumerate(questions)
        if shard is None or shard.has((str(question["id"]), repeat))
    ]


def recorded_samples(questions: Sequence[QuestionWithTemplate], keys: Iterable[Key]) -> list[Sample]:
    """Return the samples that responses with these keys answer; a question without any is a sample too."""
    repeats: dict[str, list[int]] = {}
    for question_id, repeat in keys:
        repeats.setdefault(question_id, []).append(repeat)
    samples: list[Sample] = []
    for template, question in questions:
        for repeat in sorted(repeats.get(str(question["id"]), (1,))):
            samples.append(Sample(len(samples), template, question, repeat))
    return samples


def planned(
    samples: Sequence[Sample],
    known: Callable[[Key], Summary | None] | None,
    *,
    retry_errors: bool = False,
    only_scores: bool = False,
) -> RunPlan:
    """Return what is answered, and what is to be asked.

    ``known`` tells of the responses of earlier sessions. With ``retry_errors`` failed samples are asked again, as
    interrupted ones always are; with ``only_scores`` nothing is: an interrupted response counts as it is.
    """
    to_ask: list[Sample] = []
    done: list[Sample] = []
    asked_before: set[int] = set()
    errors = 0
    for sample in samples:
        summary = None if known is None else known(sample.key)
        if summary is None or (not only_scores and summary.is_to_ask(retry_errors=retry_errors)):
            to_ask.append(sample)
            if summary is not None:
                asked_before.add(sample.position)
        else:
            done.append(sample)
            errors += summary.is_error
    return RunPlan(to_ask, sorted(done, key=lambda sample: sample.position), errors, asked_before)
