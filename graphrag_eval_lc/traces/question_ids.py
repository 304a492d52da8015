"""Which question of a dataset a trace answers: by the id in its metadata, else by the question's text."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

from graphrag_eval_lc.dataset.loading import questions_of
from graphrag_eval_lc.errors import ResponsesError
from graphrag_eval_lc.records import Response, Template
from graphrag_eval_lc.texts import counted, listed, shortened

_BLANKS = re.compile(r"\s+")
_SHOWN = 60
_MOST_SHOWN = 3


class QuestionIds:
    """Gives responses the ids of the questions that they answer.

    If several traces answer the same question, each becomes one repeat, in the order given.

    Args:
        templates: The dataset; None: only the ids in the traces are known.

    Attributes:
        unknown: The questions in the traces that are not in the dataset; None for a trace without a question.

    Example:
        >>> dataset = [{"template_id": "t", "questions": [{"id": "q1", "question_text": "How many lines?"}]}]
        >>> response = QuestionIds(dataset).named({"question_text": " how many  lines? "})
        >>> response["question_id"]
        'q1'
    """

    def __init__(self, templates: Iterable[Template] | None) -> None:
        self.unknown: list[str | None] = []
        self._ids: set[str] | None = None if templates is None else set()
        self._by_text: dict[str, dict[str, None]] = {}
        self._by_folded: dict[str, dict[str, None]] = {}
        self._repeats: dict[str, int] = {}
        for _, question in questions_of(list(templates or ())):
            identifier, text = str(question["id"]), str(question["question_text"])
            assert self._ids is not None
            self._ids.add(identifier)
            self._by_text.setdefault(text, {})[identifier] = None
            self._by_folded.setdefault(_folded(text), {})[identifier] = None

    def named(self, response: Response) -> Response | None:
        """Return a response with its question's id, and its repeat from the second on; None if none has it.

        Raises:
            ResponsesError: Several questions have its text.
        """
        identifier = self._id_of(response)
        if identifier is None:
            self.unknown.append(response.get("question_text"))
            return None
        repeat = self._repeats[identifier] = self._repeats.get(identifier, 0) + 1
        named: dict[str, Any] = {"question_id": identifier}
        if repeat > 1:
            named["repeat"] = repeat
        rest: Any = {key: value for key, value in response.items() if key not in named}
        return {**named, **rest}  # type: ignore[return-value]

    def warnings(self) -> Iterator[str]:
        """Say which traces were left out."""
        if not self.unknown:
            return
        number = len(self.unknown)
        texts = list(dict.fromkeys(text for text in self.unknown if text is not None))
        shown = "; ".join(f"“{shortened(text, _SHOWN)}”" for text in texts[:_MOST_SHOWN])
        more = f" and {len(texts) - _MOST_SHOWN:,} more" if len(texts) > _MOST_SHOWN else ""
        if self._ids is None:
            yield (
                f"{counted(number, 'trace tells', 'traces tell')} no question id and {'is' if number == 1 else 'are'} "
                "left out; a dataset (--dataset) finds the ids by the questions' texts"
            )
            return
        shown_texts = f": {shown}{more}" if shown else ", and they name no question"
        yield f"{counted(number, 'trace is', 'traces are')} of no question of the dataset and left out{shown_texts}"

    def _id_of(self, response: Response) -> str | None:
        given = response.get("question_id")
        if self._ids is None or given in self._ids:
            return given
        text = response.get("question_text")
        if text is None:
            return given
        found = self._by_text.get(text) or self._by_folded.get(_folded(text)) or {}
        if len(found) > 1:
            raise ResponsesError(
                f"{len(found)} questions have the text of a trace, “{shortened(text, _SHOWN)}”: {listed(list(found))}",
                hint='Name the right one when you ask the agent: {"metadata": {"question_id": …}}.',
            )
        return next(iter(found), given)


def _folded(text: str) -> str:
    """Return a text without what copying and typing change: white space, case, the form of letters."""
    return _BLANKS.sub(" ", unicodedata.normalize("NFKC", text)).strip().casefold()
