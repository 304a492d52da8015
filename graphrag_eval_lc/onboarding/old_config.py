"""Converts graphrag-eval's config to sections of this package, and names what has no counterpart."""

from collections.abc import Collection, Iterator, Mapping
from os import PathLike
from typing import Any, Final

from graphrag_eval_lc.errors import ConfigError
from graphrag_eval_lc.files.reading import TextFile, line_of, parse_json_at, parse_yaml, read_text
from graphrag_eval_lc.onboarding.old_providers import moved_model
from graphrag_eval_lc.registry.metrics import ANSWER_CORRECTNESS, ANSWER_RELEVANCE

_LLM: Final = "llm"
_CUSTOM: Final = "custom_evaluations"
_GENERATION, _EMBEDDING = "generation", "embedding"
_SECTIONS: Final = {
    _LLM: (_GENERATION, _EMBEDDING),
    ANSWER_CORRECTNESS: ("enabled", "prompt"),
    ANSWER_RELEVANCE: ("enabled",),
}
# The model that each section needs.
_NEEDED: Final = {_CUSTOM: _GENERATION, ANSWER_CORRECTNESS: _GENERATION, ANSWER_RELEVANCE: _EMBEDDING}


def moved_config(source: str | PathLike[str] | Mapping[str, Any] | None) -> tuple[dict[str, Any], list[str]]:
    """Return graphrag-eval's config, a file or its content, as our sections, and sentences on what to know of it."""
    file = None
    values: Any = source
    if source is not None and not isinstance(source, Mapping):
        file = read_text(source, ConfigError, what="config")
        is_json = file.format == "json"
        path = file.path
        values = (
            parse_json_at(file.text, ConfigError, what="config", path=path)
            if is_json
            else parse_yaml(file, ConfigError, what="config")
        )
    values = {} if values is None else values
    if not isinstance(values, Mapping):
        raise _error(file, (), "it is not a mapping of sections", "Give the config of graphrag-eval.")
    notes = list(_unread(values, (*_SECTIONS, _CUSTOM)))
    moved: dict[str, Any] = {}
    for name, known in _SECTIONS.items():
        section = values.get(name)
        if section is not None and not isinstance(section, Mapping):
            raise _error(file, (name,), "a mapping of keys to values is needed here", "Give the section's keys.")
        notes += _unread(section or {}, known, f"{name}.")
        if kept := {key: section[key] for key in known if section and section.get(key) is not None}:
            moved[name] = _models(kept, file, notes) if name == _LLM else kept
    if values.get(_CUSTOM):
        moved[_CUSTOM] = values[_CUSTOM]
    if _LLM in moved and _GENERATION not in moved[_LLM]:
        del moved[_LLM]
        notes.append("Without a model that generates nothing is judged; add llm.generation to the new file.")
    for name, model in _NEEDED.items():
        if name in moved and model not in moved.get(_LLM, {}):
            del moved[name]
            notes.append(f"{name} is left out, as it needs a model in {_LLM}.{model}, and there is none.")
    return moved, notes


def _models(section: Mapping[str, Any], file: TextFile | None, notes: list[str]) -> dict[str, Any]:
    moved = {}
    for name, model in section.items():
        if not isinstance(model, Mapping) or not model.get("model"):
            raise _error(file, (_LLM, name), "a model with provider and model is needed here", "Add both.")
        settings, of_model = moved_model(model, f"{_LLM}.{name}")
        notes += of_model
        if settings is not None:
            moved[name] = settings
    return moved


def _error(file: TextFile | None, place: tuple[str, ...], what: str, hint: str) -> ConfigError:
    line = line_of(file, place) if file and place else None
    return ConfigError(what, path=file.path if file else None, line=line, key=".".join(place) or None, hint=hint)


def _unread(section: Mapping[str, Any], known: Collection[str], place: str = "") -> Iterator[str]:
    """Yield a sentence on each key of a section that graphrag-eval does not read."""
    return (f"{place}{key} is not a key of graphrag-eval and is left out." for key in section if key not in known)
