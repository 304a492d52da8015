"""The base of the models of options: how their values are checked and completed, and how mistakes are told.

Heavy modules are imported where they are needed, so that ``--help`` need not wait for them.
"""

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from datetime import timedelta
from difflib import get_close_matches
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, cast, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from graphrag_eval_lc.benchmark.agent_specs import named_by
from graphrag_eval_lc.benchmark.option_conflicts import refuse_conflicts
from graphrag_eval_lc.benchmark.option_fields import Hint, ProgressMode
from graphrag_eval_lc.errors import AgentError, ConfigError, OptionError

if TYPE_CHECKING:
    from graphrag_eval_lc.capture.handler import CaptureKeywords
    from graphrag_eval_lc.config import CaptureConfig, EvaluationConfig, GateConfig
    from graphrag_eval_lc.evaluation.limits import FailureLimit
    from graphrag_eval_lc.evaluation.shards import Shard

POSITIVE = Hint("Give a number greater than 0, or None.")
_REDACT = "capture.redact"
_HINTS = {"bool_type": "Give True or False.", "string_type": "Give a text."}


class UnfitError(ValueError):
    """A value that an option cannot have.

    Args:
        hint: How to put it right.
        says: What is said of the option, where that is not the value: a key must not be shown.
    """

    def __init__(self, hint: str, says: str | None = None) -> None:
        super().__init__(hint)
        self.hint = hint
        self.says = says


class Checked:
    """Checks and completes a value by a function, whatever the type of the field.

    Args:
        check: Takes the value and gives the completed one; raises ``UnfitError`` or an error of this package.
        takes_fields: Whether it is given the fields before this one too.
    """

    def __init__(self, check: Callable[..., Any], *, takes_fields: bool = False) -> None:
        self._check = check
        self._takes_fields = takes_fields

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if not self._takes_fields:
            return core_schema.no_info_plain_validator_function(self._check)

        def check(value: Any, info: ValidationInfo) -> Any:
            return self._check(value, info.data)

        return core_schema.with_info_plain_validator_function(check)


AS_GIVEN = Checked(lambda value: value)


def checked_path(value: Any) -> Path | None:
    """Return a path."""
    if value is None or isinstance(value, str | PathLike):
        if value is not None and "\0" in str(value):
            raise UnfitError("Give a path without a NUL character.")
        return None if value is None else Path(value)
    raise UnfitError("Give a path.")


def checked_texts(value: Any) -> tuple[str, ...]:
    """Return texts as a tuple."""
    if isinstance(value, Collection) and not isinstance(value, str) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise UnfitError("Give a list of texts.")


def checked_measures(value: Any) -> tuple[str, ...] | None:
    """Return measures as a tuple."""
    return None if value is None else checked_texts(value)


def checked_ids(value: Any) -> tuple[str, ...]:
    """Return ids as texts; one may stand without a list."""
    if value is None or isinstance(value, str):
        return () if value is None else (value,)
    if isinstance(value, Collection):
        return tuple(map(str, value))
    raise UnfitError("Give a list of ids.")


def checked_mapping(value: Any) -> Mapping[str, Any]:
    """Return a dict; None gives an empty one."""
    if value is None or isinstance(value, Mapping):
        return {} if value is None else value
    raise UnfitError("Give a dict as LangChain takes it as config.")


def checked_variable(value: Any) -> str | None:
    """Return the name of an environment variable."""
    if value is None or isinstance(value, str):
        return value
    # What was given may be a key.
    raise UnfitError("Give the name of an environment variable.", f"is {type(value).__name__}, no text")


def checked_function(value: Any) -> Any:
    """Return a function, which may be named by its spec."""
    if isinstance(value, str):
        value = named_by(value)
    if value is None or callable(value):
        return value
    hint = "Give a function, its spec as package.module:attribute, or None."
    raise UnfitError(hint, f"is {type(value).__name__}, no function")


