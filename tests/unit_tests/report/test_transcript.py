from typing import Any

import pytest

from graphrag_eval_lc.report.transcript import transcript

MESSAGES = [
    {"role": "system", "content": "You know."},
    {"role": "user", "content": [{"type": "text", "text": "why?"}, {"type": "image", "base64": "<9 characters>"}]},
    {
        "role": "assistant",
        "content": "",
        "name": "boss",
        "tool_calls": [{"name": "search", "args": {"query": "a"}, "id": "c1"}],
    },
    {"role": "tool", "content": "away\u202e", "tool_call_id": "c1", "status": "error", "full_length": 7_000},
    {"role": "assistant", "content": "so"},
]
CALLS: list[dict[str, Any]] = [
    {
        "model": "m",
        "input_messages": [[0, 2]],
        "output_message": 2,
        "total_tokens": 12,
        "elapsed_sec": 0.5,
        "cost": 0.002,
        "finish_reason": "tool_calls",
        "first_token_sec": 0.1,
        "agent": "boss",
        "node": "model",
        "node_path": ["team", "model"],
        "parent_id": "c0",
        "tools": [[0, 2]],
    },
    {"input_messages": [[0, 4]], "output_message": 4, "node": "model"},
]
TOOLS = [{"type": "function", "function": {"name": "search"}}, {"name": "add", "input_schema": {}}]
RESULT = {"llm_messages": MESSAGES, "llm_calls": CALLS, "llm_tools": TOOLS}


def found(**changes: Any) -> dict[str, Any]:
    shown = transcript({**RESULT, **changes})
    assert shown is not None
    return shown


def test_each_call_shows_only_new_messages() -> None:
    first, second = found()["calls"]
    assert (first["before"], first["new"], first["gave"]) == ([], [0, 1], 2)
    assert (second["before"], second["new"], second["gave"]) == ([[0, 3]], [3], 4)


def test_call_has_its_position_and_costs() -> None:
    first, second = found()["calls"]
    keys = ("model", "agent", "node", "step", "tokens", "seconds", "first_token", "usd", "finish")
    assert {key: first[key] for key in keys} == {
        "usd": 0.002,
        "finish": "tool_calls",
        "model": "m",
        "agent": "boss",
        "node": "team › model",
        "step": "c0",
        "tokens": 12,
        "seconds": 0.5,
        "first_token": 0.1,
    }
    assert first["tools"] == ["search", "add"]
    assert (second["model"], second["node"]) == ("unknown model", "model")
    assert not {"agent", "step", "tokens", "tools", "error"} & second.keys()


def test_messages_are_shown_as_text() -> None:
    assert found()["messages"] == [
        {"role": "system", "text": "You know."},
        {"role": "user", "text": 'why?\n{"type": "image", "base64": "<9 characters>"}'},
        {"role": "assistant", "name": "boss", "calls": [{"name": "search", "args": "query: a", "id": "c1"}]},
        {
            "role": "tool",
            "answers": "c1",
            "is_error": True,
            "text": "away⟨U+202E⟩",
            "note": "cut; it had 7,000 characters",
        },
        {"role": "assistant", "text": "so"},
    ]


@pytest.mark.parametrize(
    "result",
    [
        {"llm_calls": CALLS},
        {"llm_messages": "a question's own key", "llm_calls": CALLS},
        {"llm_messages": MESSAGES, "llm_calls": [{"model": "m"}]},
    ],
)
def test_calls_without_recorded_messages_have_none(result: dict[str, Any]) -> None:
    shown = transcript(result)
    assert shown is not None
    assert shown["messages"] == []
    assert len(shown["calls"]) == len(result["llm_calls"])
    assert not any({"before", "new", "gave"} & call.keys() for call in shown["calls"])


def test_without_recorded_calls_there_is_no_transcript() -> None:
    assert transcript({}) is transcript({"llm_messages": MESSAGES, "llm_calls": "x"}) is None


def test_malformed_calls_are_skipped() -> None:
    calls: list[Any] = [
        {"input_messages": [[0, 99], [-3, 1], [1], "x", ["a", 2], None], "output_message": 99, "tools": [[0, 9]]},
        {"input_messages": 3, "output_message": True, "model": 7, "error": ""},
        "no call",
    ]
    shown = found(llm_calls=calls, llm_messages=[*MESSAGES, None, 3, {"tool_calls": [3, {}], "content": {"a": 1}}])
    assert shown["calls"][0]["new"] == list(range(8))
    assert "gave" not in shown["calls"][0]
    assert [message["role"] for message in shown["messages"][-3:]] == ["message"] * 3


def test_long_transcript_is_bounded() -> None:
    messages = [{"role": "user", "content": "x" * 50_000} for _ in range(5_000)]
    calls = [{"input_messages": [[0, index]], "output_message": index} for index in range(5_000)]
    shown = found(llm_messages=messages, llm_calls=calls)
    assert (len(shown["calls"]), shown["left_out"]) == (200, 4_800)
    assert sum(len(str(message)) for message in shown["messages"] if message) < 250_000
    assert shown["messages"][150]["note"].startswith("left out, as the transcript is long")
    assert shown["messages"][3_000] is None


def test_transcript_of_a_long_loop_grows_linearly() -> None:
    sizes = []
    for turns in (50, 100):
        messages = [{"role": "user", "content": "word"} for _ in range(2 * turns)]
        calls = [{"input_messages": [[0, 2 * turn + 1]], "output_message": 2 * turn + 1} for turn in range(turns)]
        sizes.append(len(str(found(llm_messages=messages, llm_calls=calls))))
    assert sizes[1] < 2.1 * sizes[0]
