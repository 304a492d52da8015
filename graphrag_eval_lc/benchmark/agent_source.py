"""Which source an agent was made from: digests of its files, and of the functions that are in no file."""

import contextlib
import dis
import hashlib
import inspect
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import takewhile
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import SystemMessage
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import Runnable, RunnableBinding

from graphrag_eval_lc.benchmark.agents import Agent
from graphrag_eval_lc.masking import masked_values
from graphrag_eval_lc.registry.plugins import module_from, place_of

Digests = dict[str, str]
"""SHA-256 by the name of a file, or of a function such as ``__main__:answer``; sorted by name."""

_PACKAGES = {"site-packages", "dist-packages"}
_PATHS = ("stdlib", "platstdlib", "purelib", "platlib")
_INSTALLED = (Path(__file__).resolve().parents[1], *{Path(sysconfig.get_path(name)).resolve() for name in _PATHS})
# An import statement anywhere, also inside a function. One in a docstring costs a look for its file.
_IMPORT = re.compile(
    r"(?:^|[:;])[ \t]*(?:from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]*(\([^)]*\)|[^\n#;]*)|import[ \t]+([\w., \t]+))", re.M
)
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

    Source is every file below the project folder that the agent's own file or module imports, also inside of
    functions. The project folder is the current folder, the folder that the agent's file or package is in, and those
    of ``PYTHONPATH``. For an agent made in Python it is the files that define its functions, graph nodes and tools,
    with what they import; a function without a file (in a notebook, at a prompt) has a digest of its code. Installed
    packages do not count.

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
        self._roots = [Path.cwd(), *(each for each in named if not any(each.glob("*.dist-info")))]  # that is installed
        self._modules_before = frozenset(sys.modules)
        self.outdated: Digests = {}
        self._loaded: dict[Path, ModuleType] = {}
        self._looked_up: dict[tuple[Path, tuple[str, ...]], list[Path]] = {}
        self._files: dict[Path, str] = {}
        self._found: dict[str, set[str]] = {}  # digests by name; several functions may have one name
        self._collections: dict[int, tuple[str, object, str]] = {}  # with their names and texts, by id
        self._is_interactive = _module_file(sys.modules.get("__main__")) is None

    def digests(self, agent: Agent, functions: Iterable[object] = ()) -> Digests:
        """Return the digests of what the agent is made from, which are the same in each process.

        Args:
            agent: The agent, loaded.
            functions: What makes its input and its answer.
        """
        modules = ((_module_file(module), module) for module in list(sys.modules.values()))
        self._loaded = {file: module for file, module in modules if file is not None}
        module = None
        if not isinstance(agent.given, str):
            named = _function_of(agent.given)
            module = sys.modules.get(str(named.__module__)) if _file_of(named) is not None else None
        elif "://" not in agent.given:
            is_graph = agent.source is not None
            module = module_from(self._add_graph_spec(str(agent.spec)) if is_graph else agent.given.rpartition(":")[0])
        if module is not None:
            self._add_named(module)
        self._add_objects([*([] if isinstance(agent.given, str) else [agent.given, agent.runnable]), *functions])
        return self._sorted()

    def later_digests(self) -> Digests:
        """Return the digests of other files of the project that were loaded since: by name, as plugins of an agent.

        It is called after the run. Collections that the agent changed in it are taken as they were before from now on.
        """
        for key, (name, value, text) in self._collections.items():
            if _value_text(name, value) != text:
                _states[key] = value, text
        known = dict(self._sorted())
        for name in sys.modules.keys() - self._modules_before:
            file = _module_file(sys.modules.get(name))
            if file is not None and self._name(file) is not None:
                self._add(file)
        return {name: digest for name, digest in self._sorted().items() if name not in known}

    def digest_now(self, name: str) -> str | None:
        """Return the digest of a file of the project as it is now; None if it does not exist any more."""
        return next((digest for root in self._roots if (digest := _digest(root / name)) is not None), None)

    def _sorted(self) -> Digests:
        found = {name: set(digests) for name, digests in self._found.items()}
        for file, digest in self._files.items():
            found.setdefault(self._name(file) or file.name, set()).add(digest)
        return {
            name: next(iter(digests)) if len(digests) == 1 else _sha256("".join(sorted(digests)).encode())
            for name, digests in sorted(found.items())
        }

    # --- files ---

    def _add_graph_spec(self, spec: str) -> str:
        """Add a ``langgraph.json`` and its local dependencies to the project; return the place of its graph."""
        from graphrag_eval_lc.benchmark.langgraph_config import read_graph_spec  # few agents need LangGraph for it

        found = read_graph_spec(spec)
        self._roots += [folder for folder in found.dependencies if folder not in self._roots]
        self._add(found.file.resolve())
        return found.place

    def _add_named(self, module: ModuleType) -> None:
        """Add the module that a spec names, or that defines the agent, wherever its file is."""
        file = _module_file(module)
        if file is None or module.__name__.startswith(_FRAMEWORKS):
            return
        if _is_installed(file):
            package = str(module.__spec__.parent or "") if module.__spec__ else ""
            files = sorted(file.parent.glob("*.py")) if package else [file]
            self._note(package or module.__name__, " ".join(str(_digest(each)) for each in files))
            return
        self._loaded[file] = module
        is_imported = module.__name__.rpartition(".")[2] in (file.stem, file.parent.name)  # not run, nor read as a file
        root = file.parents[module.__name__.count(".") + (file.stem == "__init__") if is_imported else 0]
        self._roots += [] if root in self._roots else [root]
        self._add(file, *self._found_files(tuple(module.__name__.split(".")), self._folders()))

    def _add(self, *files: Path) -> None:
        """Add files, and what they import from below the project folder."""
        waiting, folders = list(files), self._folders()
        while waiting:
            file = waiting.pop()
            if file in self._files or self._name(file) is None:
                continue
            try:
                content = file.read_bytes()
            except OSError:
                continue
            self._files[file] = digest = _sha256(content)
            if (module := self._loaded.get(file)) is not None:
                spec, first = _first_seen.get(file, (None, digest))
                if spec is not module.__spec__:  # loaded again since
                    first = digest
                _first_seen[file] = module.__spec__, first
                if first != digest:
                    self.outdated[self._name(file) or file.name] = first
            if file.suffix == ".py":
                waiting += self._imported(file, content.decode("utf-8", "replace").replace("\\\n", " "), folders)

    def _imported(self, file: Path, text: str, folders: list[Path]) -> Iterator[Path]:
        for dots, module, names, plain in _IMPORT.findall(text):
            for name in _first_words(plain):
                yield from self._found_files(tuple(name.split(".")), folders)
            if module or dots:
                base = [file.parents[len(dots) - 1]] if 0 < len(dots) <= len(file.parents) else folders
                package = module.split(".") if module else ()
                for name in _first_words(names.strip("()")):
                    yield from self._found_files((*package, name), base)

    def _found_files(self, parts: tuple[str, ...], folders: Iterable[Path]) -> list[Path]:
        """Return the files of a module and of its packages; the last part may be a name inside of the module."""
        return next((found for folder in folders if (found := self._files_in(folder, parts))), [])

    def _files_in(self, folder: Path, parts: tuple[str, ...]) -> list[Path]:
        known = self._looked_up.get((folder, parts))
        if known is None:
            known, place = [], folder
            for part in takewhile(str.isidentifier, parts):  # the * of an import is none
                place = place / part
                known += [each for each in (place.with_suffix(".py"), place / "__init__.py") if each.is_file()]
            self._looked_up[folder, parts] = known
        return known

    def _folders(self) -> list[Path]:
        """Return the folders below the project folder in which modules are looked for."""
        known = [Path(entry).resolve() for entry in sys.path if entry]
        return [*dict.fromkeys([*(each for each in known if self._name(each) is not None), *self._roots])]

    def _name(self, path: Path) -> str | None:
        """Return what a file is called: its path below the project folder; None if it is not source of the project."""
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
            self._add(*filter(None, [_module_file(thing)]))
            return []
        if isinstance(thing, staticmethod | classmethod):
            return [thing.__func__]
        if isinstance(thing, property):
            return [thing.fget]
        if isinstance(thing, SystemMessage | PromptTemplate) and self._is_interactive:  # else a file has the prompt
            text = thing.template if isinstance(thing, PromptTemplate) else _plain_text(thing.content)
            self._note("a prompt", str(text))
        with contextlib.suppress(Exception):  # a model may fail to tell
            for name, setting in _settings(thing):
                self._note(name, setting)
        if isinstance(thing, list | tuple | set | frozenset | dict):
            values = thing.values() if isinstance(thing, dict) else thing
            return list(values) if len(thing) <= _MOST_ITEMS else []
        kind = type(thing)
        is_open = isinstance(thing, Runnable) or kind.__module__.startswith(_FRAMEWORKS)
        return [kind, *_attributes(thing)] if is_open or not _is_foreign(kind) else []

    def _of_function(self, function: FunctionType) -> list[object]:
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
        captured = {name: value for name, cell in cells for value in _cell_values(cell)}
        behind = [*captured.values(), getattr(function, "__wrapped__", None)]
        file = _file_of(function)
        if file is not None and _is_installed(file):
            return behind
        has_file = file is not None and self._name(file) is not None
        if file is not None:
            self._add(file)
        # Its own text too: a script, or a function that makes functions, may define another one under the same name.
        module = place_of(str(function.__globals__.get("__name__")))
        self._note(f"{module}:{function.__qualname__}", _function_text(function, has_file=has_file))
        names = _names_in(function.__code__) if module == "__main__" or not has_file else ()
        used = {name: function.__globals__[name] for name in names if name in function.__globals__}
        rebound = set(_rebound_names(function.__code__))
        for name, value in {**used, **captured}.items():
            is_plain = name in captured and isinstance(value, int | float)
            is_constant = (is_plain or not has_file) and name not in rebound
            if (is_constant or isinstance(value, str)) and (text := _value_text(name, value)) is not None:
                self._note(f"{module}:{name}", text)
                if isinstance(value, list | dict | set):
                    self._collections[id(value)] = name, value, text
        return [*behind, *used.values()]

    def _of_class(self, kind: type) -> list[object]:
        if _is_foreign(kind):
            return []
        file = _file_of(kind)
        if file is not None and self._name(file) is not None:
            self._add(file)
            return [each for each in vars(kind).values() if isinstance(each, _METHODS)]
        for name, value in vars(kind).items():
            if not name.startswith("__") and (text := _plain_text(value)) is not None:
                self._note(f"{place_of(kind.__module__)}:{kind.__qualname__}.{name}", text)
        return [*(each for each in vars(kind).values() if isinstance(each, _METHODS)), *kind.__bases__]

    def _note(self, name: str, text: str) -> None:
        self._found.setdefault(name, set()).add(_sha256(text.encode("utf-8", "surrogatepass")))


