"""Loads the graphs that a langgraph.json names, with the environment variables that they need."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from langgraph.graph import StateGraph
from langgraph.pregel import Pregel
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphrag_eval_lc.benchmark.graph_factories import opened, server_arguments
from graphrag_eval_lc.benchmark.specs import MOST_NAMED, nearest_first
from graphrag_eval_lc.errors import AgentError, GraphRAGEvalError, where_it_failed
from graphrag_eval_lc.files.reading import read_text
from graphrag_eval_lc.masking import remember_secrets_of
from graphrag_eval_lc.registry.plugins import loaded_module
from graphrag_eval_lc.retrying import masked_error_text
from graphrag_eval_lc.texts import listed

Variables = Mapping[str, str | None]

FILE_NAME = "langgraph.json"
_EXAMPLE = '"graphs": {"agent": "./agent.py:agent"}'
_JAVASCRIPT = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts")
_UNNAMED = "LangGraph"  # what LangGraph calls a graph that has no name


@contextmanager
def environment_variables(variables: Variables) -> Iterator[None]:
    """Set environment variables of this process, and put them back at the end.

    The values of those that are secrets by their names are masked from now on. If two agents set the same variable and
    are open at the same time, the one that is opened last is to be closed first.

    Args:
        variables: Values by name; None unsets one.

    Example:
        >>> with environment_variables({"MODEL_OF_TODAY": "gpt-4o-mini"}):
        ...     os.environ["MODEL_OF_TODAY"]
        'gpt-4o-mini'
    """
    remember_secrets_of({name: value for name, value in variables.items() if value is not None})
    before = {name: os.environ.get(name) for name in variables}
    try:
        _set(variables)
        yield
    finally:
        _set(before)


def _set(variables: Variables) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSpec:
    """A graph as a ``langgraph.json`` names it.

    Attributes:
        file: The file, as it was given.
        name: The graph's name in it.
        source: Where the graph is: ``./path/to/file.py:variable`` or ``package.module:variable``.
        dependencies: The local folders that go on ``sys.path``.
        variables: The environment variables of its ``env``.
        warnings: What the user should know of it.
    """

    file: Path
    name: str
    source: str
    dependencies: tuple[Path, ...] = ()
    variables: Variables
    warnings: tuple[str, ...] = ()

    @property
    def spec(self) -> str:
        """The graph's full spec, such as ``langgraph.json:agent``."""
        return f"{self.file}:{self.name}"

    @property
    def place(self) -> str:
        """The module or the file that the graph is in, as ``loaded_module`` loads it."""
        place = self.source.rpartition(":")[0]
        return str(self.file.parent / place) if "/" in place or place.endswith(".py") else place

    def error(self, what: str, hint: str) -> AgentError:
        """Return an error of this graph's entry in the file."""
        return AgentError(what, path=self.file, key=f"graphs.{self.name}", hint=hint)


_Source = Annotated[str, Field(pattern=r".:[^:]+$")]
# The system takes no other variables.
_Name = Annotated[str, Field(pattern=r"^[^=\x00]+$")]
_Value = Annotated[str, Field(pattern=r"^[^\x00]*$")]


class _Entry(BaseModel):
    path: _Source


class _Config(BaseModel):
    """What is read of a langgraph.json; the rest is for LangGraph's server."""

    model_config = ConfigDict(strict=True)

    graphs: Annotated[dict[str, _Source | _Entry], Field(min_length=1)]
    dependencies: list[str] = []
    env: str | dict[_Name, _Value] | None = None
    store: Any = None


def is_graph_spec(spec: str) -> bool:
    """Return whether a spec names a graph of a ``langgraph.json``; a bare name does where the folder has that file."""
    file, _, _ = spec.rpartition(":")
    if spec.lower().endswith(".json") or file.lower().endswith(".json"):
        return True
    is_name = bool(spec) and ":" not in spec and "/" not in spec and not spec.endswith(".py")
    return is_name and Path(FILE_NAME).is_file()


def read_graph_spec(spec: str) -> GraphSpec:
    """Find a graph in its ``langgraph.json``.

    Args:
        spec: ``path/to/langgraph.json:graph``, or the bare name of a graph in the ``langgraph.json`` of the current
            folder.

    Raises:
        AgentError: The file cannot be read, has no such graph, or says something that ``langgraph`` does not take.
    """
    place, name = (spec, "") if spec.lower().endswith(".json") else spec.rpartition(":")[::2]
    file = Path(place or FILE_NAME)
    config = _config_in(file)
    if name not in config.graphs:
        what = f"there is no graph {name}" if name else f"{spec} does not say which graph"
        known = nearest_first(name, config.graphs)
        hint = f"It has {listed(known, MOST_NAMED)}; write {file}:{known[0]}."
        raise AgentError(what, path=file if name else None, hint=hint)
    entry = config.graphs[name]
    source = entry.path if isinstance(entry, _Entry) else entry
    if source.rpartition(":")[0].lower().endswith(_JAVASCRIPT):
        what = f"{source} is JavaScript, which cannot be loaded here"
        hint = "Start LangGraph's server for it and give its address, such as http://127.0.0.1:2024/agent."
        raise AgentError(what, path=file, key=f"graphs.{name}", hint=hint)
    folder = file.resolve().parent
    env = config.env or {}
    variables, warnings = _variables_in(folder / env, env, file) if isinstance(env, str) else (env, ())
    if isinstance(config.store, Mapping) and config.store.get("index"):
        warnings += (f"{file}: store.index is not used, so that the graph's store finds nothing by meaning",)
    return GraphSpec(
        file=file,
        name=name,
        source=source,
        # Dependencies that are no folders are packages, which the user has installed.
        dependencies=(folder, *(path for each in config.dependencies if (path := (folder / each).resolve()).is_dir())),
        variables=variables,
        warnings=warnings,
    )


