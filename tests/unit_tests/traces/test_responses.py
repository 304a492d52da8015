"""Building responses from the calls of a trace."""

from typing import Any

from graphrag_eval_lc.records import Response
from graphrag_eval_lc.traces.responses import responses_of
from graphrag_eval_lc.traces.whole_traces import AskedCall, TracedCall, WholeTraces


def call(identifier: str, kind: Any, started: float, parent: str | None = "a", **fields: Any) -> TracedCall:
    base = {"ended": started + 0.5, "name": fields.pop("name", kind)}
    return TracedCall(trace_id="t", id=identifier, kind=kind, started=started, parent_id=parent, **{**base, **fields})


def agent(**fields: Any) -> TracedCall:
    return call("a", "agent", 0.0, None, **{"ended": 9.0, "question": "Why?", "answer": "So", **fields})


def model(identifier: str, started: float, *requesting: tuple[str, str], **fields: Any) -> TracedCall:
    tokens = {"input_tokens": 2, "output_tokens": 1, "total_tokens": 3}
    calls = [AskedCall(id=key, name=name, args={"asked": key}) for key, name in requesting]
    return call(identifier, "model", started, **{"asked": calls, "tokens": tokens, "model": "m", **fields})


def tool(identifier: str, started: float, **fields: Any) -> TracedCall:
    return call(identifier, "tool", started, **{"name": "find", "args": {"q": 1}, "output": "x", **fields})


def response(*calls: TracedCall) -> Response:
    (found,) = responses_of(calls)
    return found


def names(found: Response) -> list[str]:
    return [step["id"] for step in found["actual_steps"]]


def test_response_has_everything_the_handler_would_record() -> None:
    found = response(
        agent(metadata={"team": "x", "tags": ["y"]}), model("m", 1.0, ("c1", "find")), tool("s", 2.0, tool_call_id="c1")
    )
    assert found == {
        "question_text": "Why?",
        "status": "success",
        "actual_answer": "So",
        "actual_steps": [
            {
                "name": "find",
                "args": {"q": 1},
                "id": "c1",
                "status": "success",
                "output": "x",
                "execution_timestamp": "1970-01-01T00:00:02.000000Z",
                "elapsed_sec": 0.5,
            }
        ],
        "input_tokens": 2,
        "output_tokens": 1,
        "total_tokens": 3,
        "elapsed_sec": 9.0,
        "started_at": "1970-01-01T00:00:00.000000Z",
        "run_id": "t",
        "trace_ids": {"opentelemetry": "t", "opentelemetry_span": "a"},
        "tags": ["y"],
        "metadata": {"team": "x"},
        "llm_calls": [
            {
                "model": "m",
                "input_tokens": 2,
                "output_tokens": 1,
                "total_tokens": 3,
                "elapsed_sec": 0.5,
                "started_at": "1970-01-01T00:00:01.000000Z",
            }
        ],
    }


def test_steps_are_in_the_order_the_models_requested_them() -> None:
    requesting = model("m", 1.0, ("c1", "find"), ("c2", "find"))
    later = model("n", 4.0, ("c1", "find"))
    steps = (tool("s1", 2.2, tool_call_id="c1"), tool("s2", 2.1, tool_call_id="c2"), tool("s3", 5.0, tool_call_id="c1"))
    assert names(response(agent(), requesting, later, *steps)) == ["c1", "c2", "c1"]
    assert names(response(agent(), tool("x", 2.0), tool("y", 1.0))) == ["y", "x"]


def test_nested_steps_follow_their_parent_and_refer_to_it() -> None:
    outer = tool("outer", 2.0, tool_call_id="c1", ended=5.0)
    inner = tool("inner", 3.0, parent="outer")
    found = response(
        agent(), model("m", 1.0, ("c1", "find"), ("c2", "find")), outer, inner, tool("s", 2.1, tool_call_id="c2")
    )
    assert names(found) == ["c1", "inner", "c2"]
    assert found["actual_steps"][1]["parent_id"] == "c1"


def test_missing_tool_arguments_come_from_the_models_request() -> None:
    calls = [agent(), model("m", 1.0, ("c1", "find")), tool("s", 2.0, tool_call_id="c1", args=None)]
    found = response(*WholeTraces().completed(calls))
    assert found["actual_steps"][0]["args"] == {"asked": "c1"}
    unknown = response(agent(), tool("s", 2.0, args=None))
    assert unknown["actual_steps"][0]["args"] == {}
    text = response(agent(), tool("s", 2.0, args="plain"))
    assert text["actual_steps"][0]["args"] == {"input": "plain"}


def test_retried_call_is_one_step_with_its_attempts() -> None:
    requesting = (
        model("m1", 1.0, ("c1", "find")),
        model("m2", 5.0, ("c1", "find")),
    )  # some servers number calls in each turn
    failed = {"error": "locked", "output": None, "tool_call_id": "c1"}
    tries = tool("s1", 2.0, **failed), tool("s2", 3.0, **failed), tool("s3", 4.0, tool_call_id="c1")
    others = tool("s4", 6.0, **failed), tool("s5", 7.0, args={"q": 2}, tool_call_id="c1")
    steps = response(agent(), *requesting, *tries, *others)["actual_steps"]
    assert [(step["status"], step["args"]["q"], step.get("attempts"), step["elapsed_sec"]) for step in steps] == [
        ("success", 1, 3, 2.5),
        ("error", 1, None, 0.5),
        ("success", 2, None, 0.5),
    ]
    assert steps[0]["execution_timestamp"] == "1970-01-01T00:00:02.000000Z"


