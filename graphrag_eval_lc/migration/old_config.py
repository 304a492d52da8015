"""graphrag-eval's config as sections of ours, with one sentence for each thing that has no counterpart."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Final

from pydantic import ValidationError

from graphrag_eval_lc.config.base import MISTAKE
from graphrag_eval_lc.config.judges import CustomEvaluationConfig
from graphrag_eval_lc.errors import ConfigError
from graphrag_eval_lc.files.reading import line_of, parse_json_at, parse_yaml, read_text
from graphrag_eval_lc.migration.providers import moved_model
from graphrag_eval_lc.registry.metrics import ANSWER_CORRECTNESS, ANSWER_RELEVANCE

_LLM: Final = "llm"
_CUSTOM: Final = "custom_evaluations"
_GENERATION, _EMBEDDING = "generation", "embedding"
_KNOWN: Final = {
    _LLM: (_GENERATION, _EMBEDDING),
    _CUSTOM: None,
    ANSWER_CORRECTNESS: ("enabled", "prompt"),
    ANSWER_RELEVANCE: ("enabled",),
}


@dataclass(frozen=True, slots=True)
class MovedConfig:
    """What graphrag-eval's config becomes.

    Attributes:
        sections: The sections that say the same here.
        notes: One sentence for each thing that its user should know or do.
    """

    sections: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def moved_config(source: str | PathLike[str] | Mapping[str, Any] | None) -> MovedConfig:
    """Return graphrag-eval's config as sections of ours.

    Args:
        source: A YAML or JSON file, what stands in one, or None.

    Raises:
        ConfigError: The file cannot be read, or a section of it is not what graphrag-eval takes.

    Example:
        >>> moved_config({"llm": {"generation": {"provider": "openai", "model": "gpt-4o-mini"}}}).sections["llm"]
        {'generation': {'provider': 'openai', 'model': 'gpt-4o-mini'}}
    """
    if source is None:
        return MovedConfig()
    reader = _Reader(source)
    notes: list[str] = []
    sections = dict(reader.sections(notes))
    models = sections.get(_LLM, {})
    for name, model in ((_CUSTOM, _GENERATION), (ANSWER_CORRECTNESS, _GENERATION), (ANSWER_RELEVANCE, _EMBEDDING)):
        if name in sections and model not in models:
            del sections[name]
            notes.append(f"{name} is left out, as it needs a model in {_LLM}.{model}, and there is none.")
    return MovedConfig(sections, tuple(notes))


class _Reader:
    """A config of graphrag-eval, read part by part."""

    def __init__(self, source: str | PathLike[str] | Mapping[str, Any]) -> None:
        self._file = None
        if isinstance(source, Mapping):
            self._values: Any = source
        else:
            self._file = read_text(source, ConfigError, what="config")
            if self._file.format == "json":
                self._values = parse_json_at(self._file.text, ConfigError, what="config", path=self._file.path)
            else:
                self._values = parse_yaml(self._file, ConfigError, what="config")
        if self._values is None:
            self._values = {}
        if not isinstance(self._values, Mapping):
            raise self._error((), "it is no mapping of sections", "Give the config of graphrag-eval.")

    def sections(self, notes: list[str]) -> Iterator[tuple[str, Any]]:
        """Yield the sections that have a counterpart; ``notes`` takes what is to be said."""
        notes += _unread(self._values, _KNOWN)
        yield from self._models(notes)
        for name in (ANSWER_CORRECTNESS, ANSWER_RELEVANCE):
            section = self._section(name)
            kept = {key: section[key] for key in _KNOWN[name] or () if section.get(key) is not None}
            notes += _unread(section, _KNOWN[name] or (), f"{name}.")
            if kept:
                yield name, kept
        custom = list(self._custom(notes))
        if custom:
            yield _CUSTOM, custom

    def _models(self, notes: list[str]) -> Iterator[tuple[str, Any]]:
        section = self._section(_LLM)
        moved = {}
        for name in (_GENERATION, _EMBEDDING):
            model = section.get(name)
            if model is None:
                continue
            if not isinstance(model, Mapping) or not model.get("model"):
                raise self._error((_LLM, name), "a model with provider and model is needed here", "Add both.")
            found = moved_model(model, f"{_LLM}.{name}")
            notes += found.notes
            if found.settings is not None:
                moved[name] = found.settings
        notes += _unread(section, (_GENERATION, _EMBEDDING), f"{_LLM}.")
        if _GENERATION in moved:
            yield _LLM, moved
        elif section:
            notes.append("Without a model that generates nothing is judged; add llm.generation to the new file.")

    def _custom(self, notes: list[str]) -> Iterator[dict[str, Any]]:
        evaluations = self._values.get(_CUSTOM)
        if evaluations is None:
            return
        if not isinstance(evaluations, list):
            raise self._error((_CUSTOM,), "a list of evaluations is needed here", "Write each after a dash.")
        for index, evaluation in enumerate(evaluations):
            if not isinstance(evaluation, Mapping):
                raise self._error((_CUSTOM, index), "an evaluation is a mapping of keys to values", "Give its name.")
            kept = {
                key: sorted(value) if isinstance(value, set) else value
                for key, value in evaluation.items()
                if value is not None
            }
            try:
                CustomEvaluationConfig.model_validate(kept)
            except ValidationError as problem:
                notes.append(f"{_CUSTOM}[{index}] is left out: {_said(problem)}")
            else:
                yield kept

    def _section(self, name: str) -> Mapping[str, Any]:
        section = self._values.get(name)
        if section is None:
            return {}
        if not isinstance(section, Mapping):
            raise self._error((name,), "a mapping of keys to values is needed here", "Give the section's keys.")
        return section

    def _error(self, place: tuple[str | int, ...], what: str, hint: str) -> ConfigError:
        return ConfigError(
            what,
            path=self._file.path if self._file else None,
            line=line_of(self._file, place) if self._file and place else None,
            key=".".join(map(str, place)) or None,
            hint=hint,
        )


def _unread(section: Mapping[str, Any], known: Collection[str], place: str = "") -> Iterator[str]:
    """Yield a sentence on each key of a section that graphrag-eval does not read."""
    return (f"{place}{key} is no key that graphrag-eval reads, and is left out." for key in section if key not in known)


def _said(problem: ValidationError) -> str:
    first = problem.errors()[0]
    if first["type"] == MISTAKE:
        return f"{first['ctx']['what']}. {first['ctx']['hint']}"
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}." if place else f"{first['msg']}."
