"""Which source an agent was made from: digests of its files, and of the functions that are in no file."""

import ast
import contextlib
import dis
import hashlib
import inspect
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from importlib.machinery import PathFinder
from importlib.util import resolve_name
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import SystemMessage
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import Runnable, RunnableBinding

from graphrag_eval_lc.benchmark.ready_agents import Agent
from graphrag_eval_lc.masking import masked_values
from graphrag_eval_lc.registry.plugins import module_from, place_of

Digests = dict[str, str]
"""SHA-256 by the name of a file, or of a function such as ``__main__:answer``; sorted by name."""

_PACKAGES = {"site-packages", "dist-packages"}
_PATHS = ("stdlib", "platstdlib", "purelib", "platlib")
_INSTALLED = (Path(__file__).resolve().parents[1], *{Path(sysconfig.get_path(name)).resolve() for name in _PATHS})
_FRAMEWORKS = ("langchain", "langgraph")  # what their objects hold is looked into: nodes, tools, chains
_METHODS = (FunctionType, staticmethod, classmethod, property)
_MOST_OBJECTS = 20_000
_MOST_ITEMS = 1_000  # of a collection; longer ones are data
_MOST_TEXT = 1_000_000  # characters of a collection; longer ones are data
# The files of loaded modules as a run of this process first saw them: the code in memory may be older than its file.
_first_seen: dict[Path, tuple[object, str]] = {}
# Lists, dicts and sets that an agent of this process changed, by id, as they were before: they are its state.
_states: dict[int, tuple[object, str]] = {}


