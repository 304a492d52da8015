"""The options of a handler: what it keeps of the runs that it records, and under which names."""

import pickle
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypedDict

from graphrag_eval_lc.errors import CaptureError


class CaptureKeywords(TypedDict, total=False):
    """The keywords of ``GraphRAGEvalCallbackHandler``, for those who hand them on to it."""

    step_names: Mapping[str, str] | None
    retrieval_documents: bool | Collection[str]
    max_output_chars: int | None
    redact: Callable[[Any], Any] | None
    keep_artifacts: bool
    keep_messages: bool


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """The options of one handler, checked; the handler's docstring says what they mean."""

    step_names: Mapping[str, str] = field(default_factory=dict)
    retrieval_documents: bool | frozenset[str] = False
    max_output_chars: int | None = None
    redact: Callable[[Any], Any] | None = None
    keep_artifacts: bool = True
    keep_messages: bool = False

    def __deepcopy__(self, memo: dict[int, Any]) -> "CaptureOptions":
        """Give the options themselves: they never change."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Say what to do where a handler is pickled with a function that cannot be.

        Raises:
            CaptureError: ``redact`` cannot be pickled.
        """
        try:
            pickle.dumps(self.redact)
        except Exception as error:
            mend = "Give a function that stands at the top of a module."
            raise CaptureError(f"The function cannot be pickled: {error}", key="redact", mend=mend) from error
        return CaptureOptions, tuple(getattr(self, each.name) for each in fields(self))

    def step_name(self, tool_name: str) -> str:
        """Give the name that the steps of a tool have."""
        return self.step_names.get(tool_name, tool_name)

    def wants_documents(self, tool_name: str) -> bool:
        """Tell whether the output of a tool gives way to the documents that it retrieved."""
        if isinstance(self.retrieval_documents, bool):
            return self.retrieval_documents
        return tool_name in self.retrieval_documents


def checked_options(
    step_names: Mapping[str, str] | None,
    retrieval_documents: bool | Collection[str],
    max_output_chars: int | None,
    redact: Callable[[Any], Any] | None,
    keep_artifacts: bool,
    keep_messages: bool = False,
) -> CaptureOptions:
    """Give the options, which later changes of the values passed in leave as they are.

    Raises:
        CaptureError: An option has a value that it cannot have.
    """
    return CaptureOptions(
        step_names=_names(step_names),
        retrieval_documents=_tools(retrieval_documents),
        max_output_chars=_length(max_output_chars),
        redact=_function(redact),
        keep_artifacts=_switch("keep_artifacts", keep_artifacts),
        keep_messages=_switch("keep_messages", keep_messages),
    )


def checked_question_id(value: object) -> str:
    """Give the id of a question as a text.

    Raises:
        CaptureError: It is none.
    """
    if (isinstance(value, str) and value) or (isinstance(value, int) and not isinstance(value, bool)):
        return str(value)
    raise _wrong("question_id", value, "Give a text or a whole number.")


def _names(value: object) -> dict[str, str]:
    if value is None:
        return {}
    if isinstance(value, Mapping) and all(_is_name(tool) and _is_name(step) for tool, step in value.items()):
        return dict(value)
    raise _wrong("step_names", value, "Give a dict of tool name to step name, both of them texts.")


def _tools(value: object) -> bool | frozenset[str]:
    if isinstance(value, bool):
        return value
    if isinstance(value, Collection) and not isinstance(value, str | bytes) and all(_is_name(tool) for tool in value):
        return frozenset(value)
    raise _wrong("retrieval_documents", value, "Give True, False or a list of tool names.")


def _length(value: object) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise _wrong("max_output_chars", value, "Give a whole number from 0, or None for no limit.")


def _function(value: object) -> Callable[[Any], Any] | None:
    if value is None or callable(value):
        return value
    raise _wrong("redact", value, "Give a function that takes a value and gives what is kept in its place.")


def _switch(option: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise _wrong(option, value, "Give True or False.")


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _wrong(option: str, value: object, mend: str) -> CaptureError:
    return CaptureError(f"{value!r:.80} is no value for the option", key=option, mend=mend)
