"""What is kept of a step's arguments and of its end: a retriever's documents, redacted, and no longer than allowed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal, NamedTuple

from langchain_core.documents import Document
from langchain_core.messages import ToolMessage

from graphrag_eval_lc.capture.mcp_results import mcp_text
from graphrag_eval_lc.capture.options import CaptureOptions
from graphrag_eval_lc.capture.outputs import document_value, message_text, output_text, to_plain
from graphrag_eval_lc.json_values import json_text

REDACTION_FAILED = "[redaction failed]"


class _NoArtifact:
    """Stands for no artifact, also in a copy of a handler."""

    def __reduce__(self) -> str:
        return "NO_ARTIFACT"


NO_ARTIFACT: Any = _NoArtifact()


class Ending(NamedTuple):
    """How a call ended: its status, its output or error, and the artifact as the tool gave it."""

    status: Literal["pending", "success", "error"]
    text: str
    artifact: Any = NO_ARTIFACT


class KeptEnding(NamedTuple):
    """What is kept of an ending.

    Attributes:
        status: ``pending`` where the tool waits for somebody.
        text: The output, or the error.
        artifact: A plain JSON value, or ``NO_ARTIFACT``.
        full_length: The characters that the text had, where it was cut.
        text_hash: The hash of the text before any option was applied: by it the message is found that holds it.
        k: The number of documents that a retriever was asked for, where that is known.
        warnings: What is to be warned of.
        ended: The ``perf_counter`` at the end, before any option was applied; None for now.
    """

    status: Literal["pending", "success", "error"]
    text: str
    artifact: Any = NO_ARTIFACT
    full_length: int | None = None
    text_hash: int | None = None
    k: int | None = None
    warnings: Sequence[str] = ()
    ended: float | None = None


@dataclass(slots=True, eq=False)
class Retrieval:
    """A retriever's run inside a tool: the number of documents asked for, and what it gave once it has ended."""

    k: int | None
    documents: list[dict[str, Any]] | None = None


def message_ending(message: ToolMessage) -> Ending:
    """Give how a tool message says that its call ended."""
    artifact = NO_ARTIFACT if message.artifact is None else message.artifact
    if message.status == "error":
        return Ending("error", message_text(message).strip() or "error without a message", artifact)
    text = mcp_text(message.content, message.artifact)
    return Ending("success", message_text(message) if text is None else text, artifact)


def output_ending(output: Any, message: ToolMessage | None) -> Ending:
    """Give how a tool's own end says that its call ended.

    Args:
        output: What the tool returned.
        message: The tool message in it that answers the call, where there is one.
    """
    if message is not None:
        return message_ending(message)
    text = mcp_text(output) if type(output) is list else None
    return Ending("success", output_text(output) if text is None else text)


def kept_args(args: dict[str, Any], options: CaptureOptions, tool_name: str, warnings: list[str]) -> dict[str, Any]:
    """Give the arguments as they are kept.

    Args:
        args: A plain JSON dict; it is not changed.
        options: The handler's options.
        tool_name: The name of the tool, for warnings.
        warnings: Takes what is to be warned of.
    """
    if options.redact is None:
        return args
    kept = redacted(args, options, f"args of {options.step_name(tool_name)}", warnings)
    return kept if isinstance(kept, dict) else {"args": kept}


def kept_text(text: str, options: CaptureOptions, what: str, warnings: list[str]) -> str:
    """Give an error or another text as it is kept."""
    return text if options.redact is None else output_text(redacted(text, options, what, warnings))


def redacted(value: Any, options: CaptureOptions, what: str, warnings: list[str]) -> Any:
    """Give what the option ``redact`` makes of a plain JSON value, as one; a fixed text where it raises.

    The warning names the type of the exception only: its message may hold what was to be redacted.
    """
    if options.redact is None:
        return value
    try:
        return to_plain(options.redact(to_plain(value)))
    except Exception as error:
        warnings.append(f"redact raised {type(error).__name__} on the {what}, which is left out")
        return REDACTION_FAILED


def kept_ending(
    ending: Ending, options: CaptureOptions, tool_name: str, retrievals: Iterable[Retrieval] = ()
) -> KeptEnding:
    """Give what is kept of an ending.

    Args:
        ending: How the call ended.
        options: The handler's options.
        tool_name: The name of the tool.
        retrievals: The runs of retrievers inside the tool, where their documents are wanted.
    """
    ended = perf_counter()
    status, text, artifact = ending
    if status == "pending":
        return KeptEnding(status, text, ended=ended)
    text_hash, k, full_length = hash(text), None, None
    name, warnings = options.step_name(tool_name), list[str]()
    if status == "success" and options.retrieval_documents and options.wants_documents(tool_name):
        documents, k = _retrieved(list(retrievals), artifact)
        text = text if documents is None else json_text(documents)
    text = kept_text(text, options, f"{'output' if status == 'success' else 'error'} of {name}", warnings)
    if options.max_output_chars is not None and len(text) > options.max_output_chars:
        text, full_length = text[: options.max_output_chars], len(text)
    if artifact is not NO_ARTIFACT:
        artifact = _kept_artifact(artifact, options, name, warnings)
    return KeptEnding(status, text, artifact, full_length, text_hash, k, warnings, ended)


def _kept_artifact(artifact: Any, options: CaptureOptions, name: str, warnings: list[str]) -> Any:
    if not options.keep_artifacts:
        return NO_ARTIFACT
    return redacted(to_plain(artifact), options, f"artifact of {name}", warnings)


def _retrieved(retrievals: Sequence[Retrieval], artifact: Any) -> tuple[list[dict[str, Any]] | None, int | None]:
    """Give the documents that a tool retrieved and the number asked for; several retrievers have no common one.

    A tool that asks a vector store itself has no retriever, but often its documents as the artifact.
    """
    ended = [retrieval for retrieval in retrievals if retrieval.documents is not None]
    if ended:
        documents = [document for retrieval in ended for document in retrieval.documents or ()]
        return documents, ended[0].k if len(ended) == 1 else None
    if isinstance(artifact, list) and artifact and all(isinstance(item, Document) for item in artifact):
        return [document_value(document) for document in artifact], None
    return None, None


def asked_k(metadata: Mapping[str, Any] | None) -> int | None:
    """Give the number of documents asked for, as a retriever's metadata has it under ``k``; else None."""
    k = (metadata or {}).get("k")
    return k if isinstance(k, int) and not isinstance(k, bool) and k > 0 else None