class AgentSource:
    """The source of one agent; made before the agent is loaded.

    Source is every file of the project that the agent's own file or module imports, also inside of functions. The
    project is the folder that the agent's file or package is in, those of ``PYTHONPATH`` and the current one. For an
    agent made in Python it is the files that define its functions, graph nodes and tools, with what they import; a
    function without a file (in a notebook, at a prompt) has a digest of its code and of the values that it uses.
    Installed packages do not count.

    Attributes:
        outdated: The digests of files that changed after Python loaded them, as they were then.

    Example:
        >>> import asyncio
        >>> from graphrag_eval_lc.benchmark.agents import aload_agent
        >>> source, answer = AgentSource(), eval("lambda question: '42'")
        >>> list(source.digests(asyncio.run(aload_agent(answer))))
        ['graphrag_eval_lc.benchmark.agent_source:<lambda>']
    """

    def __init__(self) -> None:
        named = [Path(entry).resolve() for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
        self._roots = [*(each for each in named if not any(each.glob("*.dist-info"))), Path.cwd()]
        self._modules_before = frozenset(sys.modules)
        self.outdated: Digests = {}
        self._found: dict[str, set[str]] = {}  # digests by name; several functions may have one name
        self._files: set[Path] = set()
        self._collections: dict[int, tuple[str, object, str]] = {}  # with their names and texts, by id
        self._is_interactive = not hasattr(sys.modules.get("__main__"), "__file__")

    def digests(self, agent: Agent, functions: Iterable[object] = ()) -> Digests:
        """Return the digests of what the agent is made from, which are the same in each process.

        Args:
            agent: The agent, loaded.
            functions: What makes its input and its answer.
        """
        given, place = agent.given, ""
        if isinstance(given, str):
            if "://" not in given:
                is_graph = agent.source is not None
                place = self._add_graph_spec(str(agent.spec)) if is_graph else given.rpartition(":")[0]
            self._add_named(module_from(place))
        else:
            named = inspect.unwrap(given) if isinstance(given, FunctionType) else given
            if isinstance(named, FunctionType) and _file_of(named) is not None:
                self._add_named(sys.modules.get(named.__module__))
            self._add_objects([given, agent.runnable])
        self._add_objects(functions)
        return self._sorted()

    def later_digests(self) -> Digests:
        """Return the digests of other files of the project that were loaded since: by name, as plugins of an agent.

        It is called after the run. Collections that the agent changed in it are taken as they were before from now on.
        """
        for key, (name, value, text) in self._collections.items():
            if _value_text(name, value) != text:
                _states[key] = value, text
        known = self._sorted()
        for name in sys.modules.keys() - self._modules_before:
            self._add(sys.modules.get(name))
        return {name: digest for name, digest in self._sorted().items() if name not in known}

    def digest_now(self, name: str) -> str | None:
        """Return the digest of a file of the project as it is now; None if it does not exist any more."""
        for root in self._roots:
            with contextlib.suppress(OSError):
                if (root / name).is_file():  # no device, whatever run.json says
                    return _sha256((root / name).read_bytes())
        return None

    def _sorted(self) -> Digests:
        return {
            name: next(iter(digests)) if len(digests) == 1 else _sha256("".join(sorted(digests)).encode())
            for name, digests in sorted(self._found.items())
        }

    # --- files ---

    def _add_graph_spec(self, spec: str) -> str:
        """Add a ``langgraph.json`` and its local dependencies to the project; return the place of its graph."""
        from graphrag_eval_lc.benchmark.langgraph_config import read_graph_spec  # few agents need LangGraph for it

        found = read_graph_spec(spec)
        self._roots = [*found.dependencies, *self._roots]
        self._note_file(found.file.resolve())
        return found.place

    def _add_named(self, module: ModuleType | None) -> None:
        """Add the module that a spec names, or that defines the agent, wherever its file is."""
        file = _module_file(module)
        if module is None or file is None or module.__name__.startswith(_FRAMEWORKS):
            return
        if _is_installed(file):
            package = str(module.__spec__.parent or "") if module.__spec__ else ""
            files = sorted(file.parent.glob("*.py")) if package else [file]
            self._note(package or module.__name__, " ".join(_sha256(each.read_bytes()) for each in files))
            return
        is_imported = module.__name__.rpartition(".")[2] in (file.stem, file.parent.name)  # not run, nor read as a file
        root = file.parents[module.__name__.count(".") + (file.stem == "__init__") if is_imported else 0]
        self._roots.insert(0, root)
        self._add(module)

    def _add(self, module: ModuleType | None) -> None:
        """Add the file of a module, and of the modules of the project that it imports."""
        waiting = [(module.__name__, str(module.__package__ or ""))] if module is not None else []
        while waiting:
            name, package = waiting.pop()
            file = _module_file(sys.modules.get(name)) or _unloaded_file(name)
            if file is None or file in self._files or self._name(file) is None:
                continue
            content = self._note_file(file)
            if content is None or file.suffix != ".py":
                continue
            self._note_outdated(name, file, content)
            is_package = file.stem == "__init__"
            parent = package if name in sys.modules else name if is_package else name.rpartition(".")[0]
            with contextlib.suppress(SyntaxError, ValueError):
                for imported in _imported(ast.parse(content), parent):
                    parts = imported.split(".")
                    names = (".".join(parts[:length]) for length in range(1, len(parts) + 1))
                    waiting += [(each, str(getattr(sys.modules.get(each), "__package__", ""))) for each in names]

    def _note_file(self, file: Path) -> bytes | None:
        """Add one file of the project, and return its content; None if it cannot be read."""
        self._files.add(file)
        try:
            content = file.read_bytes()
        except OSError:
            return None
        self._found.setdefault(self._name(file) or file.name, set()).add(_sha256(content))
        return content

    def _note_outdated(self, name: str, file: Path, content: bytes) -> None:
        """Note the digest of a file as it was when Python loaded it, if it changed since."""
        spec, digest = getattr(sys.modules.get(name), "__spec__", None), _sha256(content)
        known_spec, first = _first_seen.get(file, (None, digest))
        if known_spec is not spec:  # loaded again since
            first = digest
        _first_seen[file] = spec, first
        if first != digest:
            self.outdated[self._name(file) or file.name] = first

    def _name(self, path: Path) -> str | None:
        """Return what a file is called: its path below a folder of the project; None if it is not its source."""
        if _is_installed(path):
            return None
        for place in (path, path.resolve()):  # which differ if a link leads out of or into the folder
            for root in self._roots:
                if place.is_relative_to(root):
                    parts = place.relative_to(root).parts
                    if not any(part.startswith(".") for part in parts[:-1]):  # such as .venv
                        return "/".join(parts)
        return None

    # --- objects ---

    def _add_objects(self, objects: Iterable[object]) -> None:
        waiting, seen = list(objects), dict[int, object]()
        while waiting and len(seen) < _MOST_OBJECTS:
            thing = waiting.pop()
            if id(thing) not in seen and not isinstance(thing, str | bytes | int | float | None):
                seen[id(thing)] = thing  # which keeps it, and its id
                with contextlib.suppress(Exception):  # objects may do what they like when they are looked at
                    waiting += self._behind(thing)

    def _behind(self, thing: Any) -> Iterable[object]:
        """Add what defines an object, and return the objects that it consists of."""
        if isinstance(thing, partial):
            return [thing.func, *thing.args, *thing.keywords.values()]
        if isinstance(thing, MethodType):
            return [thing.__func__, thing.__self__]
        if isinstance(thing, FunctionType):
            return self._of_function(thing)
        if isinstance(thing, type):
            return self._of_class(thing)
        if isinstance(thing, ModuleType):
            self._add(thing)
            return []
        if isinstance(thing, staticmethod | classmethod):
            return [thing.__func__]
        if isinstance(thing, property):
            return [thing.fget]
        if isinstance(thing, list | tuple | set | frozenset | dict):
            values = thing.values() if isinstance(thing, dict) else thing
            return list(values) if len(thing) <= _MOST_ITEMS else []
        with contextlib.suppress(Exception):  # a model may fail to say what it is
            self._note_settings(thing)
        kind = type(thing)
        is_open = isinstance(thing, Runnable) or kind.__module__.startswith(_FRAMEWORKS)
        return [kind, *_attributes(thing)] if is_open or not _is_foreign(kind) else []

    def _note_settings(self, thing: Any) -> None:
        """Note what an object of a framework is set to: a prompt, a model, what is bound to it, a graph's edges."""
        if isinstance(thing, SystemMessage | PromptTemplate) and self._is_interactive:  # else a file has the prompt
            self._note("a prompt", str(thing.template if isinstance(thing, PromptTemplate) else thing.content))
        if isinstance(thing, BaseLanguageModel):
            self._note("a model", str(_value_text("", dict(thing._identifying_params))))
        if isinstance(thing, RunnableBinding):
            self._note("what is bound", str(_value_text("", dict(thing.kwargs))))
        if type(thing).__module__.startswith("langgraph.") and isinstance(edges := getattr(thing, "edges", None), set):
            self._note("the edges of a graph", str(_plain_text(edges)))

    def _of_function(self, function: FunctionType) -> list[object]:
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
        used = {name: value for name, cell in cells for value in _cell_values(cell)}
        behind = [*used.values(), getattr(function, "__wrapped__", None)]
        file, module = _file_of(function), place_of(str(function.__globals__.get("__name__")))
        if file is not None and _is_installed(file):
            return behind
        if file is not None and self._name(file) is not None:
            self._add(sys.modules.get(function.__module__))
        if file is None or module == "__main__":
            # Its own code, and the values that it uses: a notebook or a script may define both again.
            defaults = _plain_text([*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items()])
            self._note(f"{module}:{function.__qualname__}", f"{_code_text(function.__code__)} {defaults}")
            names = [name for code in _codes(function.__code__) for name in code.co_names]
            used |= {name: function.__globals__[name] for name in names if name in function.__globals__}
        for name in used.keys() - set(_rebound_names(function.__code__)):
            text = _value_text(name, used[name])
            if text is not None:
                self._note(f"{module}:{name}", text)
                self._collections[id(used[name])] = name, used[name], text
        return [*behind, *used.values()]

    def _of_class(self, kind: type) -> list[object]:
        if _is_foreign(kind):
            return []
        methods: list[object] = [each for each in vars(kind).values() if isinstance(each, _METHODS)]
        module = sys.modules.get(kind.__module__)
        if _module_file(module) is not None:
            self._add(module)
            return methods
        for name, value in vars(kind).items():
            if not name.startswith("__") and (text := _plain_text(value)) is not None:
                self._note(f"{place_of(kind.__module__)}:{kind.__qualname__}.{name}", text)
        return [*methods, *kind.__bases__]

    def _note(self, name: str, text: str) -> None:
        self._found.setdefault(name, set()).add(_sha256(text.encode("utf-8", "surrogatepass")))


# --- files and modules -----------------------------------------------------------------------------------------------


def _imported(tree: ast.Module, package: str) -> Iterator[str]:
    """Yield the full names of what a file imports, anywhere in it; a last part may be a name inside of a module."""
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


def _is_foreign(kind: type) -> bool:
    """Return whether a class is one of Python or of an installed package."""
    file = _module_file(sys.modules.get(kind.__module__))
    is_built_in = kind.__module__.partition(".")[0] in sys.stdlib_module_names
    return is_built_in if file is None else _is_installed(file)


# --- values and code -------------------------------------------------------------------------------------------------


def _attributes(thing: Any) -> Iterator[object]:
    with contextlib.suppress(TypeError, AttributeError):
        yield from list(vars(thing).values())
    for kind in type(thing).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else slots:
            yield None if name.startswith("__") else getattr(thing, name, None)


def _cell_values(cell: Any) -> list[object]:
    try:
        return [cell.cell_contents]
    except ValueError:  # not filled yet
        return []


def _value_text(name: str, value: Any) -> str | None:
    """Return a plain value as text, without secrets, which could be guessed by their digest; None for any other."""
    if id(value) in _states:
        return _states[id(value)][1]
    text = _plain_text(value)
    is_data = text is None or (len(text) > _MOST_TEXT and not isinstance(value, str))
    return None if is_data else str(_plain_text(masked_values({name: value})))


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a function and of the functions inside of it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _rebound_names(code: CodeType) -> Iterator[str]:
    """Yield the names of outer variables that a function sets, which are its state."""
    for each in _codes(code):
        for step in dis.get_instructions(each):
            if step.opname in ("STORE_GLOBAL", "STORE_DEREF") and step.argval not in each.co_cellvars:
                yield step.argval


def _code_text(code: CodeType) -> str:
    """Return the code of a function as text: no line numbers, no addresses, no order of sets."""
    constants = [_code_text(each) if isinstance(each, CodeType) else _plain_text(each) for each in code.co_consts]
    return repr((code.co_code.hex(), code.co_names, code.co_varnames, code.co_freevars, constants))


def _plain_text(value: Any, depth: int = 10) -> str | None:
    """Return a plain value as text that is the same in each process; None for any other."""
    if isinstance(value, str | bytes | int | float | complex | None):
        return repr(value)
    if isinstance(value, Mapping):
        value = list(value.items())
    if isinstance(value, list | tuple | set | frozenset) and depth:
        texts = [str(_plain_text(item, depth - 1)) for item in value]
        return f"[{', '.join(sorted(texts) if isinstance(value, set | frozenset) else texts)}]"
    return None


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
