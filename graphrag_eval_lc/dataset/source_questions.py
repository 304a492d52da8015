"""Questions as a published dataset has them, whatever its format, with what is wrong with each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphrag_eval_lc.dataset.gold import Gold
from graphrag_eval_lc.dataset.query_language import Language
from graphrag_eval_lc.dataset.validation import Problem
from graphrag_eval_lc.texts import counted, listed


@dataclass(frozen=True, slots=True)
class SourceQuestion:
    """A question.

    Attributes:
        id: Its id, as a text.
        text: What the agent is asked.
        query: The query that answers it.
        language: Its language; None if nothing tells it.
        gold: The results of that query.
        answer: The answer in words.
        response: The answer of a model, which is not gold.
        relevant_ids: What a search should find.
        template_id: The template that it belongs to.
        kept: Further keys, which are handed through.
    """

    id: str
    text: str
    query: str | None = None
    language: Language | None = None
    gold: Gold | None = None
    answer: str | None = None
    response: str | None = None
    relevant_ids: Any = None
    template_id: str | None = None
    kept: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class SourceDataset:
    """A dataset.

    Attributes:
        path: Its file.
        template_id: The template of questions that name none.
        questions: The questions that can be imported.
        problems: What is wrong with questions; those that are an error are left out, unless the text says otherwise.
        notes: Further sentences for the user.
    """

    path: str
    template_id: str
    questions: list[SourceQuestion] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add_problem(self, what: str, hint: str, *, question_id: str | None = None, line: int | None = None) -> None:
        """Add what is wrong with a question, which is left out or lacks something."""
        self.problems.append(Problem(what, hint, path=self.path, line=line, question_id=question_id))


def note_on(what: str, ids: Sequence[str], hint: str = "") -> list[str]:
    """Return a sentence on some questions; none without any.

    Example:
        >>> note_on("Without a query", ["7", "12"])
        ['Without a query (2 questions): 7, 12.']
    """
    return [f"{what} ({counted(len(ids), 'question')}): {listed(ids, 10)}.{' ' * bool(hint)}{hint}"] if ids else []


def unique_ids(questions: Sequence[SourceQuestion]) -> Iterator[tuple[str, SourceQuestion]]:
    """Yield each question with an id that no other has: the first keeps its own, later ones get a number.

    Example:
        >>> [identifier for identifier, _ in unique_ids([SourceQuestion("7", "Who?"), SourceQuestion("7", "Why?")])]
        ['7', '7-2']
    """
    taken = {question.id for question in questions}
    seen: set[str] = set()
    for question in questions:
        identifier, number = question.id, 2
        while identifier in seen or (identifier in taken and identifier != question.id):
            identifier, number = f"{question.id}-{number}", number + 1
        seen.add(identifier)
        yield identifier, question
