"""The questions of a dataset that a run is of, with their templates."""

from array import array
from collections.abc import Callable, Iterable, Sequence

from graphrag_eval_lc.made_list import MadeList
from graphrag_eval_lc.records import Question, Template


class QuestionList(MadeList[tuple[Template, Question]]):
    """Questions with their templates, of which little is kept beside the dataset: 12 bytes each.

    Args:
        templates: The dataset.
        questions: Of each question the place of its template, and the question.
    """

    def __init__(self, templates: Sequence[Template], questions: Iterable[tuple[int, Question]] = ()) -> None:
        self._templates = templates
        self._places = array("I")
        self._questions: list[Question] = []
        for place, question in questions:
            self._places.append(place)
            self._questions.append(question)

    @classmethod
    def of(cls, templates: Sequence[Template]) -> "QuestionList":
        """Return all questions of a dataset, in its order."""
        places = enumerate(templates)
        return cls(
            templates, ((place, question) for place, template in places for question in template.get("questions") or ())
        )

    def __len__(self) -> int:
        return len(self._questions)

    def _made(self, place: int) -> tuple[Template, Question]:
        return self._templates[self._places[place]], self._questions[place]

    def chosen(self, places: Iterable[int]) -> "QuestionList":
        """Return the questions at some places of this list, from 0."""
        return QuestionList(self._templates, ((self._places[place], self._questions[place]) for place in places))

    def those(self, wanted: Callable[[Template, Question], bool]) -> "QuestionList":
        """Return the questions that are wanted."""
        return self.chosen(place for place, pair in enumerate(self) if wanted(*pair))
