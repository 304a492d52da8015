"""The base of the models of options: how they are checked, completed and reported, and shown as keywords."""

import inspect
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from difflib import get_close_matches
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, Self, TypeVar, cast, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    GetPydanticSchema,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import core_schema

from graphrag_eval_lc.benchmark.option_fields import ProgressMode, refuse_conflicts
from graphrag_eval_lc.benchmark.specs import named_by
from graphrag_eval_lc.compare.gates import read_gates
from graphrag_eval_lc.config import CaptureConfig, EvaluationConfig, GateConfig, load_config
from graphrag_eval_lc.dataset.loading import DatasetSource, Responses
from graphrag_eval_lc.errors import AgentError, ConfigError, OptionError

if TYPE_CHECKING:
    from graphrag_eval_lc.capture.values import CaptureKeywords

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
_MARK = "**options:"
_WIDTH = 120
_REDACT = "capture.redact"
AS_GIVEN = GetPydanticSchema(lambda kind, handler: core_schema.any_schema())


def checked_by(check: Callable[[Any], Any]) -> GetPydanticSchema:
    """Have a field's value checked and completed by a function alone, whatever the field's type."""
    return GetPydanticSchema(lambda kind, handler: core_schema.no_info_plain_validator_function(check))


def completed_by(check: Callable[[Any, Mapping[str, Any]], Any]) -> GetPydanticSchema:
    """Have a field's value completed by a function that also has the values of the fields before it."""

    def complete(value: Any, info: ValidationInfo) -> Any:
        return check(value, info.data)

    return GetPydanticSchema(lambda kind, handler: core_schema.with_info_plain_validator_function(complete))


class Options(BaseModel):
    """Options that are checked when they are made; what is wrong with them is reported as OptionError."""

    model_config = ConfigDict(frozen=True, strict=True, arbitrary_types_allowed=True)

    _config_source: Any = PrivateAttr(default=None)

    @model_validator(mode="wrap")
    @classmethod
    def _check(cls, given: dict[str, Any], handler: Callable[[Any], Self]) -> Self:
        _refuse_unknown(given, cls)
        given = {name: _plain_number(value) for name, value in given.items()}
        source = given.get("config")
        defaults = cls.model_fields
        # One that is off or has its default was left out; 0 may be a seed.
        named = [name for name, value in given.items() if value is not None and value is not False]
        numbers = {name: defaults[name].default for name in named if isinstance(given[name], int | float)}
        refuse_conflicts([name for name in named if name not in numbers or given[name] != numbers[name]], defaults)
        try:
            options = handler(given)
        except ValidationError as problem:
            raise _option_error(problem) from None
        except ConfigError as problem:
            if problem.key == _REDACT and problem.path is None and isinstance(source, str | PathLike):
                problem.path = source
            raise
        options._config_source = source
        return options

    @property
    def config_source(self) -> Any:
        """What was given as the configuration, such as its path."""
        return self._config_source

    def replaced(self, **checked: Any) -> Self:
        """Return the same options with other checked values, such as another ``config``."""
        options = self.model_copy()
        vars(options).update(checked)
        return options


def _plain_number(value: Any) -> Any:
    """Return a number of another package, such as numpy's, as Python's own; all else as it is."""
    if isinstance(value, int | float) or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def _refuse_unknown(given: Collection[str], model: type[BaseModel]) -> None:
    """Refuse options that a model does not have.

    Raises:
        OptionError: There are some; it names those that exist.
    """
    unknown = sorted(set(given) - model.model_fields.keys())
    if not unknown:
        return
    hint = f"The options are {', '.join(sorted(model.model_fields))}."
    of_capture = [f'"{key}": …' for key in CaptureConfig.model_fields if key in unknown]
    if of_capture and "capture" in model.model_fields:
        hint = f"Write capture={{{', '.join(of_capture)}}}."
    raise OptionError(f"unknown option {', '.join(unknown)}", hint=hint)


def _option_error(problem: ValidationError) -> OptionError:
    """Return the first wrong value, with all that pydantic, or a check below, says that it should be."""
    errors = problem.errors(include_url=False)
    name = str(errors[0]["loc"][0])
    wanted = [error["msg"].removeprefix("Value error, ") for error in errors if error["loc"][0] == name]
    hint = " or ".join(dict.fromkeys(text.removeprefix("Input should be ") for text in wanted))
    return OptionError(f"{name} cannot be {errors[0]['input']!r:.80}", key=name, hint=f"It must be {hint}.")


