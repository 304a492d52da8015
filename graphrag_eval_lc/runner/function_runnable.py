"""A bare function as a Runnable: its run, and all that runs inside it, reaches the callbacks."""

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import (
    ensure_config,
    get_async_callback_manager_for_config,
    patch_config,
    run_in_executor,
    var_child_runnable_config,
)

from graphrag_eval_lc.errors import AgentError
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.runner.graph_factories import is_context_manager


class FunctionRunnable(Runnable[str, Any]):
    """A function ``question -> answer or state``.

    It does less than LangChain's ``RunnableLambda``, which looks at the function's signature several times a call.

    Args:
        function: An async function, which runs in the event loop; or another one, which runs in a thread. What it
            gives may be awaitable, or an iterator of the parts of a text.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.name = getattr(function, "__name__", type(function).__name__)
        self._function = function
        call = getattr(function, "__call__", None)  # noqa: B004  # a callable object may be async too
        self._is_async = any(
            kind(each)
            for kind in (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
            for each in (function, call)
        )

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Call the function and wait for its answer."""
        return run_sync(lambda: self.ainvoke(input, config))

    async def ainvoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Call the function."""
        config = ensure_config(config)
        run = await get_async_callback_manager_for_config(config).on_chain_start(None, input, name=self.name)
        # What is invoked inside of the function takes its callbacks from here.
        token = var_child_runnable_config.set(patch_config(config, callbacks=run.get_child()))
        try:
            output = await self._call(input)
        except BaseException as problem:
            await run.on_chain_error(problem)
            raise
        finally:
            var_child_runnable_config.reset(token)
        await run.on_chain_end(output)
        return output

    async def _call(self, question: str) -> Any:
        output = self._function(question) if self._is_async else await run_in_executor(None, self._function, question)
        if inspect.isawaitable(output):
            output = await output
        if isinstance(output, Runnable) or is_context_manager(output):
            raise AgentError(
                f"{self.name} was asked a question and gave {type(output).__name__}: it makes an agent and is none",
                mend="Let it take no argument, or annotate its argument as LangGraph's: config: RunnableConfig.",
            )
        if isinstance(output, AsyncIterator):
            return _joined([part async for part in output])
        if isinstance(output, Iterator):
            return _joined(await run_in_executor(None, list, output))
        return output


def _joined(parts: list[Any]) -> Any:
    """Give the text that a function streamed, or all that it gave."""
    return "".join(parts) if all(isinstance(part, str) for part in parts) else parts