def checked_seconds(value: Any) -> float | None:
    """Return seconds, which may be a timedelta."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool) and value > 0):
        return None if value is None else float(value)
    raise UnfitError(POSITIVE.text)


def checked_progress_mode(value: Any) -> ProgressMode:
    """Return how progress is shown, which may be switched on or off by a bool."""
    mode: ProgressMode = "auto" if value is True else "off" if value is False else value
    if mode not in get_args(ProgressMode):
        raise UnfitError(f"Give one of {', '.join(get_args(ProgressMode))}.")
    return mode


def checked_failure_limit(value: Any) -> "FailureLimit | None":
    """Return how many questions may fail."""
    from graphrag_eval_lc.evaluation.limits import FailureLimit

    return None if value is None else FailureLimit.read(value)


def checked_shard(value: Any) -> "Shard | None":
    """Return which part of the samples is meant."""
    from graphrag_eval_lc.evaluation.shards import Shard

    return None if value is None else Shard.read(value)


def checked_evaluators(value: Any) -> tuple[Callable[..., Any], ...]:
    """Return evaluators, of which some may be named by their specs."""
    from graphrag_eval_lc.benchmark.scorers import evaluators_of

    return evaluators_of(value)


def checked_gates(value: Any) -> "Sequence[GateConfig]":
    """Return gates, which may be texts."""
    from graphrag_eval_lc.compare import read_gates

    return tuple(read_gates(value))


def loaded_config(value: Any, fields: Mapping[str, Any]) -> "EvaluationConfig":
    """Return the configuration; the models that were passed count as those of its llm section."""
    from graphrag_eval_lc.config import load_config

    return load_config(
        value, has_llm=fields.get("llm") is not None, has_embeddings=fields.get("embeddings") is not None
    )


def checked_capture(value: Any, fields: Mapping[str, Any]) -> "CaptureKeywords":
    """Return the options of the handler: those given in Python, each of which goes before that of the config."""
    from graphrag_eval_lc.capture.handler import CaptureKeywords, GraphRAGEvalCallbackHandler

    given: CaptureKeywords = {} if value is None else value
    known = list(CaptureKeywords.__annotations__)
    if not isinstance(given, Mapping):
        raise UnfitError(f"Give a dict with some of {', '.join(known)}.", f"cannot be {value!r:.80}")
    for key in given:
        if key not in known:
            near = get_close_matches(str(key), known, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"Known are {', '.join(known)}."
            raise OptionError(f"there is no option {key!r}", key="capture", hint=hint)
    if isinstance(redact := given.get("redact"), str):
        given = {**given, "redact": _redact(redact)}
    GraphRAGEvalCallbackHandler(**given)  # which checks the values
    section: CaptureConfig = fields["config"].capture
    return {
        "step_names": section.step_names,
        "retrieval_documents": section.retrieval_documents,
        "max_output_chars": section.max_output_chars,
        "redact": None if "redact" in given or section.redact is None else _redact(section.redact),
        "keep_artifacts": section.keep_artifacts,
        "keep_messages": section.keep_messages,
        **given,
    }


def _redact(spec: str) -> Callable[[Any], Any] | Literal["secrets"]:
    """Return the function that the config names."""
    if spec == "secrets":
        return "secrets"
    try:
        function = named_by(spec, "a function")
    except AgentError as problem:
        raise ConfigError(problem.what, key=_REDACT, hint=problem.hint) from problem
    if not callable(function):
        hint = "Name a function that takes a value and gives what is kept in its place."
        raise ConfigError(f"{spec} is {type(function).__name__}, no function", key=_REDACT, hint=hint)
    return cast("Callable[[Any], Any]", function)


class Options(BaseModel):
    """Options that are checked when they are made; what is wrong with them is told as OptionError."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, validate_default=True, defer_build=True)

    _config_source: Any = PrivateAttr(default=None)

    @model_validator(mode="wrap")
    @classmethod
    def _check(cls, given: Any, handler: Callable[[Any], Self]) -> Self:
        if isinstance(given, Mapping):
            _refuse_unknown(given.keys(), cls)
            given = {name: _plain_number(value) for name, value in given.items()}
        try:
            options = handler(given)
        except ValidationError as problem:
            raise _option_error(problem, cls) from None
        except ConfigError as problem:
            source = given.get("config") if isinstance(given, Mapping) else None
            if problem.key == _REDACT and problem.path is None and isinstance(source, str | PathLike):
                problem.path = source
            raise
        if isinstance(given, Mapping):
            options._config_source = given.get("config")
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

    @classmethod
    def completed(cls) -> type[Self]:
        """Return the model with the types of its fields, also those that importing it does not load."""
        cls.model_rebuild(_types_namespace=cls._types())
        return cls

    @classmethod
    def _types(cls) -> dict[str, Any]:
        from graphrag_eval_lc.config import ConfigSource
        from graphrag_eval_lc.dataset.loading import DatasetSource

        return {"ConfigSource": ConfigSource, "DatasetSource": DatasetSource}


def _plain_number(value: Any) -> Any:
    """Return a number of another package, such as numpy's, as Python's own; all else as it is."""
    if isinstance(value, int | float) or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def refuse_conflicts_of(options: Options) -> None:
    """Refuse options that exclude each other, or that mean nothing without another.

    Raises:
        OptionError: There are such options.
    """
    fields = type(options).model_fields
    refuse_conflicts(
        [name for name in fields if not _is_left_out(getattr(options, name), fields[name].default)], fields
    )


def _is_left_out(value: Any, default: Any) -> bool:
    return value is None or value is False or (isinstance(value, int | float) and value == default)  # 0 may be a seed


def _refuse_unknown(given: Set[str], model: type[BaseModel]) -> None:
    """Refuse options that a model does not have.

    Raises:
        OptionError: There are some; it names those that exist.
    """
    unknown = sorted(given - model.model_fields.keys())
    if not unknown:
        return
    hint = f"The options are {', '.join(sorted(model.model_fields))}."
    if "capture" in model.model_fields:
        from graphrag_eval_lc.capture.handler import CaptureKeywords

        of_capture = [f'"{key}": …' for key in CaptureKeywords.__annotations__ if key in unknown]
        hint = f"Write capture={{{', '.join(of_capture)}}}." if of_capture else hint
    raise OptionError(f"there is no option {', '.join(unknown)}", hint=hint)


def _option_error(problem: ValidationError, model: type[BaseModel]) -> OptionError:
    """Return what the first wrong value of a model's options is told as."""
    error = problem.errors(include_url=False)[0]
    name, value = str(error["loc"][0]), error["input"]
    cause = error.get("ctx", {}).get("error")
    if isinstance(cause, UnfitError):
        return OptionError(f"{name} {cause.says or f'cannot be {value!r}'}", key=name, hint=cause.hint)
    if error["type"] == "less_than_equal":
        most = error["ctx"]["le"]
        return OptionError(f"{name} is at most {most:,}", key=name, hint=f"Give a whole number up to {most}.")
    field = model.model_fields[name]
    least = next((mark.ge for mark in field.metadata if hasattr(mark, "ge")), None)
    hint = next((mark.text for mark in field.metadata if isinstance(mark, Hint)), None)
    if hint is None and least is not None:
        what, hint = f"{name} is at least {least}, not {value!r}", f"Give a whole number from {least}."
        return OptionError(what, key=name, hint=hint)
    hint = hint or _HINTS.get(error["type"], f"{error['msg']}.")
    return OptionError(f"{name} cannot be {value!r}", key=name, hint=hint)
