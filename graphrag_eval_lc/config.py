"""The configuration of an evaluation: one section a room, read from a file or a dict, or made in Python."""

import difflib
from os import PathLike
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphrag_eval_lc.errors import ConfigError
from graphrag_eval_lc.reading import TextFile, parse_json, read_text
from graphrag_eval_lc.safe_yaml import line_of, parse_yaml

Scoring = Literal["last_group", "all_groups"]
Score = Literal["answer_recall", "answer_precision", "answer_relevance", "answer_f1", "steps_score"]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, validate_assignment=True)


class StepsConfig(_Section):
    """How the steps of a question become its ``steps_score``.

    Attributes:
        scoring: ``last_group``: the last group of reference steps counts alone. ``all_groups``: the mean over the
            groups, walking back from the last and stopping after a group that is not matched in full.
        names: Step names by tool name, for tools that are called otherwise than the reference steps:
            ``{search_docs: retrieval}``.
    """

    scoring: Scoring = "last_group"
    names: dict[str, str] = Field(default_factory=dict)


class SparqlConfig(_Section):
    """How SPARQL results are compared where a reference step does not say so itself.

    Attributes:
        ordered: Compare the rows in their order, duplicates too.
        ignore_duplicates: Compare unordered rows as a set; false compares them as a bag.
        strict: Compare RDF terms with kind, datatype and language tag; false compares values.
    """

    ordered: bool = False
    ignore_duplicates: bool = True
    strict: bool = False


class AggregatesConfig(_Section):
    """What the statistics are taken over.

    Attributes:
        errors: ``exclude`` leaves failed questions out of the statistics; ``include`` counts their scores as 0.
    """

    errors: Literal["exclude", "include"] = "exclude"


class RepeatsConfig(_Section):
    """When a sample passes, for pass@k and pass^k of questions that were asked several times.

    Attributes:
        metric: The score that decides.
        threshold: The least score that passes, 0 to 1.
    """

    metric: Score = "steps_score"
    threshold: float = Field(default=1.0, ge=0.0, le=1.0)


class EvaluationConfig(_Section):
    """The whole configuration.

    Example:
        >>> EvaluationConfig(steps=StepsConfig(scoring="all_groups")).sparql.ignore_duplicates
        True
    """

    steps: StepsConfig = Field(default_factory=StepsConfig)
    sparql: SparqlConfig = Field(default_factory=SparqlConfig)
    aggregates: AggregatesConfig = Field(default_factory=AggregatesConfig)
    repeats: RepeatsConfig = Field(default_factory=RepeatsConfig)


ConfigSource = str | PathLike[str] | dict[str, Any] | EvaluationConfig | None


def load_config(source: ConfigSource = None) -> EvaluationConfig:
    """Give the configuration from a YAML or JSON file, a dict, an EvaluationConfig, or the defaults for None.

    Raises:
        ConfigError: The file cannot be read, a key does not exist (with the nearest that does), or a value is
            none that the key takes.

    Example:
        >>> load_config({"steps": {"scoring": "all_groups"}}).steps.scoring
        'all_groups'
    """
    if isinstance(source, EvaluationConfig):
        return source
    if source is None:
        return EvaluationConfig()
    if isinstance(source, dict):
        return _checked(source, None)
    if not isinstance(source, str | PathLike):
        raise ConfigError(
            f"a config cannot be made from {type(source).__name__}",
            mend="Give a path, a dict or an EvaluationConfig.",
        )
    file = read_text(source, ConfigError, what="config")
    if file.format == "json":
        values = parse_json(file.text, ConfigError, what="config", path=file.path)
    else:
        values = parse_yaml(file, ConfigError, what="config")
    return _checked(values if values is not None else {}, file)


def _checked(values: Any, file: TextFile | None) -> EvaluationConfig:
    try:
        return EvaluationConfig.model_validate(values)
    except ValidationError as problem:
        raise _config_error(problem, file) from None


def _config_error(problem: ValidationError, file: TextFile | None) -> ConfigError:
    first = problem.errors()[0]
    location = tuple(part for part in first["loc"] if isinstance(part, str | int))
    key = ".".join(str(part) for part in location) or None
    known = _known_keys(location[:-1])
    if first["type"] == "extra_forbidden":
        what = f"there is no key {key}"
        near = difflib.get_close_matches(str(location[-1]), known, n=1, cutoff=0.5)
        mend = f"Did you mean {near[0]}?" if near else f"Known keys here: {', '.join(known)}."
    elif first["type"] in {"model_type", "model_attributes_type"}:
        what = "a mapping of keys to values is needed here"
        mend = f"Known keys: {', '.join(_known_keys(location))}."
    else:
        what = f"{first['input']!r} is not allowed here"
        mend = f"{first['msg']}."
    return ConfigError(
        what,
        path=file.path if file else None,
        line=line_of(file, location) if file else None,
        key=key,
        mend=mend,
    )


def _known_keys(location: tuple[str | int, ...]) -> list[str]:
    """Give the keys of the section at ``location``; none where that is no section."""
    section: Any = EvaluationConfig
    for part in location:
        field = section.model_fields.get(part)
        section = field.annotation if field else None
        if not (isinstance(section, type) and issubclass(section, BaseModel)):
            return []
    return list(section.model_fields)
