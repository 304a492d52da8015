"""The samples of a run, each a question with its repeat, and which of them are still to be asked."""

from collections.abc import Sequence
from dataclasses import dataclass

from graphrag_eval_lc.records import Question, Template
from graphrag_eval_lc.run_folder import Journal, Key


@dataclass(frozen=True, slots=True)
class Sample:
    """One question, asked once.

    Attributes:
        position: Its place among the results: by question in the dataset's order, then by repeat.
        template: The question's template.
        question: The question.
        repeat: Which of its repeats, from 1.
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
        to_ask: The samples to be asked, repeat by repeat.
        done: Those that are answered already, in the order of results.
        errors: How many of those failed.
    """

    to_ask: Sequence[Sample]
    done: Sequence[Sample]
    errors: int = 0

    @property
    def total(self) -> int:
        """The number of samples of the whole run."""
        return len(self.to_ask) + len(self.done)


def samples_of(questions: Sequence[tuple[Template, Question]], repeats: int) -> list[Sample]:
    """Give the samples in the order in which they are asked: the first repeat of all questions, then the second."""
    return [
        Sample(index * repeats + repeat - 1, template, question, repeat)
        for repeat in range(1, repeats + 1)
        for index, (template, question) in enumerate(questions)
    ]


def planned(
    samples: Sequence[Sample], journal: Journal | None, *, retry_errors: bool, changed: frozenset[str] = frozenset()
) -> RunPlan:
    """Give what is to be asked.

    Args:
        samples: All samples of the run.
        journal: The responses of earlier sessions.
        retry_errors: Whether failed samples are asked again; interrupted ones always are.
        changed: The ids of questions that are asked again, since their text is another one now.
    """
    to_ask: list[Sample] = []
    done: list[Sample] = []
    errors = 0
    for sample in samples:
        summary = None if journal is None else journal.summary(sample.key)
        is_done = summary is not None and not summary.is_interrupted and sample.key[0] not in changed
        if summary is None or not is_done or (retry_errors and summary.is_error):
            to_ask.append(sample)
        else:
            done.append(sample)
            errors += summary.is_error
    done.sort(key=lambda sample: sample.position)
    return RunPlan(to_ask, done, errors)
