"""What can be sent to another process, and the one sentence for what cannot."""

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


def test_a_spec_goes_as_it_is() -> None:
    assert unpacked("my_agent.py:agent").agent == "my_agent.py:agent"


def test_a_function_of_a_module_goes_by_its_name() -> None:
    assert unpacked(answer).agent is answer


def test_what_cannot_be_pickled_goes_by_the_name_that_a_module_has_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("my_agents")
    module.__file__ = "my_agents.py"
    module.graph = threading.Lock()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_agents", module)
    assert unpacked(module.graph).agent == "my_agents:graph"


def test_the_running_program_is_no_module_under_none_of_its_names(monkeypatch: pytest.MonkeyPatch) -> None:
    program = ModuleType("__main__")
    program.__file__ = "my_script.py"
    graph = vars(program)["graph"] = threading.Lock()
    monkeypatch.setitem(sys.modules, "__main__", program)
    monkeypatch.setitem(sys.modules, "__mp_main__", program)  # as multiprocessing has it
    with pytest.raises(AgentError, match="the agent cannot be sent to another process"):
        packed(Job(agent=graph))


def test_what_only_the_program_has_is_pickled_by_value() -> None:
    greeting = "hello"
    assert unpacked(lambda question: f"{greeting} {question}").agent("you") == "hello you"


def test_sentinels_of_modules_stay_what_they_are() -> None:
    sentinel = PASSTHROUGH
    assert unpacked(lambda question: sentinel is PASSTHROUGH).agent("?")
    assert unpacked(lambda question: question, agent_config={"a": PASSTHROUGH}).agent_config["a"] is PASSTHROUGH


def test_the_sentence_names_the_part_that_cannot_be_sent() -> None:
    lock = threading.Lock()
    with pytest.raises(AgentError, match=r"input_fn cannot be sent to another process \(.+\)\. Put it into a file"):
        packed(Job(agent=answer, input_fn=lambda question: lock))


def test_functions_of_the_running_program_are_not_taken_for_those_of_another() -> None:
    program: dict[str, Any] = {"__name__": "__main__"}
    exec("def answer(question): return question + '!'", program)
    assert unpacked(program["answer"]).agent("you") == "you!"
