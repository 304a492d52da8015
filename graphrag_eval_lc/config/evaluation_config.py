"""The whole configuration, loaded and checked, with errors that name the place and show no secret."""

import difflib
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Self, get_args

from pydantic import BaseModel, Field, ValidationError, model_validator

from graphrag_eval_lc.config.base import MISTAKE, Section, mistake, named
from graphrag_eval_lc.config.gates import GateConfig
from graphrag_eval_lc.config.judges import (
    AnswerCorrectnessConfig,
    AnswerRelevanceConfig,
    CustomEvaluationConfig,
    JudgesConfig,
    LLMConfig,
    PriceConfig,
)
from graphrag_eval_lc.config.sections import (
    AggregatesConfig,
    CaptureConfig,
    RepeatsConfig,
    RetrievalConfig,
    RetrievalStepConfig,
    SparqlConfig,
    StepsConfig,
)
from graphrag_eval_lc.errors import ConfigError, GraphRAGEvalError
from graphrag_eval_lc.files.reading import LineIndex, TextFile, line_of, parse_json_at, parse_yaml, read_text
from graphrag_eval_lc.masking import MASK, masked_values
from graphrag_eval_lc.registry.metrics import BUILT_IN, JUDGES, JudgeSpec, metric_spec, registered_metrics
from graphrag_eval_lc.registry.plugins import load_installed_plugins, load_plugins
from graphrag_eval_lc.registry.step_kinds import RETRIEVAL, step_kinds_by_key
from graphrag_eval_lc.texts import range_text


class EvaluationConfig(Section):
    """The whole configuration.

    ``${NAME}`` in a string stands for an environment variable, which is read where the value is used.

    Attributes:
        steps: How steps are scored.
        sparql: How SPARQL results are compared.
        aggregates: What the statistics are taken over.
        repeats: When a sample passes.
        llm: The models that judges ask; None: judged metrics are off.
        answer_correctness: The comparison with the reference answer; None: on where there is a model.
        answer_relevance: Whether the answer answers the question; None: on where there is an embedding model.
        custom_evaluations: Evaluations in the user's words.
        judges: How judges ask, and which metrics.
        retrieval: Which steps count as retrieval, and how they are measured without a language model.
        prices: USD per million tokens by model name; they go before the known prices.
        capture: What is kept of the agent's runs while they are recorded.
        plugins: Modules that register metrics, step kinds and evaluators, as ``package.module`` or
            ``path/to/file.py``, relative to the current folder. They are loaded before the rest is checked; those that
            a run's folder names are not loaded.
        gates: What a run must reach, alone or beside a baseline.
        run: Options of the command ``run`` by their names, such as ``agent``, ``dataset`` and ``output``, which it
            takes where the command line does not give them. Functions in Python do not look at them, and run.json has
            them at its own places.

    Example:
        >>> EvaluationConfig(steps=StepsConfig(scoring="all_groups")).sparql.ignore_duplicates
        True
    """

    steps: StepsConfig = Field(default_factory=StepsConfig)
    sparql: SparqlConfig = Field(default_factory=SparqlConfig)
    aggregates: AggregatesConfig = Field(default_factory=AggregatesConfig)
    repeats: RepeatsConfig = Field(default_factory=RepeatsConfig)
    llm: LLMConfig | None = None
    answer_correctness: AnswerCorrectnessConfig | None = None
    answer_relevance: AnswerRelevanceConfig | None = None
    custom_evaluations: list[CustomEvaluationConfig] | None = Field(default=None, min_length=1)
    judges: JudgesConfig = Field(default_factory=JudgesConfig)
    retrieval: RetrievalConfig = Field(default_factory=RetrievalConfig)
    prices: dict[str, PriceConfig] = Field(default_factory=dict)
    capture: CaptureConfig = Field(default_factory=CaptureConfig)
    plugins: list[str] = Field(default_factory=list)
    gates: list[GateConfig] = Field(default_factory=list)
    run: dict[str, Any] | None = Field(default=None, exclude=True)

    @model_validator(mode="after")
    def _custom_keys_are_unique(self) -> Self:
        owners: dict[str, str] = {}
        for index, evaluation in enumerate(self.custom_evaluations or ()):
            place = ("custom_evaluations", str(index))
            if evaluation.name in owners.values():
                raise mistake(f"the name {evaluation.name} stands twice", "Rename one of them.", *place, "name")
            for key in evaluation.keys:
                if key in owners:
                    what = f"the key {key} is given by {owners[key]} and by {evaluation.name}"
                    raise mistake(what, "Rename one of them.", *place)
                owners[key] = evaluation.name
        return self

    @model_validator(mode="after")
    def _retrieval_steps_agree(self) -> Self:
        """Refuse two tools for the same reference steps with their ids in different places."""
        steps = self.retrieval.steps
        named = {RETRIEVAL, *(step.name for step in steps)}
        tools: dict[str, RetrievalStepConfig] = {}
        for index, step in enumerate(steps):
            name = self.steps.names.get(step.name, RETRIEVAL)
            if name in named:
                continue
            other = tools.setdefault(name, step)
            if other.column != step.column:
                what = (
                    f"{other.name} and {step.name} are both {name} in steps.names, with their ids in different places"
                )
                hint = f"Give both the same column, or name {name} here too, with its own."
                raise mistake(what, hint, "retrieval", "steps", str(index))
        return self


