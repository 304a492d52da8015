"""Where the results of a run come from: a folder, a run in memory, or a list."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from graphrag_eval_lc.aggregation import RunNumbers
from graphrag_eval_lc.config import ConfigSource, EvaluationConfig, load_config
from graphrag_eval_lc.errors import ComparisonError, RunFolderError
from graphrag_eval_lc.registry.own_metrics import note_recorded
from graphrag_eval_lc.run_folder import RESULTS_FILE, iter_results, read_run

# What a configuration says of the numbers in results.
_OF_NUMBERS = ("steps", "custom_evaluations", "retrieval")


# Where results have steps and what is said of them, and in how many lists within each other.
_STEPS = (("actual_steps", 1), ("reference_steps", 2), ("steps_diagnosis", 2))


class HasResults(Protocol):
    """A run that gives its results one at a time, such as a BenchmarkRun."""

    def iter_results(self) -> Iterator[Any]:
        """Give the results, each time from the first."""


RunSource = str | PathLike[str] | HasResults | Iterable[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class RunResults:
    """The results of a run, to be read as often as they are needed.

    Attributes:
        path: The run's folder; None where the results were given.
        record: Its run.json; empty where there is none.
    """

    path: Path | None
    record: Mapping[str, Any]
    _read: Callable[[], Iterable[Mapping[str, Any]]] = field(repr=False)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """Give the results.

        Raises:
            ComparisonError: One of them is no result of a question.
            RunFolderError: The file of results cannot be read.
        """
        for result in self._read():
            if not isinstance(result, Mapping) or result.get("question_id") is None:
                raise self._problem("a result without question_id")
            for key, depth in _STEPS:
                if not _is_nested(result.get(key) or (), depth):
                    raise self._problem("a result with steps of the wrong type", str(result["question_id"]), key)
            yield result

    def _problem(self, what: str, question_id: str | None = None, key: str | None = None) -> ComparisonError:
        return ComparisonError(
            what,
            path=self.path and self.path / RESULTS_FILE,
            question_id=question_id,
            key=key,
            mend="Give results as run_evaluation makes them, or the folder of a run.",
        )

    def declarations(self) -> dict[str, Mapping[str, Any]]:
        """Give what run.json tells of the metrics that plugins gave, by their keys."""
        evaluators = self.record.get("evaluators")
        records = [each for each in evaluators if isinstance(each, Mapping)] if isinstance(evaluators, list) else []
        told = ((each.get("name"), each.get("declares")) for each in records)
        return {key: each for key, each in told if isinstance(key, str) and isinstance(each, Mapping)}

    def config(self) -> EvaluationConfig:
        """Give the configuration of the run, as far as it says what the numbers of its results are.

        Raises:
            ConfigError: That in run.json cannot be read.
        """
        config = self.record.get("config")
        known = config if isinstance(config, Mapping) else {}
        return load_config(
            {key: known[key] for key in _OF_NUMBERS if known.get(key) is not None}, has_llm=True, has_embeddings=True
        )

    def numbers(self, metrics: Iterable[str] = ()) -> RunNumbers:
        """Give the numbers of the run's questions.

        Args:
            metrics: More metrics than the configuration tells: keys of the results.
        """
        numbers = RunNumbers(self.config(), metrics)
        for result in self:
            numbers.add(result)
        return numbers


def run_results(source: RunSource, config: ConfigSource = None) -> RunResults:
    """Give the results of a run.

    What run.json tells of the metrics of plugins counts from then on in the ``recorded_only_here`` around it, so that
    they are compared and shown right where the plugin is not there.

    Args:
        source: The folder of a run, a BenchmarkRun (or what else has ``iter_results`` or ``results``), or results.
        config: The configuration of results that come without a folder.

    Raises:
        ConfigError: The configuration cannot be used.
        RunFolderError: The folder holds no results, or its run.json cannot be read.
        ComparisonError: It is none of these.
    """
    results = _results_of(source, config)
    note_recorded(results.declarations().items())
    return results


def _results_of(source: RunSource, config: ConfigSource) -> RunResults:
    if isinstance(source, str | PathLike):
        return _of_folder(Path(source))
    if hasattr(source, "iter_results"):
        folder = getattr(source, "output_dir", None)
        record = _record_in(Path(folder)) if folder else _record_of(config)
        return RunResults(Path(folder) if folder else None, record, source.iter_results)
    results = getattr(source, "results", source)
    if isinstance(results, bytes | Mapping) or not isinstance(results, Iterable):
        raise ComparisonError(
            f"a run cannot be read from {type(source).__name__}",
            mend="Give the folder of a run, a BenchmarkRun, or a list of results.",
        )
    kept = list(results)
    return RunResults(None, _record_of(config), lambda: kept)


def _record_of(config: ConfigSource) -> dict[str, Any]:
    """Give what run.json would say of a configuration, as far as it is of use here."""
    if config is None:
        return {}
    known = load_config(config, has_llm=True, has_embeddings=True)
    return {"config": known.model_dump(include=set(_OF_NUMBERS))}


def _of_folder(folder: Path) -> RunResults:
    results = folder / RESULTS_FILE
    if not folder.is_dir():
        what = "this is a file, not the folder of a run" if folder.exists() else "there is no such folder"
        raise RunFolderError(what, path=folder, mend="Give the folder that run, score or demo wrote.")
    if not results.is_file():
        raise RunFolderError(
            f"the folder holds no {RESULTS_FILE}",
            path=folder,
            mend="Give the folder of a run; one that was killed is scored by: graphrag-eval-lc score RUN_DIR.",
        )
    return RunResults(folder, _record_in(folder), lambda: iter_results(results))


def _record_in(folder: Path) -> Mapping[str, Any]:
    try:
        return read_run(folder) or {}
    except RunFolderError as problem:
        if "--overwrite" not in (problem.mend or ""):
            raise
        # That is for whoever writes into the folder; here it is only read.
        raise RunFolderError(
            "the record of the run cannot be read", path=problem.path, mend="Mend the file, or give another run."
        ) from problem


def _is_nested(value: object, depth: int) -> bool:
    """Tell whether a value is a list of objects, or of such lists."""
    if depth == 0:
        return isinstance(value, Mapping)
    return isinstance(value, list | tuple) and all(_is_nested(each, depth - 1) for each in value)