async def aopen_graph(spec: GraphSpec, config: Mapping[str, Any], stack: AsyncExitStack) -> Pregel[Any, Any, Any, Any]:
    """Load a graph, and keep open what it needs.

    A factory is called once, as the config is the same for all questions, and what it opens stays open until the end;
    LangGraph's server calls it for each run. As there, a graph that is not compiled is compiled, and one without a
    store gets one in memory.

    Args:
        spec: The graph.
        config: LangChain's config, for a factory that takes it.
        stack: Closes what is opened: context managers first, the environment variables last.

    Raises:
        AgentError: It cannot be loaded, or is no graph.
    """
    stack.enter_context(environment_variables(spec.variables))
    value = _loaded(spec)
    store = InMemoryStore()
    if callable(value):
        try:
            value = await opened(value(**server_arguments(value, spec.source, config, store)), stack)
        except GraphRAGEvalError:
            raise
        except (Exception, SystemExit) as problem:
            what = f"{spec.source} failed with {masked_error_text(problem)}"
            raise spec.error(what, where_it_failed(problem)) from problem
    if isinstance(value, StateGraph):
        value = value.compile()
    if not isinstance(value, Pregel):
        hint = " Decorate it with contextlib.asynccontextmanager." if hasattr(value, "__anext__") else ""
        what = f"{spec.source} gives {type(value).__name__}, which langgraph does not take for a graph"
        raise spec.error(what, f"Name a StateGraph, a compiled graph, or a function that gives one of these.{hint}")
    own: dict[str, Any] = {}
    if value.store is None:
        own["store"] = store
    if value.name == _UNNAMED:
        own["name"] = spec.name
    return value.copy(own)


def _config_in(file: Path) -> _Config:
    text = read_text(file, AgentError, what="LangGraph configuration").text
    try:
        return _Config.model_validate_json(text)
    except ValidationError as problem:
        error = problem.errors(include_url=False)[0]
        raise AgentError(
            f"langgraph does not take it: {error['msg'][:1].lower()}{error['msg'][1:]}",
            path=file,
            key=".".join(map(str, error["loc"][:2])) or None,
            hint=f'Write {_EXAMPLE}; env is a file, such as ".env", or texts by name; dependencies are texts.',
        ) from None


def _variables_in(path: Path, given: str, file: Path) -> tuple[Variables, tuple[str, ...]]:
    if not path.is_file():  # it is no part of a repository, as where a job has its variables from elsewhere
        return {}, (f"{file}: there is no file {given}, so that env sets nothing",)
    try:
        from dotenv import dotenv_values  # langgraph-cli has it; no other agent needs it
    except ImportError:
        what = f"reading {given} needs the package python-dotenv, which is not installed"
        raise AgentError(what, path=file, key="env", hint="Run: pip install python-dotenv") from None
    try:
        return dotenv_values(path), ()
    except (OSError, UnicodeError) as problem:
        raise AgentError(f"{given} cannot be read ({problem})", path=file, key="env", hint="Mend it.") from problem


# The folders of all graphs that were loaded so far, and whether each came on sys.path by that.
_folders: dict[str, bool] = {}


def _put_on_path(spec: GraphSpec) -> None:
    """Put the graph's folders on ``sys.path``, before those of other graphs; refuse where theirs hide its modules."""
    own = [str(folder) for folder in spec.dependencies]
    others = [folder for folder in _folders if folder not in own]
    if others and (found := _hidden_module(own, others)):
        name, loaded, hidden = found
        what = f"the module {name} is already loaded for another graph from {loaded}, so that {hidden} would not be"
        raise spec.error(what, "Run each of the two in a process of its own.")
    last = [folder for folder in others if _folders[folder] and folder in sys.path]
    for folder in last:
        sys.path.remove(folder)
    for folder in own:
        is_new = folder not in sys.path
        if is_new:
            sys.path.append(folder)
        _folders.setdefault(folder, is_new)
    sys.path.extend(last)


def _hidden_module(own: list[str], others: list[str]) -> tuple[str, str, Path] | None:
    """Find a module that was loaded from ``others`` and that ``own`` has too: its name, its file and the hidden one."""
    for name, module in list(sys.modules.items()):
        loaded = getattr(module, "__file__", None)
        if not isinstance(loaded, str) or not loaded.startswith(tuple(others)):
            continue
        place = Path(*name.split("."))
        files = (place.with_suffix(".py"), place / "__init__.py")
        if Path(loaded) in {Path(folder, file) for folder in others for file in files}:
            hidden = next((path for folder in own for file in files if (path := Path(folder, file)).is_file()), None)
            if hidden is not None:
                return name, loaded, hidden
    return None


def _loaded(spec: GraphSpec) -> Any:
    """Load the variable that holds the graph or its factory."""
    _put_on_path(spec)
    place, _, variable = spec.source.rpartition(":")
    try:
        module = loaded_module(spec.place, adds_folder=False)
    except AgentError as problem:
        hint = str(problem.hint)
        if problem.what.startswith("there is no"):
            hint = "Files start from the folder of the JSON file; modules are looked for in dependencies and what is "
            hint += "installed."
        elif isinstance(problem.__cause__, ModuleNotFoundError):
            hint = "Install the dependencies of the project; they are never installed from here."
        raise spec.error(problem.what, hint) from problem.__cause__
    found = vars(module).get(variable)
    if found is None:
        graphs = [key for key, value in vars(module).items() if isinstance(value, StateGraph | Pregel)]
        hint = (
            f"It has {listed(nearest_first(variable, graphs), MOST_NAMED)}."
            if graphs
            else "Name one that is a graph or makes one."
        )
        raise spec.error(f"{place} has no variable {variable}", hint)
    return found
