"""What scored a run, as its run.json names it: the configuration, the dataset, and the metrics of plugins."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphrag_eval_lc.config import EvaluationConfig, load_config
from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.masking import without_masked
from graphrag_eval_lc.records import Question, Response
from graphrag_eval_lc.registry.custom_metrics import register_metric
from graphrag_eval_lc.registry.metric_spec import MetricSpec
from graphrag_eval_lc.registry.metrics import is_declared
from graphrag_eval_lc.run_folder import recorded_dataset
from graphrag_eval_lc.texts import shortened


def recorded_config(record: Mapping[str, Any]) -> EvaluationConfig:
    """Return the configuration of a run.json: nothing is compared or judged by it, so that it needs no plugins."""
    config = config_again(record) or {}
    steps = {key: value for key, value in _mapping(config.get("steps")).items() if key != "kinds"}
    return load_config({**config, "steps": steps}, has_llm=True, has_embeddings=True)


def config_again(earlier: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the config of a run.json for scoring again, without its plugins: nothing is imported as a folder names it.

    A masked key is left out only where OPENAI_API_KEY would reach OpenAI itself. With any other endpoint it stays
    masked, and asking a model tells the user to give the config.
    """
    config: Any = _mapping(earlier.get("config"))
    if config:
        config = {key: value for key, value in config.items() if key != "plugins"}
        steps = config.get("steps")
        if isinstance(steps, Mapping) and steps.get("grading") == "graded":  # the record has defaults too
            config["steps"] = {key: value for key, value in steps.items() if key != "scoring"}
    sections = _mapping(config.get("llm"))
    kept = {
        name: without_masked(section)
        if isinstance(section, Mapping) and section.get("provider") == "openai" and not section.get("base_url")
        else section
        for name, section in sections.items()
    }
    return {**config, "llm": kept} if sections else config or None


def dataset_of(earlier: Mapping[str, Any], folder: Path) -> str:
    """Return the path of a run's dataset.

    Raises:
        RunFolderError: Its run.json names none, or it is not there, or no file.
    """
    path = recorded_dataset(earlier, folder)
    if path is None:
        raise RunFolderError(
            "run.json names no file of the dataset, as it was made in Python",
            path=folder,
            hint="Give it: --dataset FILE (dataset=...).",
        )
    if not os.path.exists(path):  # noqa: PTH110 - a path that no system takes is not there
        raise RunFolderError(
            f"the dataset {shortened(path, 200)} of this run is not there, seen from the current folder",
            path=folder,
            hint="Go to the folder where the run was started, or give it: --dataset FILE (dataset=...).",
        )
    return path


def register_recorded(record: Mapping[str, Any]) -> None:
    """Register the metrics that a run.json declares, in ``registered_only_here``, as their plugin may be missing."""
    evaluators = record.get("evaluators")
    for evaluator in evaluators if isinstance(evaluators, list) else ():
        key, declares = _mapping(evaluator).get("name"), _mapping(evaluator).get("declares")
        if isinstance(key, str) and isinstance(declares, Mapping) and not is_declared(key):
            spec = MetricSpec(**{**declares, "key": key, "range": tuple(declares["range"])})
            register_metric(spec, _measured_elsewhere)


def _measured_elsewhere(question: Question, response: Response) -> None:
    """Stand for a function that was called where the agent was asked."""


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
