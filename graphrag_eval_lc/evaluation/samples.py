"""Plans the samples of a run: the selected questions and repeats, their shards, and which are still to be asked."""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    """One shard of a run: ``number``, from 1, ``of`` the number of shards.

    The shard of a sample depends only on its question id and repeat, not on the order or on other questions.

    Example:
        >>> [str(Shard.read(f"{number}/3")) for number in (1, 2, 3) if Shard(number, 3).has(("q1", 1))]
        ['1/3']
    """

    number: int
    of: int

    @classmethod
    def read(cls, value: object) -> "Shard":
        """Return the shard for a text such as ``3/16``; raise an OptionError for other values."""
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
        """Return the shard recorded in a run.json; None for a whole run."""
        shard = run.get("shard")
        return None if shard is None else cls(shard["number"], shard["of"])

    def has(self, key: Key) -> bool:
        """Return whether a sample, given by its question id and repeat, belongs to this shard."""
        return shard_number(key, self.of) == self.number

    def part_of(self, whole: int) -> int:
        """Return this shard's part of a whole number; the parts add up to it, such as 3, 3, 2 and 2 for 10."""
        return whole // self.of + (self.number <= whole % self.of)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def shard_number(key: Key, of: int) -> int:
    """Return the number of the shard that a sample belongs to, from 1.

    This must never change: a shard may be resumed with another version of this package.

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
    """One question, asked once; ``repeat`` counts from 1.

    ``position`` is its index among the results, which are sorted by question in the dataset's order, then by repeat.
    ``key`` is the key of its response in the journal.
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
    """Which samples a run still has to ask.

    Attributes:
        to_ask: The samples to ask, repeat by repeat.
        done: The answered ones, in the order of results.
        errors: How many of those failed.
        notes: Which shard of the run this is, if it is one.
        warnings: What the user should know about the dataset.
        judging: What the judges would ask about all samples; None if no model judges.
        agent_cost: The estimated cost of the agent in USD, from the answers so far; None if none has a cost.
    """

    to_ask: Sequence[Sample]
    done: Sequence[Sample]
    errors: int = 0
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    judging: "RequestPlan | None" = None
    agent_cost: float | None = None

    @property
    def total(self) -> int:
        """The number of samples of the whole run."""
        return len(self.to_ask) + len(self.done)


def samples_of(questions: Sequence[QuestionWithTemplate], repeats: int, shard: Shard | None = None) -> list[Sample]:
    """Return the samples in the order of asking: the first repeat of all questions, then the second, and so on."""
    return [
        Sample(index * repeats + repeat - 1, template, question, repeat)
        for repeat in range(1, repeats + 1)
        for index, (template, question) in enumerate(questions)
        if shard is None or shard.has((str(question["id"]), repeat))
    ]


def recorded_samples(questions: Sequence[QuestionWithTemplate], keys: Iterable[Key]) -> list[Sample]:
    """Return the samples for responses with these keys; a question without a response is a sample too."""
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
    """Return which samples are answered, and which are to be asked.

    ``known`` returns the response of an earlier session, if any. Interrupted samples are asked again, and with
    ``retry_errors`` failed ones too. With ``only_scores`` nothing is asked, and an interrupted response is scored as it
    is.
    """
    to_ask: list[Sample] = []
    done: list[Sample] = []
    errors = 0
    for sample in samples:
        summary = None if known is None else known(sample.key)
        if summary is None or (not only_scores and summary.is_to_ask(retry_errors=retry_errors)):
            to_ask.append(sample)
        else:
            done.append(sample)
            errors += summary.is_error
    return RunPlan(to_ask, sorted(done, key=lambda sample: sample.position), errors)
