"""Reading the configuration from a file or a dict, with errors that name the place and show no secret."""

import difflib
from collections.abc import Sequence
from os import PathLike
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from graphrag_eval_lc.config.evaluation_config import EvaluationConfig, check_models, check_repeats
from graphrag_eval_lc.config.section import MISTAKE
from graphrag_eval_lc.errors import ConfigError, GraphRAGEvalError
from graphrag_eval_lc.masking import MASK, masked_values
from graphrag_eval_lc.reading import TextFile, parse_json_at, read_text
from graphrag_eval_lc.registry.plugins import load_installed_plugins, load_plugins
from graphrag_eval_lc.safe_yaml import line_of, parse_yaml

ConfigSource = str | PathLike[str] | dict[str, Any] | EvaluationConfig | None
_Location = Sequence[str | int]


def load_config(
    source: ConfigSource = None, *, has_llm: bool = False, has_embeddings: bool = False
) -> EvaluationConfig:
    """Give the configuration from a YAML or JSON file, a dict, an EvaluationConfig, or the defaults for None.

    The plugins of installed packages are loaded first, then those that it names, as it may name their metrics.

    Args:
        source: Where it stands.
        has_llm: Whether a chat model is passed in Python beside it, so that it need not name one.
        has_embeddings: The same for an embedding model.

    Raises:
        ConfigError: The file cannot be read, a key does not exist (with the nearest that does), a value is none
            that the key takes, a plugin cannot be loaded, or something needs a model that is not there. Values of
            secret keys are not shown.
        PluginError: A plugin of an installed package fails to load.

    Example:
        >>> load_config({"steps": {"scoring": "all_groups"}}).steps.scoring
        'all_groups'
    """
    load_installed_plugins()
    config, file = _loaded(source)
    try:
        check_models(config, has_llm=has_llm, has_embeddings=has_embeddings)
        check_repeats(config)
    except ConfigError as problem:
        if file is not None:
            problem.path = file.path
            problem.line = line_of(file, str(problem.key).split("."))
        raise
    return config


def with_measures(config: EvaluationConfig, measures: Sequence[str]) -> EvaluationConfig:
    """Give a configuration with other measures of retrieval, all else as it is.

    Args:
        config: The configuration.
        measures: The measures, such as ``nDCG@10``.

    Raises:
        ConfigError: One of them does not exist, or ``repeats.metric`` is not measured any more.

    Example:
        >>> with_measures(EvaluationConfig(), ["P@5", "nDCG@10"]).retrieval.measures
        ['P@5', 'nDCG@10']
    """
    values = {**config.retrieval.model_dump(), "measures": list(measures)}
    config = config.model_copy(update={"retrieval": _checked({"retrieval": values}, None).retrieval})
    check_repeats(config)
    return config


def _loaded(source: ConfigSource) -> tuple[EvaluationConfig, TextFile | None]:
    if isinstance(source, EvaluationConfig):
        _load_plugins(source.plugins, None)
        return source, None
    if source is None:
        return EvaluationConfig(), None
    if isinstance(source, dict):
        _load_plugins(source.get("plugins"), None)
        return _checked(source, None), None
    if not isinstance(source, str | PathLike):
        raise ConfigError(
            f"a config cannot be made from {type(source).__name__}",
            mend="Give a path, a dict or an EvaluationConfig.",
        )
    file = read_text(source, ConfigError, what="config")
    if file.format == "json":
        values = parse_json_at(file.text, ConfigError, what="config", path=file.path)
    else:
        values = parse_yaml(file, ConfigError, what="config")
    if isinstance(values, dict):
        _load_plugins(values.get("plugins"), file)
    return _checked(values if values is not None else {}, file), file


def _load_plugins(names: Any, file: TextFile | None) -> None:
    """Load the plugins that a configuration names; what is no list of names is told with all else of it."""
    for index, name in enumerate(names if isinstance(names, list) else ()):
        try:
            load_plugins([name] if isinstance(name, str) else (), via="config")
        except GraphRAGEvalError as problem:
            location = ("plugins", index)
            raise ConfigError(
                problem.what,
                path=file.path if file else None,
                line=line_of(file, location) if file else None,
                key=f"plugins.{index}",
                mend=problem.mend,
            ) from problem


def _checked(values: Any, file: TextFile | None) -> EvaluationConfig:
    try:
        return EvaluationConfig.model_validate(values)
    except ValidationError as problem:
        raise _config_error(problem, file) from None


def _config_error(problem: ValidationError, file: TextFile | None) -> ConfigError:
    # A misspelt key is also a missing one; what was written says more.
    first = min(problem.errors(), key=lambda error: error["type"] != "extra_forbidden")
    location: _Location = tuple(part for part in first["loc"] if isinstance(part, str | int))
    if first["type"] == "extra_forbidden":
        known = _known_keys(location[:-1])
        what = f"there is no key {'.'.join(map(str, location))}"
        near = difflib.get_close_matches(str(location[-1]), known, n=1, cutoff=0.5)
        mend = f"Did you mean {near[0]}?" if near else f"Known keys here: {', '.join(known)}."
    elif first["type"] in {"model_type", "model_attributes_type"}:
        what = "a mapping of keys to values is needed here"
        mend = f"Known keys: {', '.join(_known_keys(location))}."
    elif first["type"] == "missing":
        what = f"the key {location[-1]} is missing"
        mend = f"Add it. Known keys here: {', '.join(_known_keys(location[:-1]))}."
    elif first["type"] == MISTAKE:
        location = (*location, *(int(part) if part.isdigit() else part for part in first["ctx"]["key"]))
        what, mend = first["ctx"]["what"], first["ctx"]["mend"]
    else:
        what = f"{_shown(first['input'], location)} is not allowed here"
        mend = f"{first['msg']}."
    return ConfigError(
        what,
        path=file.path if file else None,
        line=line_of(file, location) if file else None,
        key=".".join(map(str, location)) or None,
        mend=mend,
    )


def _shown(value: Any, location: _Location) -> str:
    """Give a value as it may be told; what stands under a secret's key may not."""
    masked = masked_values({str(location[-1]) if location else "": value}).popitem()[1]
    is_hidden = masked == MASK or any(masked_values({str(part): "-"})[str(part)] == MASK for part in location)
    return "the value" if is_hidden else f"{masked!r:.200}"


def _known_keys(location: _Location) -> list[str]:
    """Give the keys of the section at ``location``; none where that is no section."""
    section: type[BaseModel] | None = EvaluationConfig
    for part in location:
        if section is None:
            return []
        field = section.model_fields.get(str(part))
        # The place of an item in a list or dict leaves its section as it is.
        if field is not None:
            section = _section_in(field.annotation)
    return list(section.model_fields) if section is not None else []


def _section_in(annotation: Any) -> type[BaseModel] | None:
    """Give the section that a type is or holds: ``LLMConfig | None``, ``list[CustomEvaluationConfig] | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((section for part in get_args(annotation) if (section := _section_in(part))), None)