def check_models(config: EvaluationConfig, *, has_llm: bool, has_embeddings: bool) -> None:
    """Refuse a configuration without the models that it needs.

    Args:
        config: The configuration.
        has_llm: Whether a chat model was passed in Python; else ``llm`` names it.
        has_embeddings: Whether an embedding model was passed in Python; else ``llm.embedding`` names it.

    Raises:
        ConfigError: A model is missing.
    """
    has_llm = has_llm or config.llm is not None
    has_embeddings = has_embeddings or (config.llm is not None and config.llm.embedding is not None)
    if not has_llm:
        for key in _needing_llm(config):
            raise ConfigError(
                "a model is needed for this and there is no llm section",
                key=key,
                hint="Add llm: {}, which stands for OpenAI's default models, or name yours in llm.generation.",
            )
    if not (has_llm and has_embeddings):
        for key in _needing_embeddings(config):
            raise ConfigError(
                "an embedding model is needed for this and there is none",
                key=key,
                hint="Add llm.embedding, such as {provider: openai, model: text-embedding-3-small}.",
            )


def _needing_llm(config: EvaluationConfig) -> list[str]:
    asked: list[tuple[str, Any]] = [
        ("custom_evaluations", config.custom_evaluations),
        *((judge.key, is_enabled(config, judge)) for judge in JUDGES),
        ("judges.metrics", config.judges.metrics),
    ]
    return [key for key, value in asked if value]


def _needing_embeddings(config: EvaluationConfig) -> list[str]:
    needing: list[str] = []
    for judge in JUDGES:
        if judge.needs_embeddings:
            enabled, listed = is_enabled(config, judge), judge.key in (config.judges.metrics or ())
            needing += [judge.key] if enabled else ["judges.metrics"] if enabled is None and listed else []
    return needing


def is_enabled(config: EvaluationConfig, judge: JudgeSpec) -> bool | None:
    """Return whether a judge's own section is on; None without one."""
    section = getattr(config, judge.key, None)
    return None if section is None else bool(section.enabled)


def check_repeats(config: EvaluationConfig) -> None:
    """Refuse ``repeats`` with an unknown score, or a threshold out of its range.

    Checked when a configuration is used, not when it is read: a finished run may have had metrics that are not
    registered now.

    Raises:
        ConfigError: With the known scores, or the range.
    """
    metric, threshold = config.repeats.metric, config.repeats.threshold
    if config.repeats == RepeatsConfig():
        return
    scores = _scores(config)
    if metric not in scores:
        raise ConfigError(
            f"{metric!r} is not allowed here",
            key="repeats.metric",
            hint=f"{named(scores, metric)}, and those that plugins register (--plugin, or plugins in the config).",
        )
    least, greatest = metric_spec(metric).range
    if (least is not None and threshold < least) or (greatest is not None and threshold > greatest):
        raise ConfigError(
            f"{threshold:g} is not allowed here",
            key="repeats.threshold",
            hint=f"{metric} goes {range_text(least, greatest)}.",
        )


def _scores(config: EvaluationConfig) -> list[str]:
    """Return the scores that samples can have."""
    outputs = [key for evaluation in config.custom_evaluations or () for key in evaluation.outputs]
    keys = [
        *(spec.key for spec in BUILT_IN if not spec.is_family),
        *(key for family in config.retrieval.metric_keys().values() for key in family),
        *registered_metrics(),
        *outputs,
    ]
    return [key for key in keys if metric_spec(key).kind == "score"]


