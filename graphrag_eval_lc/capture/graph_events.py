"""What langgraph alone tells of: its interrupt events, and the exceptions by which it steers a run."""

from functools import cache, lru_cache


@cache
def with_graph_events(handler_class: type) -> type:
    """Give a subclass that langgraph sends ``on_interrupt`` to, or the class itself where langgraph has no such.

    Only subclasses of langgraph's ``GraphCallbackHandler`` get these events, and they are the only sign of a static
    ``interrupt_before``. Its import takes a third of a second, so it waits for the first handler.
    """
    try:
        from langgraph.callbacks import GraphCallbackHandler
    except ImportError:
        return handler_class
    if issubclass(handler_class, GraphCallbackHandler):
        return handler_class
    names = {
        "__module__": handler_class.__module__,
        "__qualname__": handler_class.__qualname__,
        "_written_as": handler_class,
    }
    return type(handler_class.__name__, (handler_class, GraphCallbackHandler), names)


@lru_cache(maxsize=1024)
def task_order(path: object) -> str:
    """Give langgraph's path of a task as a text by which the parallel tasks of a step stand as in the state.

    Example:
        >>> task_order(("__pregel_push", 2, False)) < task_order(("__pregel_push", 10, False))
        True
    """
    if isinstance(path, list | tuple):
        return ",".join(map(task_order, path))
    return f"{path:010d}" if isinstance(path, int) else str(path)


def is_interrupt(error: object) -> bool:
    """Tell whether an exception pauses the run until somebody resumes it."""
    return _is_langgraph_error(error, "GraphInterrupt")


def is_handoff(error: object) -> bool:
    """Tell whether an exception hands over to another agent of the parent graph."""
    return _is_langgraph_error(error, "ParentCommand")


def _is_langgraph_error(error: object, name: str) -> bool:
    """Compare by name: langgraph is not imported for runs that do without it."""
    return any(base.__name__ == name and base.__module__.startswith("langgraph") for base in type(error).__mro__)
