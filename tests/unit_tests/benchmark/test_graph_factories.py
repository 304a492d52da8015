"""Graph factories receive the same arguments as on LangGraph's server, and context managers are entered."""

from typing import TYPE_CHECKING, Annotated, Any, Optional

import pytest
from langchain_core.runnables import RunnableConfig

from graphrag_eval_lc.benchmark.ready_agents import server_arguments, takes_server_arguments
from graphrag_eval_lc.errors import AgentError

if TYPE_CHECKING:
    from langgraph_sdk.runtime import ServerRuntime

sdk = pytest.importorskip("langgraph_sdk.runtime")


def bare() -> None: ...
def of_config(config: RunnableConfig) -> None: ...
def of_optional_config(config: Optional[RunnableConfig] = None) -> None: ...  # noqa: UP045
def of_config_as_text(config: "RunnableConfig | None" = None) -> None: ...
def of_unknown(settings) -> None: ...  # type: ignore[no-untyped-def]
def of_runtime(runtime: sdk.ServerRuntime) -> None: ...  # type: ignore[name-defined]
def of_runtime_with_context(runtime: sdk.ServerRuntime[int]) -> None: ...  # type: ignore[name-defined]
def of_annotated_runtime(runtime: Annotated[sdk.ServerRuntime, "x"]) -> None: ...  # type: ignore[name-defined]
def of_runtime_of_the_type_checker(runtime: "ServerRuntime[int]") -> None: ...
def of_both(runtime: "ServerRuntime", config: RunnableConfig) -> None: ...
def of_both_turned(settings, runtime: "ServerRuntime") -> None: ...  # type: ignore[no-untyped-def]
def of_question(question: str) -> None: ...
def of_question_and_config(question: str, config: RunnableConfig) -> None: ...


CONFIGS = [of_config, of_optional_config, of_config_as_text]
RUNTIMES = [of_runtime, of_runtime_with_context, of_annotated_runtime, of_runtime_of_the_type_checker]


@pytest.mark.parametrize("function", [*CONFIGS, *RUNTIMES, of_both])
def test_graph_factory_is_recognized_by_annotations(function: Any) -> None:
    assert takes_server_arguments(function)


@pytest.mark.parametrize("function", [bare, of_unknown, of_question, of_question_and_config, of_both_turned, int])
def test_other_functions_are_not_graph_factories(function: Any) -> None:
    assert not takes_server_arguments(function)


@pytest.mark.parametrize("function", [*CONFIGS, of_unknown, of_both, of_both_turned])
def test_factory_receives_the_config_of_the_run(function: Any) -> None:
    arguments = server_arguments(function, "f", {"configurable": {"model": "m"}, "tags": ["t"]})
    (config,) = [value for key, value in arguments.items() if key != "runtime"]
    assert config["tags"] == ["t"]
    assert config["configurable"]["model"] == "m"


@pytest.mark.parametrize("function", [*RUNTIMES, of_both, of_both_turned])
def test_runtime_is_for_execution(function: Any) -> None:
    store = object()
    runtime = server_arguments(function, "f", {}, store)["runtime"]
    assert runtime.execution_runtime is runtime
    assert (runtime.access_context, runtime.store, runtime.user) == ("threads.create_run", store, None)


@pytest.mark.parametrize("function", [lambda a, b: a, lambda a, b, c: a])
def test_other_arguments_are_rejected(function: Any) -> None:
    with pytest.raises(AgentError, match=r"f takes a, b.*with an argument annotated as ServerRuntime"):
        server_arguments(function, "f", {})