def check_step_kinds(kinds: Mapping[str, str], names: Mapping[str, str], retrieval: RetrievalConfig) -> None:
    """Refuse ``steps.kinds`` with a kind that there is not, two for the same steps, or one for steps of retrieval.

    Checked when a configuration is used, as ``repeats`` is.

    Args:
        kinds: ``steps.kinds``.
        names: ``steps.names``.
        retrieval: The section on retrieval.

    Raises:
        ConfigError: With the nearest and all known kinds.

    Example:
        >>> check_step_kinds({"read_neo4j_cypher": "rows"}, {}, RetrievalConfig())
    """
    known = [key for key in step_kinds_by_key() if key != RETRIEVAL] if kinds else []
    documents = retrieval.document_step_names(names)
    tools: dict[str, str] = {}
    for name, key in kinds.items():
        reference = names.get(name, name)
        other = tools.setdefault(reference, name)
        what, hint = None, ""
        if key == RETRIEVAL:
            what = f"{name} cannot be made retrieval here"
            hint = (
                f"Name it in the config's section on retrieval, so that it is measured too: retrieval.steps: [{name}]."
            )
        elif key not in known:
            what = f"there is no step kind {key!r:.80}"
            hint = f"{named(known, key)}, and those that plugins register (--plugin, or plugins in the config)."
        elif reference in documents:
            verb = "is" if reference == RETRIEVAL else f"counts as {RETRIEVAL}, and is"
            what = f"{name} {verb} compared by its documents"
            elsewhere = "" if reference == RETRIEVAL else f", or from the steps of the section {RETRIEVAL}"
            hint = f"Remove it here{elsewhere}."
        elif reference not in kinds and kinds[other] != key:
            what = f"{other} and {name} are both {reference} in steps.names, with different kinds"
            hint = f"Give both the same kind, or name {reference} here too, with its own."
        if what is not None:
            raise ConfigError(what, key=f"steps.kinds.{name}", hint=hint)


ConfigSource = str | PathLike[str] | dict[str, Any] | EvaluationConfig | None
_Location = Sequence[str | int]


