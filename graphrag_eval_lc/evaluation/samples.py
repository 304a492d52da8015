"""The samples of a run: the selected questions and their repeats, and which of them are still to be asked."""

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphrag_eval_lc.evaluation.shards import Shard
from graphrag_eval_lc.records import Question, QuestionWithTemplate, Template
from graphrag_eval_lc.run_folder import Key, Summary

if TYPE_CHECKING:
    from graphrag_eval_lc.judges.request_plan import RequestPlan

MOST_REPEATS = 100_000  # of a question, in one run


@dataclass(frozen=True, slots=True)
class Sample:
    """One question, asked once.

    Attributes:
        position: Its index among the results: by question in the dataset's order, then by repeat.
        template: The question's template.
        question: The question.
        repeat: The number of the repeat, from 1.
        key: The key of its response in the journal.
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
    """Return the samples in the order in which they are asked: the first repeat of all questions, then the second.

    Args:
        questions: The questions with their templates, in the dataset's order.
        repeats: How many times each is asked.
        shard: The part of the samples, in the same order as in the whole run; None: all.
    """
    return [
        Sample(index * repeats + repeat - 1, template, question, repeat)
        for repeat in range(1, repeats + 1)
        for index, (template, question) in enumerate(questions)
        if shard is None or shard.has((str(question["id"]), repeat))
    ]


def recorded_samples(questions: Sequence[QuestionWithTemplate], keys: Iterable[Key]) -> list[Sample]:
    """Return the samples that responses with these keys answer; a question without any is a sample too."""
    repeats: dict[str, list[int]] = {}  # of the few that have others than the first alone
    answered: set[str] = set()
    for question_id, repeat in keys:
        if repeat != 1 or question_id in repeats:
            repeats.setdefault(question_id, [1] if question_id in answered else []).append(repeat)
        else:
            answered.add(question_id)
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

    Args:
        samples: All samples of the run.
        known: Tells of the responses of earlier sessions; None: there are none.
        retry_errors: Whether failed samples are asked again; interrupted ones always are.
        only_scores: Whether nothing is asked again: an interrupted response counts as it is.
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
