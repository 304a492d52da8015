"""The run that a report is made of: its results, read one at a time, and what is known of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from graphrag_eval_lc.aggregation.measurements import Metrics, metrics_of
from graphrag_eval_lc.comparison.run_source import RunSource, run_results
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.registry.exporters import exporter
from graphrag_eval_lc.registry.metrics import own_metrics
from graphrag_eval_lc.run_folder import RUN_FILE
from graphrag_eval_lc.runner.benchmark_run import BenchmarkRun


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRun:
    """A run as a report reads it.

    Attributes:
        folder: Its folder; None for a run in memory.
        record: The content of run.json; empty where there is none.
        config: The configuration that it was scored with, without the models.
        results: Its results.
        warnings: What is to be known of it.
        more_metrics: Metrics that its aggregates have and its configuration does not tell.
    """

    folder: Path | None
    record: Mapping[str, Any]
    config: EvaluationConfig
    results: Iterable[Mapping[str, Any]]
    warnings: Sequence[str] = ()
    more_metrics: Sequence[str] = ()

    def metrics(self) -> Metrics:
        """Give the metrics of its results."""
        known = metrics_of(self.config)
        more = [metric for metric in self.more_metrics if metric not in known.of_samples]
        return replace(known, of_samples=(*known.of_samples, *more))

    def file_of(self, name: str) -> Path:
        """Give where an exporter writes the run, where no path is given.

        Raises:
            OptionError: The run has no folder.
        """
        if self.folder is None:
            raise OptionError(f"the run has no folder to write the {name} to", mend="Give a path.")
        return self.folder / exporter(name).file_name

    def step_names(self) -> list[str]:
        """Give the names of the reference steps of the whole dataset, of which the results may have a part."""
        dataset = self.record.get("dataset")
        names = dataset.get("step_names") if isinstance(dataset, Mapping) else None
        return [str(name) for name in names] if isinstance(names, list) else []


def reported_run(source: RunSource) -> ReportedRun:
    """Give what a report reads of a run.

    Args:
        source: The folder of a run, what ``run_benchmark`` or ``score_run`` gave, or a list of results.

    Raises:
        RunFolderError: It is no folder of a run that is scored, or was written by a newer version.
        ComparisonError: It is none of these.
    """
    results = run_results(source)
    run = source if isinstance(source, BenchmarkRun) else None
    record, warnings = results.record, list(run.warnings) if run is not None else []
    if run is not None and not record:
        in_memory = {"stopped": run.stopped, "judges": run.judges}
        record = {key: value for key, value in in_memory.items() if value}
    elif results.path is not None and not record:
        warnings.append(f"There is no {RUN_FILE}, so nothing is known of what ran.")
    config, problem = _config_in(record)
    if problem is not None:
        warnings.append(problem)
    return ReportedRun(
        folder=results.path,
        record=record,
        config=config,
        results=results,
        warnings=warnings,
        more_metrics=own_metrics(run.aggregates.get("micro", {})) if run is not None else (),
    )


def _config_in(record: Mapping[str, Any]) -> tuple[EvaluationConfig, str | None]:
    """Give the configuration in run.json, and what is wrong with it."""
    config = record.get("config")
    if not isinstance(config, Mapping):
        return EvaluationConfig(), None
    # The models are of no use here, and their secrets are masked.
    known = {key: value for key, value in config.items() if key != "llm"}
    try:
        return EvaluationConfig.model_validate(known), None
    except ValidationError as problem:
        first = problem.errors()[0]
        place = ".".join(map(str, first["loc"]))
        text = f"The config in {RUN_FILE} cannot be read ({place}: {first['msg']}); the report takes the defaults."
        return EvaluationConfig(), text