def test_failed_and_unfinished_calls_are_errors() -> None:
    found = response(agent(), tool("s", 1.0, error="no", output=None), tool("u", 2.0, ended=None, output=None))
    assert [(step["status"], step["error"]) for step in found["actual_steps"]] == [
        ("error", "no"),
        ("error", "Unfinished: the trace does not say how the call ended"),
    ]
    assert found["capture_warnings"] == ["the trace does not say how these ended, and they count as errors: find"]


def test_missing_tool_output_is_null() -> None:
    assert response(agent(), tool("s", 1.0, output=None))["actual_steps"][0]["output"] == "null"


def test_failed_agent_is_an_error_with_its_steps() -> None:
    found = response(agent(error="ValueError: no", answer=None), tool("s", 1.0))
    assert (found["status"], found["error"], names(found)) == ("error", "ValueError: no", ["s"])
    assert "actual_answer" not in found


def test_retriever_is_a_step_unless_a_tool_called_it() -> None:
    retriever = call("r", "retriever", 1.0, name="documents", args={"query": "q"}, output="[]")
    assert names(response(agent(), retriever)) == ["r"]
    inside = call("r", "retriever", 1.2, parent="s", output="[]")
    assert names(response(agent(), tool("s", 1.0), inside)) == ["s"]


def test_nested_model_is_the_same_call() -> None:
    found = response(agent(), model("m", 1.0), model("http", 1.1, parent="m"))
    assert (found["total_tokens"], len(found["llm_calls"])) == (3, 1)


def test_total_tokens_are_omitted_if_a_model_reports_none() -> None:
    found = response(agent(), model("m", 1.0), model("n", 2.0, tokens={"output_tokens": 4}))
    assert found["output_tokens"] == 5
    assert "total_tokens" not in found
    assert "1 of 2 model calls did not report all token counts" in found["capture_warnings"][0]
    failed = response(agent(), model("m", 1.0), model("n", 2.0, tokens={}, error="429"))
    assert failed["total_tokens"] == 3
    assert "1 of 2 model calls failed" in failed["capture_warnings"][0]


def test_last_models_answer_is_used_if_the_agent_has_none() -> None:
    models = model("m", 1.0, ("c1", "find"), answer="I look"), model("n", 3.0, answer="So it is")
    assert response(agent(answer=None), *models, tool("s", 2.0, tool_call_id="c1"))["actual_answer"] == "So it is"
    nested = model("n", 3.0, answer="inner", parent="s")
    assert "actual_answer" not in response(agent(answer=None), tool("s", 2.0, ended=4.0), nested)


def test_unanswered_tool_calls_are_a_warning() -> None:
    found = response(agent(), model("m", 1.0, ("c1", "find"), ("c2", "hand_over")), tool("s", 2.0, tool_call_id="c1"))
    assert "never answered, so their outputs are not known: hand_over (c2)" in found["capture_warnings"][0]
    schema = model("m2", 3.0, ("c3", "FinalAnswer"))  # structured output, which its node reads
    assert "capture_warnings" not in response(agent(), schema)
    without = response(agent(), model("m", 1.0, ("c1", "find")), schema)
    assert "models asked for 1 tool call and the trace has none" in without["capture_warnings"][0]


def test_trace_of_several_questions_has_one_response_per_question() -> None:
    script = call("script", "other", 0.0, None, ended=9.0)
    heads = [
        call(f"a{n}", "agent", float(n), "script", question=f"{n}?", question_id=f"q{n}", answer=str(n)) for n in (1, 2)
    ]
    steps = [tool("s1", 1.1, parent="a1"), tool("s2", 2.1, parent="a2", question_id="q2")]
    found = list(responses_of([script, *heads, *steps]))
    assert [(each["question_id"], each["actual_answer"], names(each)) for each in found] == [
        ("q1", "1", ["s1"]),
        ("q2", "2", ["s2"]),
    ]


def test_question_of_an_agent_inside_a_web_request_is_found() -> None:
    server = call("server", "other", 0.0, None, ended=9.0)
    found = response(server, call("a", "agent", 0.1, "server", question="Why?", answer="So", ended=8.0), tool("s", 1.0))
    assert (found["question_text"], found["actual_answer"], names(found)) == ("Why?", "So", ["s"])
    elsewhere = response(call("a", "agent", 0.1, "not exported", question="Why?", answer="So"), tool("s", 1.0))
    assert elsewhere["question_text"] == "Why?"


def test_secrets_in_metadata_are_masked() -> None:
    assert response(agent(metadata={"api_key": "abc"}))["metadata"] == {"api_key": "***"}


def test_cyclic_parents_do_not_loop_forever() -> None:
    one, two = call("1", "tool", 0.0, "2", output="x"), call("2", "tool", 1.0, "1", output="x")
    assert len(list(responses_of([agent(), one, two]))) == 1
