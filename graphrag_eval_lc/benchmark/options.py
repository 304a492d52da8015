"""The base of all option models: checks and completes values, imports specs, shows fields as keywords of functions."""

import inspect
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from difflib import SequenceMatcher, get_close_matches
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, Self, TypeVar, cast, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetPydanticSchema,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import core_schema

from graphrag_eval_lc.benchmark.option_fields import ProgressMode, refuse_conflicts
from graphrag_eval_lc.compare.gates import read_gates
from graphrag_eval_lc.config import CaptureConfig, EvaluationConfig, GateConfig, load_config
from graphrag_eval_lc.dataset.loading import DatasetSource, Responses
from graphrag_eval_lc.errors import AgentError, ConfigError, OptionError
from graphrag_eval_lc.registry.plugins import loaded_module
from graphrag_eval_lc.texts import listed

if TYPE_CHECKING:
    from graphrag_eval_lc.capture.values import CaptureKeywords

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
MOST_NAMED = 20
_SPEC_HINT = "Write package.module:attribute or path/to/file.py:attribute."
_MARK = "**options:"
_WIDTH = 120
_REDACT = "capture.redact"
AS_GIVEN = GetPydanticSchema(lambda kind, handler: core_schema.any_schema())


# --- specs: package.module:attribute ----------------------------------------------------------------------------------


def named_by(spec: str, what: str = "an agent") -> Any:
    """Import and return the object that a spec names, ``package.module:attribute`` or ``path/to/file.py:attribute``.

    Example:
        >>> named_by("string:ascii_lowercase")[:3]
        'abc'
    """
    place, separator, attribute = spec.rpartition(":")
    if not separator or not place or not attribute:
        raise AgentError(f"{spec!r} is not the spec of {what}", hint=_SPEC_HINT)
    module = loaded_module(place, hint=_SPEC_HINT)
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            # An object with invoke counts as a Runnable: scoring reads specs too, and must not import LangChain.
            public = [
                name
                for name, value in vars(module).items()
                if not name.startswith("_") and (hasattr(type(value), "invoke") or inspect.isfunction(value))
            ]
            names = listed(nearest_first(attribute, public), MOST_NAMED)
            raise AgentError(f"{place} has no attribute {attribute}", hint=f"It has: {names or 'nothing public'}.")
        found = getattr(found, part)
    return found


