"""Digests of an agent's source files, and of its functions without a file, so that a resumed run notices changes."""

import ast
import contextlib
import dis
import gc
import hashlib
import inspect
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from importlib.machinery import PathFinder
from importlib.util import resolve_name
from pathlib import Path
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import SystemMessage
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import Runnable

from graphrag_eval_lc.benchmark.ready_agents import Agent
from graphrag_eval_lc.masking import masked_values
from graphrag_eval_lc.registry.plugins import place_of

_PACKAGES = {"site-packages", "dist-packages"}
_PATHS = ("stdlib", "platstdlib", "purelib", "platlib")
_INSTALLED = (Path(__file__).resolve().parents[1], *{Path(sysconfig.get_path(name)).resolve() for name in _PATHS})
_FRAMEWORKS = ("langchain", "langgraph")  # their objects are searched for functions: nodes, tools, chains
_HOLDERS = (partial, MethodType, staticmethod, classmethod, property, CellType, list, tuple, set, frozenset, dict)
_MOST_OBJECTS = 20_000
_MOST_ITEMS = 1_000  # of a collection; longer ones are data
# By module name: the module's spec and the digest of its file when it was first seen. Code in memory may be older than
# the file.
_first_seen: dict[str, tuple[object, str]] = {}


class AgentSource(NamedTuple):
    """The source of an agent, by its digests.

    The source is the file or module that the agent's spec names, and every file of the project that it imports, even
    inside functions. The project is the folder of that file or package, the folders in ``PYTHONPATH`` and the current
    folder. For an agent made in Python, the source is the files that define its functions, graph nodes and tools, with
    their imports. A function without a file (in a notebook or at a prompt) has a digest of its code and of the texts
    and numbers that it uses. Installed packages do not count.
    """

    digests: Mapping[str, str]
    outdated: tuple[str, ...] = ()


def source_of(agent: Agent, functions: Iterable[object] = ()) -> AgentSource:
    """Return the source of an agent, with the same digests in every process.

    Example:
        >>> import asyncio
        >>> from graphrag_eval_lc.benchmark.agents import aload_agent
        >>> list(source_of(asyncio.run(aload_agent(eval("lambda question: '42'")))).digests)
        ['graphrag_eval_lc.benchmark.agent_source:<lambda>']
    """
    walk, module = _Walk(), agent.module
    if agent.config_file is not None:
        walk.roots.insert(0, agent.config_file.resolve().parent)
        walk.note(agent.config_file.name, agent.config_file.read_bytes())
    given = inspect.unwrap(agent.given) if isinstance(agent.given, FunctionType) else agent.given
    if isinstance(given, FunctionType) and _file_of(given) is not None:
        module = sys.modules.get(given.__module__)
    if module is not None and (file := _module_file(module)) is not None and not _is_installed(file):
        is_imported = module.__name__.rpartition(".")[2] in (file.stem, file.parent.name)  # not loaded as a file
        walk.roots.insert(0, file.parents[module.__name__.count(".") + (file.stem == "__init__") if is_imported else 0])
        walk.add_module(module)
    walk.add_objects([*([] if isinstance(agent.given, str) else [agent.given, agent.runnable]), *functions])
    digests = {
        name: next(iter(found)) if len(found) == 1 else _sha256("".join(sorted(found)))
        for name, found in sorted(walk.found.items())
    }
    return AgentSource(digests, tuple(walk.outdated))


