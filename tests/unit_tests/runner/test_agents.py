from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain_core.runnables import Runnable, RunnableLambda
from langgraph.graph import START, StateGraph

from graphrag_eval_lc.errors import AgentError, MissingExtraError
from graphrag_eval_lc.runner.agents import as_agent, load_agent

FILE = """
from langchain_core.runnables import RunnableLambda

graph = RunnableLambda(lambda state: state)
nothing = 3


def make():
    return graph


def make_nothing():
    return None


def needs(key):
    return graph


def fails():
    raise ConnectionError("no store")


class Nested:
    agent = graph
"""


@pytest.fixture
def agent_file(tmp_path: Path) -> Path:
    path = tmp_path / "my_agent.py"
    path.write_text(FILE)
    return path


@pytest.mark.parametrize("attribute", ["graph", "make", "Nested.agent"])
def test_spec_of_a_file_names_a_graph_or_a_function_that_makes_one(agent_file: Path, attribute: str) -> None:
    assert isinstance(load_agent(f"{agent_file}:{attribute}"), Runnable)


def test_spec_of_a_module_is_looked_up_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "module_of_the_test.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    assert isinstance(load_agent("module_of_the_test:make"), Runnable)


def test_file_may_import_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_the_test.py").write_text(FILE)
    (tmp_path / "importing.py").write_text("from neighbour_of_the_test import graph")
    assert isinstance(load_agent(f"{tmp_path / 'importing.py'}:graph"), Runnable)


@pytest.mark.parametrize(
    ("attribute", "complaint"),
    [
        ("absent", "has no attribute absent. It has: graph, make, make_nothing, needs, fails."),
        ("nothing", "is int, no agent"),
        ("make_nothing", "gave NoneType, no agent"),
        ("needs", "cannot be called without arguments (missing a required argument: 'key')"),
        ("fails", "failed with ConnectionError: no store"),
    ],
)
def test_attribute_that_is_no_agent_says_why(agent_file: Path, attribute: str, complaint: str) -> None:
    with pytest.raises(AgentError) as caught:
        load_agent(f"{agent_file}:{attribute}")
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("agent", "'agent' is no spec of an agent. Write package.module:attribute"),
        (":graph", "is no spec of an agent"),
        ("absent_module_of_the_test:graph", "there is no module absent_module_of_the_test"),
        ("absent.py:graph", "there is no file absent.py"),
    ],
)
def test_spec_that_leads_nowhere_says_why(spec: str, complaint: str) -> None:
    with pytest.raises(AgentError) as caught:
        load_agent(spec)
    assert complaint in str(caught.value)


@pytest.mark.parametrize("code", ["import absent_module_of_the_test", "1 / 0", "def"])
def test_file_that_does_not_load_says_why(tmp_path: Path, code: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(code)
    with pytest.raises(AgentError, match=r"loading .*broken\.py failed with \w+Error"):
        load_agent(f"{path}:graph")


def test_missing_extra_is_told_as_it_is() -> None:
    def factory() -> Any:
        raise MissingExtraError("The demo", "demo", "pyoxigraph")

    with pytest.raises(MissingExtraError, match="pip install"):
        as_agent(factory)


def test_graph_that_is_not_compiled_is_told_so() -> None:
    class Builder:
        def compile(self) -> None: ...

    with pytest.raises(AgentError, match=r"not compiled. Give graph\.compile\(\)"):
        as_agent(Builder())


def test_two_files_of_one_name_do_not_mix(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "same_name.py"
        path.write_text(f"{FILE}\nimport sys\nassert sys.modules[__name__].__file__ == {str(path)!r}\n")
        assert isinstance(load_agent(f"{path}:make"), Runnable)


def test_graph_without_messages_in_its_state_is_refused() -> None:
    class State(TypedDict, total=False):
        question: str

    builder = StateGraph(State)
    builder.add_node("node", lambda state: state)
    builder.add_edge(START, "node")
    with pytest.raises(AgentError, match="takes question, but no messages"):
        as_agent(builder.compile())


def test_runnable_is_taken_as_it_is() -> None:
    agent = RunnableLambda(lambda state: state)
    assert as_agent(agent) is agent
