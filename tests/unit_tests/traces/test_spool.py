"""Calls added in any order are returned trace by trace."""

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.errors import ResponsesError
from graphrag_eval_lc.traces.whole_traces import AskedCall, Spool, TracedCall


def call(trace: str, started: float, identifier: str = "", **more: Any) -> TracedCall:
    return TracedCall(
        trace_id=trace, id=identifier, parent_id=None, kind="tool", name="search", started=started, **more
    )


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "\ud800"]), st.floats(0, 1e9))))
def test_traces_are_ordered_by_first_call_and_calls_by_start(
    given_calls: list[tuple[str, float]],
) -> None:
    calls = [call(trace, started, str(index)) for index, (trace, started) in enumerate(given_calls)]
    with Spool() as spool:
        for each in calls:
            spool.add(each)
        found = list(spool.traces())
    traces = sorted(dict.fromkeys(each.trace_id for each in calls), key=lambda trace: first_start(calls, trace))
    expected = [sorted((each for each in calls if each.trace_id == trace), key=lambda c: c.started) for trace in traces]
    assert found == expected


def first_start(calls: list[TracedCall], trace: str) -> tuple[float, int]:
    """Return when a trace began and the index of its first call, which breaks ties."""
    indexes = [index for index, each in enumerate(calls) if each.trace_id == trace]
    return min(calls[index].started for index in indexes), indexes[0]


@pytest.mark.full
def test_too_deeply_nested_values_are_stored_as_json() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RecursionError):
        pickle.dumps(deep)
    with Spool() as spool:
        spool.add(call("a", 1.0, args={"q": deep}, asked=[AskedCall(id=None, name="search", args=deep)]))
        ((found,),) = spool.traces()
    assert isinstance(found.args, str)
    assert "nested too deeply" in found.args


def test_full_disk_is_an_error_that_names_the_temporary_folder() -> None:
    with Spool() as spool:
        spool._run("PRAGMA max_page_count = 20")
        with pytest.raises(ResponsesError, match="TMPDIR"):
            spool.add(call("a", 0, output="x" * 1_000_000))