# --- checks: each returns the completed value, and raises ValueError with what should be given -----------------------


def checked_path(value: Any) -> Path | None:
    """Return a path."""
    if value is None or (isinstance(value, str | PathLike) and "\0" not in str(value)):
        return None if value is None else Path(value)
    raise ValueError("a path, without a NUL character")


def checked_texts(value: Any) -> tuple[str, ...] | None:
    """Return texts as a tuple; None stays."""
    if value is None:
        return None
    if isinstance(value, Collection) and not isinstance(value, str) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise ValueError("a list of texts")


def checked_mapping(value: Any) -> Mapping[str, Any]:
    """Return a dict; an empty one for None."""
    if value is None or isinstance(value, Mapping):
        return {} if value is None else value
    raise ValueError("a dict, which LangChain accepts as config")


def checked_function(value: Any) -> Any:
    """Return a function, which may be named by its spec."""
    if isinstance(value, str):
        value = named_by(value)
    if value is None or callable(value):
        return value
    raise ValueError("a function, its spec as package.module:attribute, or None")


def checked_seconds(value: Any) -> float | None:
    """Return seconds, which may be a timedelta."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool) and value > 0):
        return None if value is None else float(value)
    raise ValueError("a number greater than 0, a timedelta, or None")


def checked_progress_mode(value: Any) -> ProgressMode:
    """Return how progress is shown, which may be switched on or off by a bool."""
    mode: ProgressMode = "auto" if value is True else "off" if value is False else value
    if mode not in get_args(ProgressMode):
        raise ValueError(f"one of {', '.join(get_args(ProgressMode))}")
    return mode


def checked_gates(value: Any) -> Sequence[GateConfig]:
    """Return gates, which may be texts."""
    return tuple(read_gates(value))


def loaded_config(value: Any, fields: Mapping[str, Any]) -> EvaluationConfig:
    """Return the configuration; the models that were passed count as those of its llm section."""
    return load_config(
        value, has_llm=fields.get("llm") is not None, has_embeddings=fields.get("embeddings") is not None
    )


def checked_capture(value: Any, fields: Mapping[str, Any]) -> "CaptureKeywords":
    """Return the options of the handler: those of the config, overridden by those that are given in Python."""
    known = list(CaptureConfig.model_fields)
    given = {} if value is None else value
    if not isinstance(given, Mapping):
        raise ValueError(f"a dict with some of {', '.join(known)}")
    for key in given:
        if key not in known:
            near = get_close_matches(str(key), known, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"Known are {', '.join(known)}."
            raise OptionError(f"unknown option {key!r}", key="capture", hint=hint)
    if given:
        # It checks the values. Imported here as it loads LangChain, for which --help need not wait.
        from graphrag_eval_lc.capture.handler import GraphRAGEvalCallbackHandler

        given = {**given, "redact": _redact(given["redact"])} if "redact" in given else given
        GraphRAGEvalCallbackHandler(**given)
    section: CaptureConfig = fields["config"].capture
    of_config = {name: getattr(section, name) for name in known}
    if "redact" not in given:
        of_config["redact"] = _redact(section.redact)
    return cast("CaptureKeywords", {**of_config, **given})


def _redact(spec: Any) -> Callable[[Any], Any] | Literal["secrets"] | None:
    """Return the function that a spec names; all else as it is."""
    if not isinstance(spec, str) or spec == "secrets":
        return cast("Callable[[Any], Any]", spec)
    try:
        function = named_by(spec, "a function")
    except AgentError as problem:
        raise ConfigError(problem.what, key=_REDACT, hint=problem.hint) from problem
    if not callable(function):
        hint = "Name a function that accepts a value and returns what is kept in its place."
        raise ConfigError(f"{spec} is {type(function).__name__}, not a function", key=_REDACT, hint=hint)
    return cast("Callable[[Any], Any]", function)


# --- functions that take the options as keywords, which type checkers, editors and help() see -------------------------


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
    """Return a docstring with the fields below the line of its ``**options``, if it has one."""
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
