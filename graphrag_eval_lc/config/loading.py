"""Reads the configuration from a file, a dict or an object, and reports mistakes with file, line and key."""

import difflib
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError

from graphrag_eval_lc.config.base import MISTAKE
from graphrag_eval_lc.config.evaluation_config import (
    EvaluationConfig,
    check_models,
    check_repeats,
    check_step_kinds,
)
from graphrag_eval_lc.errors import ConfigError, GraphRAGEvalError
from graphrag_eval_lc.files.reading import LineIndex, TextFile, line_of, parse_json_at, parse_yaml, read_text
from graphrag_eval_lc.masking import masked_values
from graphrag_eval_lc.registry.plugins import load_installed_plugins, load_plugins

# The config file that the command line finds in the current folder; its section ``run`` has options of that command.
PROJECT_FILE: Final = "graphrag_eval.yaml"
RUN_SECTION: Final = "run"
# The JSON Schema by which editors complete and check the config.
CONFIG_SCHEMA_PATH: Final = Path(__file__).parent / "config.schema.json"

ConfigSource = str | PathLike[str] | dict[str, Any] | EvaluationConfig | None
_Location = Sequence[str | int]


def load_config(
    source: ConfigSource = None, *, has_llm: bool = False, has_embeddings: bool = False
) -> EvaluationConfig:
    """Return the configuration from a YAML or JSON file, a dict or an EvaluationConfig, or the defaults for None.

    Plugins of installed packages are loaded first, then the plugins that the configuration names, as it may use their
    metrics.

    Args:
        source: The path, dict or object.
        has_llm: Whether a chat model is passed in Python, so the configuration need not name one.
        has_embeddings: The same for an embedding model.

    Raises:
        ConfigError: The file cannot be read, a key is unknown (with the nearest known), a value is not allowed, a
            plugin cannot be loaded, or a model is missing. Secrets are not shown.
        PluginError: A plugin of an installed package fails to load.

    Example:
        >>> load_config({"steps": {"scoring": "all_groups"}}).steps.scoring
        'all_groups'
    """
    load_installed_plugins()
    file: TextFile | None = None
    values: Any = {} if source is None else source
    if isinstance(source, str | PathLike):
        values, file = _parsed(source)
    elif not isinstance(values, dict | EvaluationConfig):
        raise ConfigError(
            f"a config cannot be made from {type(source).__name__}",
            hint="Give a path, a dict or an EvaluationConfig.",
        )
    plugins = values.get("plugins") if isinstance(values, dict) else getattr(values, "plugins", None)
    for index, name in enumerate(plugins if isinstance(plugins, list) else ()):  # all else is refused below
        try:
            load_plugins([name] if isinstance(name, str) else (), via="config")
        except GraphRAGEvalError as problem:
            raise _error_at(("plugins", index), problem.what, problem.hint, file) from problem
    config = values if isinstance(values, EvaluationConfig) else _validated(values, file)
    try:
        check_models(config, has_llm=has_llm, has_embeddings=has_embeddings)
        check_repeats(config)
        check_step_kinds(config.steps.kinds, config.steps.names, config.retrieval)
    except ConfigError as problem:
        if file is not None:
            _place(problem, file)
        raise
    return config


def with_measures(config: EvaluationConfig, measures: Sequence[str]) -> EvaluationConfig:
    """Return a copy of a configuration with other retrieval measures, such as ``nDCG@10``.

    A ConfigError is raised if a measure is unknown, or if ``repeats.metric`` would no longer be measured.
    """
    values = {**config.retrieval.model_dump(), "measures": list(measures)}
    config = config.model_copy(update={"retrieval": _validated({"retrieval": values}, None).retrieval})
    check_repeats(config)
    return config


def project_file() -> Path | None:
    """Return the project file in the current folder, or None; parent folders are not searched."""
    path = Path(PROJECT_FILE)
    return path if path.is_file() else None


def run_section(path: Path) -> Mapping[str, Any]:
    """Return the section ``run`` of a config file; the other sections are not checked."""
    values, _ = _parsed(path)
    section = values.get(RUN_SECTION) if isinstance(values, dict) else None
    if section is not None and not isinstance(section, dict):
        raise error_in_run(path, "it is not a mapping", "Write options of run, such as agent: my_agent.py:agent.")
    return section or {}


def error_in_run(path: Path, what: str, hint: str, key: str | None = None) -> ConfigError:
    """Return an error about the section ``run`` or one of its keys, with file and line."""
    return _error_at([RUN_SECTION] if key is None else [RUN_SECTION, key], what, hint, _text_of(path))


