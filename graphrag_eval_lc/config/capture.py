"""The section on capture: what the handler keeps of the runs that it records, and under which names."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from graphrag_eval_lc.config.section import Section, mistake

_Name = Annotated[str, Field(min_length=1)]


def _switch_or_names(value: Any) -> Any:
    is_names = isinstance(value, list) and all(isinstance(name, str) and name for name in value)
    if isinstance(value, bool) or is_names:
        return value
    raise mistake(f"{value!r:.80} is not allowed here", "Give true, false or a list of tool names.")


def _spec(value: Any) -> Any:
    if value is None:
        return None
    if not isinstance(value, str):
        what = "a function cannot stand in a config" if callable(value) else f"{value!r:.80} is no spec of a function"
        mend = "Name it as text, package.module:function, or pass capture={'redact': function} to run_benchmark."
        raise mistake(what, mend)
    place, _, attribute = value.rpartition(":")
    if not place or not attribute:
        mend = "Write package.module:function or path/to/file.py:function."
        raise mistake(f"{value!r:.80} is no spec of a function", mend)
    return value


class CaptureConfig(Section):
    """What is kept of the agent's runs while they are recorded; see ``GraphRAGEvalCallbackHandler``.

    It counts where an agent is asked. Where recorded responses are scored it changes nothing, and nothing that it
    names is imported.

    Attributes:
        step_names: The steps' names in the responses by tool name, for other readers of these; ``steps.names`` gives
            tools the names of the reference steps, and can still be changed when a run is scored again.
        retrieval_documents: Whether the output of a retriever tool is its documents, as a JSON array of ``{id, text}``:
            true for all tools, or the names of some.
        max_output_chars: The number of characters to which outputs and errors of steps are cut; None: they are not.
        redact: The spec of a function that is applied to args, outputs, artifacts, errors and messages before they
            are kept: ``package.module:function`` or ``path/to/file.py:function``, as seen from the current folder.
        keep_artifacts: Whether steps have what a tool gives beside its text.
        keep_messages: Whether responses have what each model call was given and gave.

    Example:
        >>> CaptureConfig(retrieval_documents=["search_docs"]).keep_artifacts
        True
    """

    step_names: dict[_Name, _Name] = Field(default_factory=dict)
    retrieval_documents: Annotated[bool | list[str], BeforeValidator(_switch_or_names)] = False
    max_output_chars: int | None = Field(default=None, ge=0)
    redact: Annotated[str | None, BeforeValidator(_spec)] = None
    keep_artifacts: bool = True
    keep_messages: bool = False
