"""The exporters of this package and of users, by name: each writes a run in another form, such as an HTML report."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeVar

from graphrag_eval_lc.errors import GraphRAGEvalError, MissingExtraError, OptionError
from graphrag_eval_lc.registry.plugins import declared, load_installed_plugins, spec_of

ExportFunction = Callable[[Any, Path | None], Path]
_Function = TypeVar("_Function", bound=ExportFunction)

REPORT: Final = "report"
CSV: Final = "csv"
JUNIT: Final = "junit"
SUMMARY: Final = "summary"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporter:
    """The declaration of an exporter.

    Attributes:
        name: Its name.
        title: A few words on what it writes, for people.
        file_name: The file or folder in a run's folder that it writes by default.
        function: ``(run, path) -> path``, or its ``module:attribute``, loaded when it is used. It receives a run in
            memory or a run's folder, and the path to write to (None for ``file_name`` in the folder). It returns the
            path that it wrote.

    Example:
        >>> exporter("report").file_name
        'report.html'
    """

    name: str
    title: str
    file_name: str
    function: ExportFunction | str

    def export(self, run: Any, path: str | PathLike[str] | None = None) -> Path:
        """Write a run (its folder, or what ``run_benchmark`` or ``score_run`` returned), and return the written path.

        Raises:
            GraphRAGEvalError: The run cannot be read, it cannot be written there, or a package is missing.
        """
        function: Any = self.function
        if isinstance(function, str):
            module, _, attribute = function.partition(":")
            function = getattr(import_module(module), attribute)
        written = function(run, None if path is None else Path(path))
        if not isinstance(written, str | PathLike):
            raise OptionError(
                f"the exporter {self.name} returned {type(written).__name__} in place of a path",
                hint="Let its function return the path that it wrote.",
            )
        return Path(written)


_REPORT: Final = "graphrag_eval_lc.report"
_BUILT_IN: Final = {
    name: Exporter(name=name, title=title, file_name=file_name, function=f"{_REPORT}.{function}")
    for name, file_name, function, title in (
        (REPORT, "report.html", "run_report:write_report", "the report, one HTML page"),
        (CSV, "csv", "run_report:write_csv_files", "questions, steps and aggregates as comma-separated values"),
        (JUNIT, "junit.xml", "junit:write_junit", "a test case for each question, JUnit's XML"),
        (SUMMARY, "summary.md", "markdown_summary:write_summary", "the verdict, scores and worst questions, Markdown"),
    )
}
_of_users: Final[dict[str, Exporter]] = declared["exporter"]


def register_exporter(*, name: str, file_name: str, title: str = "") -> Callable[[_Function], _Function]:
    """Register a function that writes runs in another form.

    Args:
        name: Its name.
        file_name: The file or folder in a run's folder that it writes by default.
        title: A few words on what it writes, for people.

    Returns:
        A decorator for a function ``(run, path) -> path``; see ``Exporter``.

    Raises:
        OptionError: Name or file name is empty or a path, or another exporter has the name.

    Example:
        >>> from graphrag_eval_lc.registry import registered_only_here
        >>> with registered_only_here():
        ...     @register_exporter(name="ids", file_name="ids.txt")
        ...     def write_ids(run, path=None):
        ...         path = path or run / "ids.txt"
        ...         return path
    """
    for key, value in (("name", name), ("file_name", file_name)):
        if not value or Path(value).name != value:
            raise OptionError(f"an exporter's {key} is a plain name, not {value!r}", key=key, hint="Name it otherwise.")

    def register(function: _Function) -> _Function:
        known = {**_BUILT_IN, **_of_users}.get(name)
        place = None if known is None else known.function
        if place is not None and not isinstance(place, str):
            place = spec_of(place)
        if place not in (None, spec_of(function)):  # the same function comes again if its module is loaded again
            what = f"there is an exporter {name} already: {place}"
            raise OptionError(what, key="name", hint="Give it another name.")
        _of_users[name] = Exporter(name=name, title=title or name, file_name=file_name, function=function)
        return function

    return register


def exporter(name: str) -> Exporter:
    """Return the exporter with a name; if it is unknown, the plugins of installed packages are loaded first.

    Raises:
        OptionError: No exporter has this name.
        PluginError: A plugin of an installed package fails to load.
    """
    if (known := _BUILT_IN.get(name) or _of_users.get(name) or exporters().get(name)) is None:
        raise OptionError(f"unknown exporter {name!r}", hint=f"The exporters are {', '.join(exporters())}.")
    return known


def exporters() -> Mapping[str, Exporter]:
    """Load the plugins of installed packages, and return all exporters by name."""
    load_installed_plugins()
    return {**_BUILT_IN, **_of_users}


def written_report(folder: Path) -> tuple[Path | None, str | None]:
    """Write the report into a run's folder; return the file and None, or None and the reason for people."""
    try:
        return exporter(REPORT).export(folder), None
    except MissingExtraError as problem:
        return None, f"No report was written: {problem}"
    except GraphRAGEvalError as problem:
        return None, f"Warning: the report could not be written: {problem}"
    except Exception as problem:  # the run is paid for, and all of it is in its folder
        return None, f"Warning: the report could not be written ({type(problem).__name__}: {problem})."