class _Walk:
    """Follows imports and references from what defines an agent, and notes a digest of what it finds."""

    def __init__(self) -> None:
        entries = [Path(entry).resolve() for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
        self.roots = [each for each in entries if not any(each.glob("*.dist-info"))]
        with suppress(FileNotFoundError):  # an agent may have removed the current folder
            self.roots.append(Path.cwd())
        self.found: dict[str, set[str]] = {}  # digests by name; several functions may have one name
        self.outdated: list[str] = []
        self._names: set[str] = set()  # of modules

    def note(self, name: str, content: str | bytes) -> None:
        """Note the digest of some content under a name."""
        self.found.setdefault(name, set()).add(_sha256(content))

    def add_module(self, module: ModuleType | None) -> None:
        """Add the file of a module, and the files of the project's modules that it imports."""
        waiting = [(module.__name__, str(module.__package__ or ""))] if module is not None else []
        while waiting:
            name, package = waiting.pop()
            if name in self._names:
                continue
            self._names.add(name)
            file = _module_file(sys.modules.get(name)) or _unloaded_file(name)
            if file is None or _is_installed(file):
                continue
            root = next((root for root in self.roots if file.is_relative_to(root)), None)
            if root is None:  # of another project
                continue
            shown, content = file.relative_to(root).as_posix(), file.read_bytes()
            digest, loaded = _sha256(content), getattr(sys.modules.get(name), "__spec__", None)
            if loaded is None or name not in _first_seen or _first_seen[name][0] is not loaded:
                _first_seen[name] = loaded, digest
            self.found.setdefault(shown, set()).add(_first_seen[name][1])
            if digest != _first_seen[name][1]:
                self.outdated.append(shown)
            if name not in sys.modules:
                package = name if file.stem == "__init__" else name.rpartition(".")[0]
            with contextlib.suppress(SyntaxError, ValueError):  # a compiled module
                for imported in _imported(ast.parse(content), package):
                    parts = imported.split(".")
                    names = (".".join(parts[:length]) for length in range(1, len(parts) + 1))
                    waiting += [(each, str(getattr(sys.modules.get(each), "__package__", ""))) for each in names]

    def add_objects(self, objects: Iterable[object]) -> None:
        """Add the source of objects, and of the objects to which they refer."""
        waiting, seen = list(objects), dict[int, object]()
        while waiting and len(seen) < _MOST_OBJECTS:
            thing = waiting.pop()
            if id(thing) not in seen and not isinstance(thing, str | bytes | int | float | None):
                seen[id(thing)] = thing  # keeps it alive, so that its id stays unique
                with contextlib.suppress(Exception):  # objects may raise anything when they are looked at
                    waiting += self._parts_of(thing)

    def _parts_of(self, thing: Any) -> Iterable[object]:
        """Add the source of an object, and return the objects to which it refers."""
        kind = thing if isinstance(thing, type) else type(thing)
        if isinstance(thing, FunctionType):
            return self._parts_of_function(thing)
        if isinstance(thing, ModuleType):
            self.add_module(thing)
            return []
        if isinstance(thing, _HOLDERS):
            is_data = isinstance(thing, list | tuple | set | frozenset | dict) and len(thing) > _MOST_ITEMS
            return [] if is_data else gc.get_referents(thing)
        if isinstance(thing, SystemMessage | PromptTemplate):
            self.note("a prompt", str(thing.template if isinstance(thing, PromptTemplate) else thing.content))
        if isinstance(thing, BaseLanguageModel):
            self.note("a model", _plain_text(masked_values(dict(thing._identifying_params))))
        module = sys.modules.get(kind.__module__)
        file = _module_file(module)
        is_built_in = kind.__module__.partition(".")[0] in sys.stdlib_module_names
        if not (is_built_in if file is None else _is_installed(file)):  # a class of the project
            self.add_module(module)
            return gc.get_referents(thing)
        is_open = isinstance(thing, Runnable) or kind.__module__.startswith(_FRAMEWORKS)
        return gc.get_referents(thing) if is_open and thing is not kind else []

    def _parts_of_function(self, function: FunctionType) -> list[object]:
        code, module = function.__code__, place_of(str(function.__globals__.get("__name__")))
        cells = map(gc.get_referents, function.__closure__ or ())  # one may not be filled yet
        used = dict(zip(code.co_freevars, (found[0] if found else None for found in cells), strict=False))
        file = _file_of(function)
        if file is not None and not _is_installed(file):
            self.add_module(sys.modules.get(function.__module__))
        if file is None or module == "__main__":  # a notebook or a script may define the function and its values again
            defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items()]
            self.note(f"{module}:{function.__qualname__}", f"{_code_text(code)} {_plain_text(defaults)}")
            names = [name for each in _codes(code) for name in each.co_names]
            used |= {name: function.__globals__[name] for name in names if name in function.__globals__}
            # Outer variables that the function assigns, and values of other types, are its state and not its source.
            assigned = {
                step.argval
                for each in _codes(code)
                for step in dis.get_instructions(each)
                if step.opname in ("STORE_GLOBAL", "STORE_DEREF") and step.argval not in each.co_cellvars
            }
            for name in used.keys() - assigned:
                if isinstance(used[name], str | bytes | int | float | tuple | frozenset):
                    self.note(f"{module}:{name}", _plain_text(masked_values({name: used[name]})))
        return [*used.values(), getattr(function, "__wrapped__", None)]


# --- modules and files -----------------------------------------------------------------------------------------------


def _imported(tree: ast.Module, package: str) -> Iterator[str]:
    """Yield the dotted name of each import in a file; the last part may be a name inside a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            with contextlib.suppress(ImportError, ValueError):  # a relative import of a file that is in no package
                base = resolve_name("." * node.level + (node.module or ""), package or None)
                yield from (f"{base}.{each.name}" for each in node.names)


def _unloaded_file(name: str) -> Path | None:
    """Return the file of a module that is only imported later, found without importing its package."""
    parent = name.rpartition(".")[0]
    path = getattr(sys.modules.get(parent), "__path__", ()) if parent else None
    with contextlib.suppress(Exception):  # finders of others may fail
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.has_location and spec.origin:
            return Path(spec.origin).absolute()
    return None


def _file_of(function: FunctionType) -> Path | None:
    """Return the file with the code of a function; None if it was made in a notebook or at a prompt."""
    code = Path(function.__code__.co_filename)
    file = _module_file(sys.modules.get(str(function.__globals__.get("__name__"))))
    if file is not None and file.name == code.name:
        return file  # a script's own code may name it by a relative path
    return code if code.is_absolute() and code.is_file() else None


def _module_file(module: ModuleType | None) -> Path | None:
    name = getattr(module, "__file__", None)
    return Path(name).absolute() if isinstance(name, str) and name[:1] != "<" else None  # such as <stdin>


def _is_installed(file: Path) -> bool:
    return not _PACKAGES.isdisjoint(file.parts) or any(file.is_relative_to(folder) for folder in _INSTALLED)


# --- code and values -------------------------------------------------------------------------------------------------


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a function and of the functions inside of it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _code_text(code: CodeType) -> str:
    """Return the code of a function as text without line numbers, addresses and the order of sets."""
    constants = [_code_text(each) if isinstance(each, CodeType) else _plain_text(each) for each in code.co_consts]
    return repr((code.co_code.hex(), code.co_names, code.co_varnames, code.co_freevars, constants))


def _plain_text(value: Any, depth: int = 10) -> str:
    """Return a plain value as text that is the same in every process; for any other value, the name of its type."""
    if isinstance(value, str | bytes | int | float | complex | None):
        return repr(value)
    if isinstance(value, Mapping):
        value = list(value.items())
    if isinstance(value, list | tuple | set | frozenset) and depth:
        texts = [_plain_text(item, depth - 1) for item in value]
        return f"[{', '.join(sorted(texts) if isinstance(value, set | frozenset) else texts)}]"
    return type(value).__name__


def _sha256(content: str | bytes) -> str:
    raw = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return hashlib.sha256(raw).hexdigest()
