import pickle
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool

from graphrag_eval_lc.capture import GraphRAGEvalCallbackHandler
from graphrag_eval_lc.capture.record import ToolRun
from graphrag_eval_lc.capture.values import (
    REDACTION_FAILED,
    CaptureOptions,
    Outcome,
    kept_config,
    shown_config,
)
from graphrag_eval_lc.errors import CaptureError
from graphrag_eval_lc.masking import masked_secrets

ARGS = st.dictionaries(st.text(), st.none() | st.integers() | st.text() | st.lists(st.text()))


@given(st.text(), st.integers(0, 20))
def test_truncated_text_is_a_prefix(text: str, limit: int) -> None:
    kept = CaptureOptions(max_output_chars=limit).kept_outcome(Outcome("success", text), "search", [])
    assert kept.text == text[:limit]
    assert kept.full_length == (len(text) if len(text) > limit else None)


@given(st.text(), st.sampled_from(["success", "error"]))
def test_without_options_everything_is_kept(text: str, status: Any) -> None:
    warnings: list[str] = []
    kept = CaptureOptions().kept_outcome(Outcome(status, text, (1, 2)), "search", warnings)
    assert (kept.status, kept.text, kept.artifact, warnings) == (status, text, [1, 2], [])


@given(ARGS)
def test_redact_that_mutates_its_copy_does_not_change_the_arguments(args: dict[str, Any]) -> None:
    before = dict(args)
    assert CaptureOptions(redact=lambda value: value.clear() or value).kept_args(args, "search", []) == {}
    assert args == before


@given(ARGS)
def test_arguments_that_cannot_be_redacted_are_dropped(args: dict[str, Any]) -> None:
    warnings: list[str] = []
    kept = CaptureOptions(redact=lambda value: [][0]).kept_args(args, "search", warnings)
    assert kept == {"args": REDACTION_FAILED}
    assert warnings == ["redact raised IndexError on the args of search, which is left out"]


def test_redaction_happens_before_truncation() -> None:
    options = CaptureOptions(redact=lambda text: text.replace("secret", "*"), max_output_chars=4)
    kept = options.kept_outcome(Outcome("success", "a secret b"), "search", [])
    assert (kept.text, kept.full_length) == ("a * ", 5)


def found(k: int | None, documents: list[dict[str, Any]] | None = None) -> ToolRun:
    return ToolRun({}, k=k, documents=documents)


@pytest.mark.parametrize(
    ("retrievers", "of_artifact", "text", "k"),
    [
        ([found(3, [{"id": "a"}])], None, '[{"id": "a"}]', 3),
        ([found(3, [{"id": "a"}]), found(3, [])], None, '[{"id": "a"}]', None),
        ([found(3, [{"id": "a"}]), found(3)], None, '[{"id": "a"}]', 3),
        ([found(3, [])], [{"text": "t"}], "[]", 3),
        ([], [{"id": "a", "text": "t"}], '[{"id": "a", "text": "t"}]', None),
        ([], None, "as it was", None),
        ([found(3)], None, "as it was", None),
    ],
)
def test_documents_come_from_retrievers_or_the_artifact(retrievers, of_artifact, text, k) -> None:
    options = CaptureOptions(retrieval_documents=True)
    tool = ToolRun({}, retrievers=retrievers, documents=of_artifact)
    kept = options.kept_outcome(Outcome("success", "as it was"), "lookup", [], tool.retrieved())
    assert (kept.text, kept.k) == (text, k)
    failed = options.kept_outcome(Outcome("error", "as it was"), "lookup", [], tool.retrieved())
    assert (failed.text, failed.k) == ("as it was", None)


# --- redact="secrets" ------------------------------------------------------------------------------------------------


def test_handler_that_redacts_secrets_can_be_pickled() -> None:
    handler = pickle.loads(pickle.dumps(GraphRAGEvalCallbackHandler(redact="secrets")))
    agent: RunnableLambda[str, str] = RunnableLambda(lambda question: "password=pa55word")
    agent.invoke("Why?", config={"callbacks": [handler]})
    assert handler.response()["actual_answer"] == "password=***"


def test_redacting_handler_keeps_nothing_of_a_failed_model_call() -> None:
    def fails(*args: Any, **kwargs: Any) -> Any:
        raise ValueError("password=pa55word")

    model = GenericFakeChatModel(messages=iter([]))
    object.__setattr__(model, "_generate", fails)
    handler = GraphRAGEvalCallbackHandler(redact="secrets")
    agent: RunnableLambda[str, Any] = RunnableLambda(model.invoke)
    with pytest.raises(ValueError, match="password"):
        agent.invoke("Why?", config={"callbacks": [handler]})
    assert "password=***" in str(handler.responses())
    assert b"pa55word" not in pickle.dumps(handler)


def test_arguments_of_a_standalone_tool_are_redacted_when_it_ends() -> None:
    @tool
    def say(text: str) -> str:
        """Say it."""
        return text

    redacted: list[Any] = []
    handler = GraphRAGEvalCallbackHandler(redact=lambda value: redacted.append(value) or value)
    say.invoke({"text": "a"}, {"callbacks": [handler]})
    assert redacted == [{"text": "a"}, "a"]


# Not ASCII: hypothesis also tries strings from our sources, and "password" is one of them.
WORDLESS = st.text(st.characters(exclude_characters=string.ascii_letters, exclude_categories=["Cs"]))


@given(st.dictionaries(WORDLESS, st.none() | st.integers() | WORDLESS | st.lists(WORDLESS)))
def test_values_without_secrets_are_unchanged(args: dict[str, Any]) -> None:
    assert CaptureOptions(redact=masked_secrets).kept_args(args, "search", []) == args


def test_other_strings_are_rejected_as_redact() -> None:
    with pytest.raises(CaptureError, match='Give "secrets", or a function'):
        GraphRAGEvalCallbackHandler(redact="passwords")  # type: ignore[arg-type]


# --- tags and metadata of a run ---


def test_metadata_is_a_json_snapshot() -> None:
    given: dict[Any, Any] = {"teams": ["a"], "at": {1, 2}, 3: float("nan"), "object": object}
    _, kept = kept_config([], given)
    given["teams"].append("b")
    assert kept == {"teams": ["a"], "at": [1, 2], "3": "NaN", "object": "<class 'object'>"}


def test_metadata_is_bounded() -> None:
    _, kept = kept_config([], {"long": "x" * 5_000, "rows": list(range(100_000)), "small": 1})
    assert [len(kept["long"]), len(kept["rows"]), kept["small"]] == [1_001, 1_001, 1]


def test_secrets_are_masked_in_copies() -> None:
    metadata = {"api_key": "abc", "note": "Bearer 0123456789abcdef", "nested": {"password": "pa55"}}
    tags, shown = shown_config(["api_key=5f2a99c1"], metadata)
    assert tags == ["api_key=***"]
    assert shown == {"api_key": "***", "note": "Bearer ***", "nested": {"password": "***"}}
    assert metadata["api_key"] == "abc"
