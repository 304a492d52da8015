"""A model's answer as text, and what is wrong with its form."""

import re
from typing import TypeVar

from pydantic import BaseModel, ValidationError

Answer = TypeVar("Answer", bound=BaseModel)

_FENCED = re.compile(r"\s*```[a-zA-Z]*\s*\n(.*?)\n?\s*```\s*", re.DOTALL)
_MOST_PROBLEMS = 5
_LONGEST_PART = 200


class WrongFormError(Exception):
    """An answer that does not have the form that was asked for; its text says what is wrong."""


def answer_in(text: str, form: type[Answer]) -> Answer:
    """Give the answer that a text holds as JSON, alone or in a Markdown fence.

    Raises:
        WrongFormError: It is none.

    Example:
        >>> class Verdict(BaseModel):
        ...     verdict: int
        >>> answer_in('{"verdict": 1}', Verdict)
        Verdict(verdict=1)
    """
    fenced = _FENCED.fullmatch(text)
    try:
        return form.model_validate_json(fenced[1] if fenced else text)
    except ValidationError as problem:
        raise WrongFormError(_problems(problem)) from None


def _problems(problem: ValidationError) -> str:
    errors = problem.errors(include_url=False, include_context=False, include_input=False)
    texts = []
    for error in errors[:_MOST_PROBLEMS]:
        place = ".".join(map(str, error["loc"]))
        texts.append(f"{place}: {error['msg']}"[:_LONGEST_PART] if place else error["msg"][:_LONGEST_PART])
    return "; ".join(texts)
