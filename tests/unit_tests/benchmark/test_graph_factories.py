"""Graph factories get what LangGraph's server gives them, and what they open is entered."""

from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Optional

import pytest
from langchain_core.runnables import RunnableConfig, RunnableLambda

from graphrag_eval_lc.benchmark.ready_agents import (
    is_context_manager,
    opened,
    server_arguments,
    takes_server_arguments,
)
from graphrag_eval_lc.errors import AgentError

if TYPE_CHECKING:
    from langgraph_sdk.runtime import ServerRuntime

sdk = pytest.importorskip("langgraph_sdk.runtime")


def of_nothing() -> None: ...
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
def test_annotations_tell_a_graph_factory(function: Any) -> None:
    assert takes_server_arguments(function)


@pytest.mark.parametrize("function", [of_nothing, of_unknown, of_question, of_question_and_config, of_both_turned, int])
def test_other_functions_are_none_by_their_annotations(function: Any) -> None:
    assert not takes_server_arguments(function)


@pytest.mark.parametrize("function", [*CONFIGS, of_unknown, of_both, of_both_turned])
def test_config_is_that_of_the_run(function: Any) -> None:
    arguments = server_arguments(function, "f", {"configurable": {"model": "m"}, "tags": ["t"]})
    (config,) = [value for key, value in arguments.items() if key != "runtime"]
    assert config["tags"] == ["t"]
    assert config["configurable"]["model"] == "m"


@pytest.mark.parametrize("function", [*RUNTIMES, of_both, of_both_turned])
def test_runtime_says_that_the_graph_is_to_run(function: Any) -> None:
    store = object()
    runtime = server_arguments(function, "f", {}, store)["runtime"]
    assert runtime.execution_runtime is runtime
    assert (runtime.access_context, runtime.store, runtime.user) == ("threads.create_run", store, None)


def test_config_of_the_caller_stays_as_it_is() -> None:
    config: dict[str, Any] = {"configurable": {"model": "m"}}
    server_arguments(of_config, "f", config)
    assert config == {"configurable": {"model": "m"}}


def test_what_is_given_already_is_not_given_again() -> None:
    function = partial(of_config, config={"tags": ["mine"]})
    assert not takes_server_arguments(function)
    assert server_arguments(function, "f", {}) == {}


def test_factory_of_nothing_gets_nothing() -> None:
    assert server_arguments(of_nothing, "f", {}) == {}


@pytest.mark.parametrize("function", [lambda a, b: a, lambda a, b, c: a])
def test_other_arguments_are_refused(function: Any) -> None:
    with pytest.raises(AgentError, match=r"f takes a, b.*with an argument annotated as ServerRuntime"):
        server_arguments(function, "f", {})


@asynccontextmanager
async def async_manager(log: list[str]) -> Any:
    log.append("opened")
    yield "made"
    log.append("closed")


@contextmanager
def sync_manager(log: list[str]) -> Any:
    log.append("opened")
    yield "made"
    log.append("closed")


async def coroutine_of_a_manager(log: list[str]) -> Any:
    return async_manager(log)


@pytest.mark.parametrize("make", [async_manager, sync_manager, coroutine_of_a_manager])
async def test_context_manager_is_open_as_long_as_the_stack(make: Any) -> None:
    log: list[str] = []
    async with AsyncExitStack() as stack:
        assert await opened(make(log), stack) == "made"
        assert log == ["opened"]
    assert log == ["opened", "closed"]


async def test_what_is_no_context_manager_is_given_as_it_is() -> None:
    async def make() -> int:
        return 3

    async with AsyncExitStack() as stack:
        assert await opened(make(), stack) == 3
        assert await opened(4, stack) == 4


def test_what_can_be_asked_itself_is_not_entered() -> None:
    """It may be open already, and whoever opened it closes it."""

    class Manager:
        def __enter__(self) -> None: ...
        def __exit__(self, *problem: object) -> None: ...

    class Asked(Manager):
        def __call__(self, question: str) -> None: ...

    class Entered(RunnableLambda[Any, Any]):
        def __enter__(self) -> None: ...
        def __exit__(self, *problem: object) -> None: ...

    assert is_context_manager(Manager())
    assert is_context_manager(sync_manager([]))
    assert is_context_manager(async_manager([]))
    assert not is_context_manager(Manager)
    assert not is_context_manager(Asked())
    assert not is_context_manager(Entered(str))
