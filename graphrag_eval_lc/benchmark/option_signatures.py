"""Functions that take the options of a model as keywords: type checkers, editors and help() see each of them."""

import inspect
import textwrap
from collections.abc import Callable
from os import PathLike
from typing import Any, ParamSpec, Protocol, TypeVar

from graphrag_eval_lc.benchmark.options import Options
from graphrag_eval_lc.dataset.loading import DatasetSource, Responses

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
_MARK = "**options:"
_WIDTH = 120


class OfAgent(Protocol[P, R_co]):
    """A function of an agent and a dataset."""

    def __call__(self, agent: Any, dataset: DatasetSource, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Take the options as keywords."""
        ...


class OfResponses(Protocol[P, R_co]):
    """A function of a dataset and responses."""

    def __call__(
        self, dataset: DatasetSource, responses: str | PathLike[str] | Responses, *args: P.args, **kwargs: P.kwargs
    ) -> R_co:
        """Take the options as keywords."""
        ...


class OfFolder(Protocol[P, R_co]):
    """A function of the folder of a run."""

    def __call__(self, run_dir: str | PathLike[str], *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Take the options as keywords."""
        ...


def of_agent(options: Callable[P, Options]) -> Callable[[Callable[..., R]], OfAgent[P, R]]:
    """Give a function of an agent and a dataset the options of a model."""
    return _with_fields(options)


def of_responses(options: Callable[P, Options]) -> Callable[[Callable[..., R]], OfResponses[P, R]]:
    """Give a function of a dataset and responses the options of a model."""
    return _with_fields(options)


def of_folder(options: Callable[P, Options]) -> Callable[[Callable[..., R]], OfFolder[P, R]]:
    """Give a function of a run's folder the options of a model."""
    return _with_fields(options)


def _with_fields(model: Any) -> Callable[[Callable[..., Any]], Any]:
    """Show the fields of a model as the keywords of a function that takes ``**options``, and in its docstring."""

    def shown(function: Any) -> Any:
        signature = inspect.signature(function)
        kept = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        keywords = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.annotation)
            for name, field in model.model_fields.items()
        ]
        function.__signature__ = signature.replace(parameters=[*kept, *keywords])
        function.__doc__ = _with_list(function.__doc__, model)
        return function

    return shown


def _with_list(doc: str | None, model: type[Options]) -> str | None:
    """Return a docstring with the fields below the line of its ``**options``, where it has one."""
    lines = (doc or "").splitlines()
    place = next((number for number, line in enumerate(lines, 1) if line.lstrip().startswith(_MARK)), None)
    if place is None:
        return doc
    indent = " " * (len(lines[place - 1]) - len(lines[place - 1].lstrip()) + 4)
    items = [
        textwrap.fill(
            f"- ``{name}``{_default(field.default)}: {field.description}",
            _WIDTH,
            initial_indent=indent,
            subsequent_indent=f"{indent}  ",
            break_on_hyphens=False,
            break_long_words=False,
        )
        for name, field in model.model_fields.items()
    ]
    return "\n".join([*lines[:place], "", *items, *lines[place:]])


def _default(value: Any) -> str:
    return "" if value in (None, (), False) else f" ({value!r})"
