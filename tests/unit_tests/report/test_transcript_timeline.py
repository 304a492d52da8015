from graphrag_eval_lc.report.transcript import call_starts, timeline, transcript


def test_times_are_relative_to_the_first_call() -> None:
    steps = [
        {"name": "b", "execution_timestamp": "2026-01-05T10:00:02.5Z", "elapsed_sec": 1.0},
        {"name": "a", "execution_timestamp": "2026-01-05T12:00:00+02:00"},
        {"name": "c", "execution_timestamp": "yesterday"},
        {"name": "d", "execution_timestamp": "2026-01-05T10:00:01"},
    ]
    calls = [{"model": "m", "started_at": "2026-01-05T09:59:59.5Z"}, {"model": "m"}]
    result = {"actual_steps": steps, "llm_calls": calls}
    events = timeline(steps, call_starts(result))
    assert [event["start"] for event in events] == [3.0, 0.5, None, 1.5]
    shown = transcript(result, call_starts(result))
    assert shown is not None
    assert [call.get("start") for call in shown["calls"]] == [0.0, None]
    assert [event["duration"] for event in events] == [1.0, None, None, None]


def test_nested_calls_are_indented_and_unknown_parents_ignored() -> None:
    steps = [
        {"name": "outer", "id": "1"},
        {"name": "inner", "id": "2", "parent_id": "1"},
        {"name": "innermost", "id": "3", "parent_id": "2"},
        {"name": "lost", "id": "4", "parent_id": "9"},
        {"name": "own child", "id": "5", "parent_id": "5"},
    ]
    assert [event["depth"] for event in timeline(steps)] == [0, 1, 2, 0, 0]


def test_retries_errors_notes_and_measures_are_shown() -> None:
    (event,) = timeline(
        [
            {
                "name": "retrieval",
                "status": "error",
                "error": "away\x00",
                "output": "away\x00",
                "attempts": 2,
                "comparison_error": "no JSON",
                "retrieval_context_f1": 0.5,
                "retrieval_context_f1_cost": 0.1,
                "retrieval_context_f1_reason": "so",
            }
        ]
    )
    assert (event["error"], event["attempts"], event["note"]) == ("away␀", 2, "no JSON")
    assert event["measures"] == [{"name": "retrieval_context_f1", "value": 0.5}]
    assert "output" not in event


def test_original_tool_output_is_shown_if_the_agent_changed_it() -> None:
    steps = [
        {"name": "a", "status": "success", "output": "short", "tool_output": "long"},
        {"name": "b", "status": "success", "output": "none", "tool_error": "away", "cached": True},
        {"name": "c", "status": "success", "output": "same", "cached": "yes"},
    ]
    keys = ("output", "tool_output", "tool_error", "cached")
    assert [{key: event[key] for key in keys if key in event} for event in timeline(steps)] == [
        {"output": "short", "tool_output": "long"},
        {"output": "none", "tool_error": "away", "cached": True},
        {"output": "same"},
    ]


def test_model_calls_are_totalled_by_model() -> None:
    calls = [
        {"model": "m", "total_tokens": 5, "elapsed_sec": 0.5, "cost": 0.25},
        {"model": "m", "total_tokens": 7, "elapsed_sec": 0.25},
        {"error": "away"},
    ]
    shown = transcript({"llm_calls": calls})
    assert shown is not None
    assert shown["models"] == [
        {"model": "m", "calls": 2, "failed": 0, "tokens": 12, "seconds": 0.75, "usd": 0.25},
        {"model": "unknown model", "calls": 1, "failed": 1},
    ]
    assert transcript({}) is None