def locate(problem: ConfigError, source: str | PathLike[str]) -> None:
    """Add file and line to an error that was found only after the configuration was loaded."""
    if problem.path is None:
        _place(problem, _text_of(source))


def _text_of(source: str | PathLike[str]) -> TextFile:
    return read_text(source, ConfigError, what="config")


def _parsed(source: str | PathLike[str]) -> tuple[Any, TextFile]:
    file = _text_of(source)
    if file.format == "json":
        return parse_json_at(file.text, ConfigError, what="config", path=file.path), file
    values = parse_yaml(file, ConfigError, what="config")
    _keep_plus_signs(values, file)
    return values if values is not None else {}, file


def _keep_plus_signs(values: Any, file: TextFile) -> None:
    """Restore the plus sign of an unquoted increase: YAML reads ``over: +0.05`` as the bound 0.05."""
    gates = values.get("gates") if isinstance(values, dict) else None
    for index, gate in enumerate(gates if isinstance(gates, list) else ()):
        if isinstance(gate, dict) and isinstance(gate.get("over"), int | float):
            written = LineIndex(file).written(("gates", index, "over"))
            if written is not None and written.startswith("+"):
                gate["over"] = written


def _validated(values: Any, file: TextFile | None) -> EvaluationConfig:
    try:
        return EvaluationConfig.model_validate(values)
    except ValidationError as problem:
        raise _config_error(problem, file) from None


def _config_error(problem: ValidationError, file: TextFile | None) -> ConfigError:
    # A misspelt required key causes two errors, unknown and missing; the first is more helpful.
    first = min(problem.errors(), key=lambda error: error["type"] != "extra_forbidden")
    location: _Location = tuple(part for part in first["loc"] if isinstance(part, str | int))
    if first["type"] == "extra_forbidden":
        known = _known_keys(location[:-1])
        what = f"unknown key {'.'.join(map(str, location))}"
        near = difflib.get_close_matches(str(location[-1]), known, n=1, cutoff=0.5)
        # The sections that have the key, in case it is one level too high: steps.grading for grading.
        key, inside = str(location[-1]), [(*location[:-1], section) for section in known]
        elsewhere = [".".join(map(str, (*place, key))) for place in inside if key in _known_keys(place)]
        meant = " or ".join(elsewhere or near)
        hint = f"Did you mean {meant}?" if meant else f"Known keys here: {', '.join(known)}."
    elif first["type"] in {"model_type", "model_attributes_type"}:
        what = "a mapping of keys to values is needed here"
        hint = f"Known keys: {', '.join(_known_keys(location))}."
    elif first["type"] == "missing":
        what = f"the key {location[-1]} is missing"
        hint = f"Add it. Known keys here: {', '.join(_known_keys(location[:-1]))}."
    elif first["type"] == MISTAKE:
        location = (*location, *(int(part) if part.isdigit() else part for part in first["ctx"]["key"]))
        what, hint = first["ctx"]["what"], first["ctx"]["hint"]
    else:
        shown = _shown(first["input"], location)
        what = f"{shown} is not allowed here"
        is_one_text = first["type"] == "list_type" and isinstance(first["input"], str)
        hint = f"Write a list: [{shown}]." if is_one_text else f"{first['msg']}."
    return _error_at(location, what, hint, file)


def _error_at(location: _Location, what: str, hint: str | None, file: TextFile | None) -> ConfigError:
    problem = ConfigError(what, key=".".join(map(str, location)) or None, hint=hint)
    if file is not None:
        problem.path, problem.line = file.path, line_of(file, location)
    return problem


def _place(problem: ConfigError, file: TextFile) -> None:
    parts = str(problem.key).split(".")
    problem.path = file.path
    problem.line = line_of(file, [int(part) if part.isdigit() else part for part in parts])


def _shown(value: Any, location: _Location) -> str:
    """Return a value for a message, masked if its key or the value looks like a secret."""
    return f"{masked_values({str(location[-1]) if location else '': value}).popitem()[1]!r:.200}"


def _known_keys(location: _Location) -> list[str]:
    """Return the keys of the section at ``location``, if it is one."""
    section: type[BaseModel] | None = EvaluationConfig
    for part in location:
        if section is None:
            return []
        field = section.model_fields.get(str(part))
        # An index in a list or a key in a dict of sections does not change the section.
        if field is not None:
            section = _section_in(field.annotation)
    return list(section.model_fields) if section is not None else []


def _section_in(annotation: Any) -> type[BaseModel] | None:
    """Return the section in a type such as ``LLMConfig | None`` or ``list[CustomEvaluationConfig] | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((section for part in get_args(annotation) if (section := _section_in(part))), None)
