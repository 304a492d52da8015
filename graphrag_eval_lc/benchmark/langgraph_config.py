"""Loads a graph that a langgraph.json names, and sets the environment variables that it needs."""

import os
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

from langgraph.graph import StateGraph
from langgraph.pregel import Pregel
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphrag_eval_lc.benchmark.options import MOST_NAMED, nearest_first
from graphrag_eval_lc.benchmark.ready_agents import opened, server_arguments
from graphrag_eval_lc.errors import AgentError, GraphRAGEvalError, where_it_failed
from graphrag_eval_lc.files.reading import read_text
from graphrag_eval_lc.masking import remember_secrets_of
from graphrag_eval_lc.registry.plugins import loaded_module
from graphrag_eval_lc.retrying import masked_error_text
from graphrag_eval_lc.texts import listed

FILE_NAME = "langgraph.json"
_SPECS = (
    "Write package.module:attribute, path/to/file.py:attribute, langgraph.json:graph or http://127.0.0.1:2024/agent."
)
_JAVASCRIPT = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts")
_UNNAMED = "LangGraph"  # LangGraph's name for a graph without a name
_INSTALLED = ("site-packages", "dist-packages", sysconfig.get_path("stdlib"))
_Source = Annotated[str, Field(pattern=r".:[^:]+$")]
_Name = Annotated[str, Field(pattern=r"^[^=\x00]+$")]  # the system accepts no other variables
_Value = Annotated[str, Field(pattern=r"^[^\x00]*$")]


class _Entry(BaseModel):
    path: _Source


class _Config(BaseModel):
    """The keys of a langgraph.json that are read; the others are for LangGraph's server."""

    model_config = ConfigDict(strict=True)

    graphs: Annotated[dict[str, _Source | _Entry], Field(min_length=1)]
    dependencies: list[str] = []
    env: str | dict[_Name, _Value] | None = None
    store: Any = None


async def aopen_graph(
    spec: str, config: Mapping[str, Any], stack: AsyncExitStack
) -> tuple[Pregel[Any, Any, Any, Any], str, dict[str, Any]]:
    """Load a graph, and keep open what it needs.

    A factory is called once, as the config is the same for all questions, and what it opens stays open until the end;
    LangGraph's server calls it for each run. As on the server, a graph that is not compiled is compiled, and one
    without a store gets one in memory.
    """
    file, name, read = _entry_of(spec)
    entry = read.graphs[name]
    source = entry.path if isinstance(entry, _Entry) else entry

    def error(what: str, hint: str) -> AgentError:
        return AgentError(what, path=file, key=f"graphs.{name}", hint=hint)

    if source.rpartition(":")[0].lower().endswith(_JAVASCRIPT):
        hint = "Start LangGraph's server for it and give its address, such as http://127.0.0.1:2024/agent."
        raise error(f"{source} is JavaScript, which cannot be loaded here", hint)
    variables, warnings = _variables_of(read, file)
    stack.enter_context(_environment(variables))
    module, value = _loaded(source, file, read.dependencies, error)
    store = InMemoryStore()
    if callable(value):
        try:
            value = await opened(value(**server_arguments(value, source, config, store)), stack)
        except GraphRAGEvalError:
            raise
        except (Exception, SystemExit) as failure:
            raise error(f"{source} failed with {masked_error_text(failure)}", where_it_failed(failure)) from failure
    if isinstance(value, StateGraph):
        value = value.compile()
    if not isinstance(value, Pregel):
        hint = " Decorate it with contextlib.asynccontextmanager." if hasattr(value, "__anext__") else ""
        what = f"{source} gives {type(value).__name__}, which langgraph does not take for a graph"
        raise error(what, f"Name a StateGraph, a compiled graph, or a function that returns one of these.{hint}")
    own = {"store": value.store or store, "name": name if value.name == _UNNAMED else value.name}
    shown = f"{file}:{name}"
    fields = {"spec": shown, "source": source, "warnings": warnings, "module": module, "config_file": file}
    return value.copy(own), shown, fields


def _entry_of(spec: str) -> tuple[Path, str, _Config]:
    """Return the langgraph.json that a spec names, the graph's name in it, and the parsed file."""
    place, name = (spec, "") if spec.lower().endswith(".json") else spec.rpartition(":")[::2]
    if not place and ("/" in spec or not Path(FILE_NAME).is_file()):
        raise AgentError(
            f"{spec!r} is not the spec of an agent, and the current folder has no langgraph.json", hint=_SPECS
        )
    file = Path(place or FILE_NAME)
    try:
        read = _Config.model_validate_json(read_text(file, AgentError, what="LangGraph configuration").text)
    except ValidationError as problem:
        error = problem.errors(include_url=False)[0]
        raise AgentError(
            f"langgraph does not take it: {error['msg'][:1].lower()}{error['msg'][1:]}",
            path=file,
            key=".".join(map(str, error["loc"][:2])) or None,
            hint='Write "graphs": {"agent": "./agent.py:agent"}; env is a file, such as ".env", or texts by name; '
            "dependencies are texts.",
        ) from None
    if name not in read.graphs:
        what = f"the file has no graph {name}" if name else f"{spec} does not say which graph"
        known = nearest_first(name, read.graphs)
        hint = f"It has {listed(known, MOST_NAMED)}; write {file}:{known[0]}."
        raise AgentError(what, path=file if name else None, hint=hint)
    return file, name, read