def nearest_first(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names, sorted by similarity to an unknown one."""
    return sorted(known, key=lambda each: -SequenceMatcher(None, name.lower(), each.lower()).ratio())


# --- options ----------------------------------------------------------------------------------------------------------


def says(description: str, **rules: Any) -> Any:
    """Return a field with a description and rules for its value, such as ``ge=1``."""
    return Field(description=description, **rules)


def checked_by(check: Callable[[Any], Any]) -> GetPydanticSchema:
    """Have a function check and complete a field's value, in place of pydantic's check of the type."""
    return GetPydanticSchema(lambda kind, handler: core_schema.no_info_plain_validator_function(check))


def completed_by(check: Callable[[Any, ValidationInfo], Any]) -> GetPydanticSchema:
    """Have a function complete a field's value; it also receives the values of the fields declared before it."""
    return GetPydanticSchema(lambda kind, handler: core_schema.with_info_plain_validator_function(check))


class Options(BaseModel):
    """Options that are checked when they are created; the first wrong value raises an OptionError."""

    model_config = ConfigDict(frozen=True, strict=True, arbitrary_types_allowed=True)

    _config_source: Any = PrivateAttr(default=None)

    @model_validator(mode="wrap")
    @classmethod
    def _check(cls, given: dict[str, Any], handler: Callable[[Any], Self]) -> Self:
        fields, source = cls.model_fields, given.get("config")
        if unknown := sorted(given.keys() - fields.keys()):
            hint = f"The options are {', '.join(sorted(fields))}."
            of_capture = [f'"{key}": …' for key in CaptureConfig.model_fields if key in unknown]
            if of_capture and "capture" in fields:
                hint = f"Write capture={{{', '.join(of_capture)}}}."
            raise OptionError(f"unknown option {', '.join(unknown)}", hint=hint)
        # Numbers of other packages, such as numpy's, become Python's own.
        numbers = {name: value for name, value in given.items() if isinstance(value, Real)}
        plain = {name: int(each) if isinstance(each, Integral) else float(each) for name, each in numbers.items()}
        given |= {name: each for name, each in plain.items() if not isinstance(given[name], int | float)}
        # An option that is off or has its default counts as left out; 0 may be a seed.
        defaults = {name: fields[name].default for name in plain}
        left_out = [name for name, each in given.items() if each is None or each is False]
        left_out += [name for name, each in plain.items() if defaults[name] == each]
        refuse_conflicts([name for name in given if name not in left_out], fields)
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
        """The ``config`` as it was passed, such as its path."""
        return self._config_source

    def replaced(self, **checked: Any) -> Self:
        """Return the same options with other checked values, such as another ``config``."""
        options = self.model_copy()
        vars(options).update(checked)
        return options


def _option_error(problem: ValidationError) -> OptionError:
    """Return the error on the first wrong value, with every form that pydantic or a check below allows."""
    errors = problem.errors(include_url=False)
    name = str(errors[0]["loc"][0])
    wanted = [error["msg"].removeprefix("Value error, ") for error in errors if error["loc"][0] == name]
    hint = " or ".join(dict.fromkeys(text.removeprefix("Input should be ") for text in wanted))
    return OptionError(f"{name} cannot be {errors[0]['input']!r:.80}", key=name, hint=f"It must be {hint}.")


# --- checks: each returns the completed value, or raises a ValueError whose text completes "It must be …" ------------


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
    """Return gates, which may be written as texts such as ``steps_score=0.9``."""
    return tuple(read_gates(value))


def loaded_config(value: Any, others: ValidationInfo) -> EvaluationConfig:
    """Return the configuration; the models that were passed count as those of its llm section."""
    has_llm, has_embeddings = (others.data.get(name) is not None for name in ("llm", "embeddings"))
    return load_config(value, has_llm=has_llm, has_embeddings=has_embeddings)


def checked_evaluators(given: Any) -> tuple[Callable[..., Any], ...]:
    """Return evaluators as functions; those that are given as specs are loaded."""
    if given is None:
        return ()
    if not isinstance(given, str | bytes | Mapping) and isinstance(given, Iterable):
        found = tuple(named_by(each, "an evaluator") if isinstance(each, str) else each for each in given)
        if all(map(callable, found)):
            return found
    raise OptionError(f"evaluators cannot be {given!r}", key="evaluators", hint="Give a list of functions.")


def checked_capture(value: Any, others: ValidationInfo) -> "CaptureKeywords":
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
    merged = {**dict(others.data["config"].capture), **given}
    if isinstance(spec := merged["redact"], str) and spec != "secrets":
        merged["redact"] = _redact(spec)
    if given:
        # It checks the values. It is imported here because it loads LangChain, which would slow down --help.
        from graphrag_eval_lc.capture.handler import GraphRAGEvalCallbackHandler

        GraphRAGEvalCallbackHandler(**{name: merged[name] for name in given})
    return cast("CaptureKeywords", merged)


def _redact(spec: str) -> Callable[[Any], Any]:
    """Return the function that a spec names."""
    try:
        function = named_by(spec, "a function")
    except AgentError as problem:
        raise ConfigError(problem.what, key=_REDACT, hint=problem.hint) from problem
    if not callable(function):
        hint = "Name a function that accepts a value and returns what is kept in its place."
        raise ConfigError(f"{spec} is {type(function).__name__}, not a function", key=_REDACT, hint=hint)
    return cast("Callable[[Any], Any]", function)


# --- functions whose keywords are the fields of a model, visible to type checkers, editors and help() -----------------


class _OfAgent(Protocol[P, R_co]):
    def __call__(self, agent: Any, dataset: DatasetSource, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class _OfResponses(Protocol[P, R_co]):
    def __call__(
        self, dataset: DatasetSource, responses: str | PathLike[str] | Responses, *args: P.args, **kwargs: P.kwargs
    ) -> R_co: ...


class _OfFolder(Protocol[P, R_co]):
    def __call__(self, run_dir: str | PathLike[str], *args: P.args, **kwargs: P.kwargs) -> R_co: ...


def of_agent(options: Callable[P, Options]) -> Callable[[Callable[..., R]], _OfAgent[P, R]]:
    """Decorate a function of an agent and a dataset: its keywords are the fields of a model."""
    return _with_fields(options)


def of_responses(options: Callable[P, Options]) -> Callable[[Callable[..., R]], _OfResponses[P, R]]:
    """Decorate a function of a dataset and responses: its keywords are the fields of a model."""
    return _with_fields(options)


def of_folder(options: Callable[P, Options]) -> Callable[[Callable[..., R]], _OfFolder[P, R]]:
    """Decorate a function of a run's folder: its keywords are the fields of a model."""
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
            f"- ``{name}``{_shown(field.default)}: {field.description}",
            _WIDTH,
            initial_indent=indent,
            subsequent_indent=f"{indent}  ",
            break_on_hyphens=False,
            break_long_words=False,
        )
        for name, field in model.model_fields.items()
    ]
    return "\n".join([*lines[:place], "", *items, *lines[place:]])


def _shown(value: Any) -> str:
    return "" if value in (None, (), False) else f" ({value!r})"