def _function_of(given: Any) -> Any:
    """Return the function that an agent is or calls; of any other object its class."""
    while isinstance(given, partial):
        given = given.func
    given = inspect.unwrap(given) if callable(given) else given
    return given if isinstance(given, FunctionType | MethodType | type) else type(given)


def _file_of(thing: Any) -> Path | None:
    """Return the file with the code of a function or class; None if it was made in a notebook or at a prompt."""
    function = getattr(thing, "__func__", thing)
    if not isinstance(function, FunctionType):
        return _module_file(sys.modules.get(str(getattr(thing, "__module__", None))))
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


def _first_words(names: str) -> Iterator[str]:
    """Yield the names of an import statement, without what they are called here and without comments."""
    for part in re.sub(r"#[^\n]*", "", names).split(","):
        if words := part.split():
            yield words[0]


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


def _settings(thing: Any) -> Iterator[tuple[str, str]]:
    """Yield what an object of a framework is set to: a model, what is bound to it, or the edges of a graph."""
    if isinstance(thing, BaseLanguageModel):
        yield "a model", str(_value_text("", dict(thing._identifying_params)))
    if isinstance(thing, RunnableBinding):
        yield "what is bound", str(_value_text("", dict(thing.kwargs)))
    if type(thing).__module__.startswith("langgraph.") and isinstance(edges := getattr(thing, "edges", None), set):
        yield "the edges of a graph", str(_plain_text(edges))


