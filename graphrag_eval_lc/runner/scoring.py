"""Scoring a run: its responses against the dataset, summed up and written into the run's folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from graphrag_eval_lc.aggregation import compute_aggregates
from graphrag_eval_lc.config import ConfigSource, EvaluationConfig, load_config
from graphrag_eval_lc.dataset import checked_dataset, load_dataset, load_responses, questions_of
from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.evaluation import Responses, evaluate_question, responses_by_id
from graphrag_eval_lc.records import Response, Result, Template
from graphrag_eval_lc.run_folder import RunFolder
from graphrag_eval_lc.runner.run_record import RunRecord

DatasetSource = str | PathLike[str] | Sequence[Template]


@dataclass(frozen=True, slots=True)
class BenchmarkRun:
    """What a run gave.

    Attributes:
        responses: The responses by question id, in the dataset's order.
        results: The scored questions, in the dataset's order.
        aggregates: The sums over the results.
        output_dir: The run's folder; None where none was asked for.
    """

    responses: dict[str, Response]
    results: list[Result]
    aggregates: dict[str, Any]
    output_dir: Path | None


def score_responses(
    dataset: DatasetSource,
    responses: str | PathLike[str] | Responses,
    *,
    output_dir: str | PathLike[str] | None = None,
    config: ConfigSource = None,
    label: str | None = None,
    overwrite: bool = False,
) -> BenchmarkRun:
    """Score responses that were recorded elsewhere, and write the same folder as a run does.

    Args:
        dataset: A path, or the templates that ``load_dataset`` gives.
        responses: A path, the responses by question id, or a list of responses that carry their question ids.
        output_dir: The run's folder; None writes nothing.
        config: A path, a dict or an EvaluationConfig; None for the defaults.
        label: A name for the run, for people.
        overwrite: Whether an earlier run in the folder is replaced.

    Raises:
        DatasetError: The dataset cannot be read or breaks the format.
        ResponsesError: The file cannot be read, or the responses are neither a mapping nor a list of responses with
            question ids.
        ConfigError: The config has a key or value that does not exist.
        RunFolderError: The folder cannot be written, holds a run already, or holds the responses.
    """
    settings = load_config(config)
    templates = templates_of(dataset)
    _refuse_own_folder(responses, output_dir)
    by_id = load_responses(responses) if isinstance(responses, str | PathLike) else responses_by_id(responses)
    folder = None if output_dir is None else RunFolder(output_dir, overwrite=overwrite)
    record = RunRecord.begin(label, dataset, templates, settings)
    if folder:
        folder.write_responses({key: value for key, value in by_id.items() if isinstance(value, Mapping)})
    return scored_run(templates, by_id, settings, folder, record)


def _refuse_own_folder(responses: object, output_dir: str | PathLike[str] | None) -> None:
    """Keep a run from being replaced by the scores of its own responses: what it says of its agent would be lost."""
    if output_dir is None or not isinstance(responses, str | PathLike):
        return
    if Path(responses).resolve().parent == Path(output_dir).resolve():
        raise RunFolderError("the responses lie in the folder itself", path=output_dir, mend="Give another folder.")


def templates_of(dataset: DatasetSource) -> list[Template]:
    """Give the templates of a dataset, read from its path or checked as they are."""
    return load_dataset(dataset) if isinstance(dataset, str | PathLike) else checked_dataset(dataset)


def scored_run(
    templates: Sequence[Template],
    responses: dict[str, Response],
    config: EvaluationConfig,
    folder: RunFolder | None,
    record: RunRecord,
) -> BenchmarkRun:
    """Score the responses of a run, sum them up, and write what is new into its folder."""
    results: list[Result] = []
    in_order: dict[str, Response] = {}
    for template, question in questions_of(templates):
        identifier = str(question["id"])
        response = responses.get(identifier)
        if response is not None:
            in_order[identifier] = response
        results.append(evaluate_question(template, question, response, config))
    aggregates = compute_aggregates(results, config)
    if folder:
        folder.write_results(results)
        folder.write_aggregates(aggregates)
        folder.write_run(record.end(aggregates["totals"]).as_dict())
    return BenchmarkRun(in_order, results, aggregates, folder.path if folder else None)
