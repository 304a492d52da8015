"""All that users registered, of every kind: what there is, and how it is put back as it was."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from graphrag_eval_lc.registry.modules import module_of

Restore = Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Registry:
    """One registry: what users registered in it, what gives back its present state, and its state at first."""

    registered: Callable[[], Mapping[str, Any]]
    saved: Callable[[], Restore]
    forget: Restore


_registries: list[_Registry] = []


def declare_registry(registered: Callable[[], Mapping[str, Any]], saved: Callable[[], Restore]) -> None:
    """Take up a registry, which holds nothing of users yet.

    Args:
        registered: Gives the functions that users registered in it, by a name that says what they are, such as
            ``metric saved_sec``.
        saved: Gives a function that puts the registry back into the state that it has now.
    """
    _registries.append(_Registry(registered, saved, saved()))


def saved_mappings(*mappings: dict[Any, Any]) -> Restore:
    """Give a function that puts mappings back into the state that they have now.

    Example:
        >>> known = {"a": 1}
        >>> restore = saved_mappings(known)
        >>> known["b"] = 2
        >>> restore()
        >>> known
        {'a': 1}
    """
    copies = [dict(mapping) for mapping in mappings]

    def restore() -> None:
        for mapping, copied in zip(mappings, copies, strict=True):
            mapping.clear()
            mapping.update(copied)

    return restore


def registered_now() -> dict[str, Any]:
    """Give all functions that users registered, by names that say what they are, those of a kind together."""
    registered = [each for registry in _registries for each in registry.registered().items()]
    return dict(sorted(registered, key=lambda each: each[0].partition(" ")[0]))


@contextmanager
def registered_only_here() -> Iterator[None]:
    """Forget at the end of a block what is registered in it, plugins included, as tests and notebooks need it.

    What was registered before is there in the block and after it. Modules that were first imported in the block and
    registered something are forgotten too, so that importing them again registers it again. It counts for the whole
    process, other threads included.

    Example:
        >>> from graphrag_eval_lc import register_metric
        >>> with registered_only_here():
        ...     @register_metric(key="words", unit="words")
        ...     def words(question, response):
        ...         return len(response["actual_answer"].split())
    """
    before, modules = registered_now(), set(sys.modules)
    known = len(_registries)
    with ExitStack() as stack:
        for registry in _registries:
            stack.callback(registry.saved())
        try:
            yield
        finally:
            new = {
                module_of(function) for name, function in registered_now().items() if before.get(name) is not function
            }
            for name in {package for module in new for package in _with_packages(module)} - modules:
                sys.modules.pop(name, None)
            for registry in _registries[known:]:
                registry.forget()


@contextmanager
def forgotten_on_error() -> Iterator[None]:
    """Forget what is registered in a block that fails, as half of a module is no module."""
    restores = [registry.saved() for registry in _registries]
    try:
        yield
    except BaseException:
        for restore in restores:
            restore()
        raise


def _with_packages(module: str) -> Iterator[str]:
    """Give a module and the packages that it is in, which would not import it again otherwise."""
    parts = module.split(".")
    yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))