def _value_text(name: str, value: Any) -> str | None:
    """Return a plain value as text, without secrets, which could be guessed by their digest; None for any other."""
    if id(value) in _states:
        return _states[id(value)][1]
    text = _plain_text(value)
    is_data = text is None or (len(text) > _MOST_TEXT and not isinstance(value, str))
    return None if is_data else str(_plain_text(masked_values({name: value})))


def _rebound_names(code: CodeType) -> Iterator[str]:
    """Yield the names of outer variables that a function sets, which are its state."""
    for step in dis.get_instructions(code):
        if step.opname in ("STORE_GLOBAL", "STORE_DEREF") and step.argval not in code.co_cellvars:
            yield step.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _rebound_names(constant)


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def _function_text(function: FunctionType, *, has_file: bool) -> str:
    """Return the source of a function, or of a lambda, and of one without a file, its code; and its defaults."""
    text = ""
    if has_file and function.__name__ != "<lambda>":  # whose lines have more than the lambda
        with contextlib.suppress(OSError, SyntaxError, IndexError):
            text = inspect.getsource(function)
    defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items()]
    return f"{text or _code_text(function.__code__)} {_plain_text(defaults)}"


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


def _digest(file: Path) -> str | None:
    try:
        return _sha256(file.read_bytes()) if file.is_file() else None
    except OSError:
        return None


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
