"""What can be sent to another process, and the error for what cannot."""

import pickle
import sys
import threading
from types import ModuleType
from typing import Any

import pytest
from langgraph.pregel._write import PASSTHROUGH

from graphrag_eval_lc.benchmark.worker import Job, packed
from graphrag_eval_lc.errors import AgentError


def answer(question: str) -> str:
    return question


def unpacked(agent: Any, **options: Any) -> Any:
    return pickle.loads(packed(Job(agent=agent, **options)))


def test_spec_is_sent_unchanged() -> None:
    assert unpacked("my_agent.py:agent").agent == "my_agent.py:agent"


def test_module_function_is_sent_by_name() -> None:
    assert unpacked(answer).agent is answer


def test_unpicklable_object_is_sent_by_its_name_in_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("my_agents")
    module.__file__ = "my_agents.py"
    module.graph = threading.Lock()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_agents", module)
    assert unpacked(module.graph).agent == "my_agents:graph"


def test_main_program_is_not_a_module_under_any_name(monkeypatch: pytest.MonkeyPatch) -> None:
    program = ModuleType("__main__")
    program.__file__ = "my_script.py"
    graph = vars(program)["graph"] = threading.Lock()
    monkeypatch.setitem(sys.modules, "__main__", program)
    monkeypatch.setitem(sys.modules, "__mp_main__", program)  # as in multiprocessing
    with pytest.raises(AgentError, match="the agent cannot be sent to another process"):
        packed(Job(agent=graph))


def test_objects_of_the_main_program_are_pickled_by_value() -> None:
    greeting = "hello"
    assert unpacked(lambda question: f"{greeting} {question}").agent("you") == "hello you"


def test_module_sentinels_keep_their_identity() -> None:
    sentinel = PASSTHROUGH
    assert unpacked(lambda question: sentinel is PASSTHROUGH).agent("?")
    assert unpacked(lambda question: question, agent_config={"a": PASSTHROUGH}).agent_config["a"] is PASSTHROUGH


def test_error_names_the_part_that_cannot_be_sent() -> None:
    lock = threading.Lock()
    with pytest.raises(AgentError, match=r"input_fn cannot be sent to another process \(.+\)\. Put it into a file"):
        packed(Job(agent=answer, input_fn=lambda question: lock))


def test_functions_of_different_main_programs_are_not_confused() -> None:
    program: dict[str, Any] = {"__name__": "__main__"}
    exec("def answer(question): return question + '!'", program)
    assert unpacked(program["answer"]).agent("you") == "you!"