def load_config(
    source: ConfigSource = None, *, has_llm: bool = False, has_embeddings: bool = False
) -> EvaluationConfig:
    """Return the configuration from a YAML or JSON file, a dict or an EvaluationConfig, or the defaults for None.

    Plugins of installed packages are loaded first, then those that it names, as it may name their metrics.

    Args:
        source: The path, dict or object.
        has_llm: Whether a chat model is passed in Python, so that it need not name one.
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
    config, file = _read_config(source)
    try:
        check_models(config, has_llm=has_llm, has_embeddings=has_embeddings)
        check_repeats(config)
        check_step_kinds(config.steps.kinds, config.steps.names, config.retrieval)
    except ConfigError as problem:
        if file is not None:
            _place(problem, file)
        raise
    return config


def locate(problem: ConfigError, source: str | PathLike[str]) -> None:
    """Note the file and the line of a mistake that was found only after the configuration was loaded."""
    if problem.path is None:
        _place(problem, read_text(source, ConfigError, what="config"))


def _place(problem: ConfigError, file: TextFile) -> None:
    parts = str(problem.key).split(".")
    problem.path = file.path
    problem.line = line_of(file, [int(part) if part.isdigit() else part for part in parts])


def with_measures(config: EvaluationConfig, measures: Sequence[str]) -> EvaluationConfig:
    """Return a copy of a configuration with other measures of retrieval.

    Args:
        config: The configuration.
        measures: The measures, such as ``nDCG@10``.

    Raises:
        ConfigError: A measure is unknown, or ``repeats.metric`` is no longer measured.

    Example:
        >>> with_measures(EvaluationConfig(), ["P@5", "nDCG@10"]).retrieval.measures
        ['P@5', 'nDCG@10']
    """
    values = {**config.retrieval.model_dump(), "measures": list(measures)}
    config = config.model_copy(update={"retrieval": _validated({"retrieval": values}, None).retrieval})
    check_repeats(config)
    return config


def _read_config(source: ConfigSource) -> tuple[EvaluationConfig, TextFile | None]:
    if isinstance(source, EvaluationConfig):
        _load_plugins(source.plugins, None)
        return source, None
    if source is None:
        return EvaluationConfig(), None
    if isinstance(source, dict):
        _load_plugins(source.get("plugins"), None)
        return _validated(source, None), None
    if not isinstance(source, str | PathLike):
        raise ConfigError(
            f"a config cannot be made from {type(source).__name__}",
            hint="Give a path, a dict or an EvaluationConfig.",
        )
    file = read_text(source, ConfigError, what="config")
    if file.format == "json":
        values = parse_json_at(file.text, ConfigError, what="config", path=file.path)
    else:
        values = parse_yaml(file, ConfigError, what="config")
        _keep_plus_signs(values, file)
    if isinstance(values, dict):
        _load_plugins(values.get("plugins"), file)
    return _validated(values if values is not None else {}, file), file


def _keep_plus_signs(values: Any, file: TextFile) -> None:
    """Let an increase that stands without quotes stay one: YAML reads ``over: +0.05`` as the bound 0.05."""
    gates = values.get("gates") if isinstance(values, dict) else None
    bounded = [
        (index, gate)
        for index, gate in enumerate(gates if isinstance(gates, list) else ())
        if isinstance(gate, dict) and isinstance(gate.get("over"), int | float)
    ]
    lines = LineIndex(file) if bounded else None
    for index, gate in bounded:
        written = lines.written(("gates", index, "over")) if lines is not None else None
        if written is not None and written.startswith("+"):
            gate["over"] = written


def _load_plugins(names: Any, file: TextFile | None) -> None:
    """Load the plugins that a configuration names; anything but a list of names is refused later."""
    for index, name in enumerate(names if isinstance(names, list) else ()):
        try:
            load_plugins([name] if isinstance(name, str) else (), via="config")
        except GraphRAGEvalError as problem:
            raise _error_at(("plugins", index), problem.what, problem.hint, file) from problem


def _validated(values: Any, file: TextFile | None) -> EvaluationConfig:
    try:
        return EvaluationConfig.model_validate(values)
    except ValidationError as problem:
        raise _config_error(problem, file) from None


def _config_error(problem: ValidationError, file: TextFile | None) -> ConfigError:
    # A misspelt key is also a missing one; the former says more.
    first = min(problem.errors(), key=lambda error: error["type"] != "extra_forbidden")
    location: _Location = tuple(part for part in first["loc"] if isinstance(part, str | int))
    if first["type"] == "extra_forbidden":
        known = _known_keys(location[:-1])
        what = f"there is no key {'.'.join(map(str, location))}"
        near = difflib.get_close_matches(str(location[-1]), known, n=1, cutoff=0.5)
        elsewhere = _places_of(str(location[-1]), location[:-1])
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
    return ConfigError(
        what,
        path=file.path if file else None,
        line=line_of(file, location) if file else None,
        key=".".join(map(str, location)) or None,
        hint=hint,
    )


def _shown(value: Any, location: _Location) -> str:
    """Return a value for a message, unless its key is a secret's."""
    masked = masked_values({str(location[-1]) if location else "": value}).popitem()[1]
    is_hidden = masked == MASK or any(masked_values({str(part): "-"})[str(part)] == MASK for part in location)
    return "the value" if is_hidden else f"{masked!r:.200}"


def _places_of(key: str, location: _Location) -> list[str]:
    """Return where a key belongs that stands one section too high: ``steps.grading`` for ``grading``."""
    sections = [(*location, section) for section in _known_keys(location)]
    return [".".join(map(str, (*place, key))) for place in sections if key in _known_keys(place)]


def _known_keys(location: _Location) -> list[str]:
    """Return the keys of the section at ``location``, if it is one."""
    section: type[BaseModel] | None = EvaluationConfig
    for part in location:
        if section is None:
            return []
        field = section.model_fields.get(str(part))
        # A place in a list or dict does not change the section.
        if field is not None:
            section = _section_in(field.annotation)
    return list(section.model_fields) if section is not None else []


def _section_in(annotation: Any) -> type[BaseModel] | None:
    """Return the section in a type such as ``LLMConfig | None`` or ``list[CustomEvaluationConfig] | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((section for part in get_args(annotation) if (section := _section_in(part))), None)