def _variables_of(read: _Config, file: Path) -> tuple[Mapping[str, str | None], tuple[str, ...]]:
    """Return the environment variables of a graph, and warnings."""
    warnings = []
    if isinstance(read.store, Mapping) and read.store.get("index"):
        warnings.append(f"{file}: store.index is not used, so that the graph's store finds nothing by meaning")
    if not isinstance(read.env, str):
        return read.env or {}, tuple(warnings)
    path = file.resolve().parent / read.env
    if not path.is_file():  # it is not part of a repository, and a job may have its variables from elsewhere
        return {}, (*warnings, f"{file}: the file {read.env} is missing, so that env sets nothing")
    try:
        from dotenv import dotenv_values  # langgraph-cli has it; no other agent needs it

        return dotenv_values(path), tuple(warnings)
    except ImportError:
        what = f"reading {read.env} needs the package python-dotenv, which is not installed"
        raise AgentError(what, path=file, key="env", hint="Run: pip install python-dotenv") from None
    except (OSError, UnicodeError) as problem:
        raise AgentError(f"{read.env} cannot be read ({problem})", path=file, key="env", hint="Fix it.") from problem


@contextmanager
def _environment(variables: Mapping[str, str | None]) -> Iterator[None]:
    """Set environment variables (None unsets one) until the end of the context; secrets among them stay masked."""
    remember_secrets_of({name: value for name, value in variables.items() if value is not None})
    before = {name: os.environ.get(name) for name in variables}
    try:
        _set(variables)
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


# The folders that graphs loaded so far have put on sys.path.
_added: list[str] = []


def _loaded(
    source: str, file: Path, dependencies: Sequence[str], error: Callable[[str, str], AgentError]
) -> tuple[ModuleType, Any]:
    """Load the variable that holds the graph or its factory; return its module too."""
    folder = file.resolve().parent
    # Dependencies that are not folders are packages, which the user has installed.
    folders = [folder, *(path for each in dependencies if (path := (folder / each).resolve()).is_dir())]
    if (hidden := _hidden_module(folders)) is not None:
        raise error(hidden, "Run each of the two in a separate process.")
    own = list(dict.fromkeys(map(str, folders)))
    others = [each for each in _added if each not in own and each in sys.path]
    sys.path[:] = [each for each in sys.path if each not in others]
    _added.extend(new := [each for each in own if each not in sys.path])
    sys.path.extend([*new, *others])  # after all that is installed, as langgraph does
    place, _, variable = source.rpartition(":")
    is_file = "/" in place or place.endswith(".py")
    try:
        module = loaded_module(str(file.parent / place) if is_file else place, adds_folder=False)
    except AgentError as problem:
        hint = str(problem.hint)
        if problem.what.endswith("was not found"):
            hint = "Files start from the folder of the JSON file; modules are looked for in dependencies and what is "
            hint += "installed."
        elif isinstance(problem.__cause__, ModuleNotFoundError):
            hint = "Install the dependencies of the project; they are never installed from here."
        raise error(problem.what, hint) from problem.__cause__
    if variable not in vars(module):
        graphs = [key for key, value in vars(module).items() if isinstance(value, StateGraph | Pregel)]
        known = f"It has {listed(nearest_first(variable, graphs), MOST_NAMED)}."
        raise error(f"{place} has no variable {variable}", known if graphs else "Name one that is a graph.")
    return module, vars(module)[variable]


def _hidden_module(folders: Sequence[Path]) -> str | None:
    """Return the problem if a module in these folders has the name of another graph's module, loaded already."""
    for name, module in list(sys.modules.items()):
        loaded = getattr(module, "__file__", None)
        if "." in name or not isinstance(loaded, str) or any(each in loaded for each in _INSTALLED):
            continue
        own = [path for each in folders for path in (each / f"{name}.py", each / name / "__init__.py")]
        hidden = next((path for path in own if path.is_file()), None)
        if hidden is not None and Path(loaded).resolve() not in own:
            return f"the module {name} is already loaded from {loaded}, so that {hidden} would not be"
    return None
