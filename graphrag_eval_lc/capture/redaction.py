"""What a handler keeps of arguments, outcomes, errors, tags and metadata: redacted and cut as its options say."""

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from graphrag_eval_lc.capture.outputs import Outcome, output_text, to_plain
from graphrag_eval_lc.errors import CaptureError
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.masking import masked_secrets, masked_values
from graphrag_eval_lc.texts import shortened, text_of


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
        """Return the options themselves: they never change."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the options.

        Raises:
            CaptureError: ``redact`` cannot be pickled.
        """
        try:
            pickle.dumps(self.redact)
        except Exception as error:
            hint = "Give a function that stands at the top of a module."
            raise CaptureError(f"The function cannot be pickled: {error}", key="redact", hint=hint) from error
        return CaptureOptions, tuple(getattr(self, each.name) for each in fields(self))

    def step_name(self, tool_name: str) -> str:
        """Return the name of a tool's steps."""
        return self.step_names.get(tool_name, tool_name)

    def wants_documents(self, tool_name: str) -> bool:
        """Return whether a tool's output is to be the documents that it retrieved."""
        if isinstance(self.retrieval_documents, bool):
            return self.retrieval_documents
        return tool_name in self.retrieval_documents

    @property
    def redacts_answers(self) -> bool:
        """Whether the answer is redacted too: of secrets it is, of what a function of the user's does it is not."""
        return self.redact is masked_secrets


SECRETS: Final = "secrets"
"""In place of a function: masks the secrets that the package knows, see ``masking``."""

REDACTION_FAILED = "[redaction failed]"


def redacted(value: Any, options: CaptureOptions, what: str, warnings: list[str]) -> Any:
    """Return what ``redact`` makes of a plain JSON value, as one; a fixed text where it raises.

    The warning names only the type of the exception, whose message may hold what was to be redacted.
    """
    if options.redact is None:
        return value
    try:
        return to_plain(options.redact(to_plain(value)))
    except Exception as error:
        warnings.append(f"redact raised {type(error).__name__} on the {what}, which is left out")
        return REDACTION_FAILED


def kept_text(text: str, options: CaptureOptions, what: str, warnings: list[str]) -> str:
    """Return an error or another text as it is kept."""
    return text if options.redact is None else output_text(redacted(text, options, what, warnings))


def kept_args(args: dict[str, Any], options: CaptureOptions, tool_name: str, warnings: list[str]) -> dict[str, Any]:
    """Return the arguments, a plain JSON dict, as they are kept."""
    if options.redact is None:
        return args
    kept = redacted(args, options, f"args of {options.step_name(tool_name)}", warnings)
    return kept if isinstance(kept, dict) else {"args": kept}


def kept_outcome(
    outcome: Outcome,
    options: CaptureOptions,
    tool_name: str,
    warnings: list[str],
    retrieved: tuple[list[dict[str, Any]] | None, int | None] = (None, None),
) -> Outcome:
    """Return what is kept of an outcome; ``retrieved`` are the tool's documents, and how many were asked for."""
    status, text, artifact = outcome[:3]
    if status == "pending":
        return outcome
    name, full_length, k = options.step_name(tool_name), None, None
    if status == "success" and options.wants_documents(tool_name):
        documents, k = retrieved
        text = text if documents is None else json_text(documents)
    text = kept_text(text, options, f"{'output' if status == 'success' else 'error'} of {name}", warnings)
    if options.max_output_chars is not None and len(text) > options.max_output_chars:
        text, full_length = text[: options.max_output_chars], len(text)
    if not options.keep_artifacts:
        artifact = None
    elif artifact is not None:
        artifact = redacted(to_plain(artifact), options, f"artifact of {name}", warnings)
    return Outcome(status, text, artifact, full_length, k)


def asked_k(metadata: Mapping[str, Any] | None) -> int | None:
    """Return the number of documents asked for: ``k`` of a retriever's metadata, else None."""
    k = (metadata or {}).get("k")
    return k if isinstance(k, int) and not isinstance(k, bool) and k > 0 else None


_MOST_ENTRIES = 100
_LONGEST_TAG = 200
_LONGEST_TEXT = 1_000
_OWN_TAGS = ("graph:step:", "seq:step:")  # LangChain's and langgraph's, as the prefixes below
_OWN_PREFIXES = ("ls_", "lc_", "langgraph_", "__pregel")
_OWN_KEYS = frozenset({"question_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map"})
_SCALARS = frozenset({str, int, bool, type(None)})


def kept_tags(tags: list[str] | None) -> list[str]:
    """Return the tags of a root run without LangChain's and langgraph's own."""
    if not tags:
        return []
    own = [text_of(tag) for tag in tags[:_MOST_ENTRIES]]
    return [shortened(tag, _LONGEST_TAG, keeps_lines=True) for tag in own if not tag.startswith(_OWN_TAGS)]


def kept_metadata(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the metadata of a root run, without the question's id and LangChain's and langgraph's own keys.

    It is a deep copy of plain JSON values. Of values that are longer than 1,000 characters as JSON it has the beginning
    of that, and 100 keys at most, which the key ``…`` says.

    Example:
        >>> kept_metadata({"question_id": "q1", "team": "grid", "ls_integration": "langgraph"})
        {'team': 'grid'}
    """
    kept: dict[str, Any] = {}
    for key, value in (metadata or {}).items():
        name = key if type(key) is str else text_of(key)
        if name in _OWN_KEYS or name.startswith(_OWN_PREFIXES):
            continue
        if len(kept) == _MOST_ENTRIES:
            kept["…"] = f"only {_MOST_ENTRIES} keys are kept"
            break
        plain = value if type(value) in _SCALARS else to_plain(value)
        text = plain if isinstance(plain, str) else json_text(plain)
        kept[name] = plain if len(text) <= _LONGEST_TEXT else shortened(text, _LONGEST_TEXT, keeps_lines=True)
    return kept


def shown_config(tags: list[str], metadata: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Return copies of tags and metadata in which secrets are masked.

    Example:
        >>> shown_config(["nightly"], {"api_key": "abc"})
        (['nightly'], {'api_key': '***'})
    """
    return masked_values(tags) if tags else [], masked_values(metadata) if metadata else {}
