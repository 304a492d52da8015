"""A dataset checked before its questions are asked or scored: what ``validate`` calls an error is refused."""

import shlex
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.dataset.findings import dataset_findings
from graphrag_eval_lc.dataset.loading import DatasetSource, LoadedDataset, dataset_records, loaded_dataset
from graphrag_eval_lc.errors import DatasetError
from graphrag_eval_lc.files.record_file import Finding, RecordFile
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.registry.step_kinds import step_kind_for
from graphrag_eval_lc.texts import counted, plural

_OF_OUTPUT = ((), ("output",), ("output_media_type",))
_STEP_DEPTH = len(("template", "questions", "question", "reference_steps", "group", "step"))


@dataclass(frozen=True, slots=True)
class CheckedDataset:
    """A dataset that keeps its format, and the first error in it.

    Attributes:
        loaded: The dataset; its notes say how many warnings there are.
        problem: What ``validate`` calls an error; None where it finds none.
        may_lack_kinds: Whether all errors are in steps that no known step kind is for: a module that is still to be
            loaded may register one.
    """

    loaded: LoadedDataset
    problem: DatasetError | None = None
    may_lack_kinds: bool = False

    def usable(self, *, lacks_kinds: bool = False) -> LoadedDataset:
        """Return the dataset.

        Args:
            lacks_kinds: Whether step kinds may be missing now, so that their steps are not refused.

        Raises:
            DatasetError: There is an error.
        """
        if self.problem is not None and not (lacks_kinds and self.may_lack_kinds):
            raise self.problem
        return self.loaded


def check_dataset(dataset: DatasetSource, config: EvaluationConfig, config_source: object = None) -> CheckedDataset:
    """Read a dataset and check it as ``validate`` does.

    Args:
        dataset: A path, or the templates.
        config: The config of the run.
        config_source: What it was loaded from, for the command that lists the warnings.

    Raises:
        DatasetError: The dataset cannot be read or breaks the format.

    Example:
        >>> typo = {"name": "sparql_query", "output": "[]", "required_column": []}
        >>> question = {"id": "q", "question_text": "Which?", "reference_steps": [[typo]]}
        >>> str(check_dataset([{"template_id": "t", "questions": [question]}], EvaluationConfig()).problem)[:44]
        'question q, key [0].questions[0].reference_s'
    """
    records = dataset_records(dataset)
    loaded = loaded_dataset(records)
    views = StepViews(config.steps, config.sparql, config.retrieval)
    errors: list[Finding] = []
    warnings = 0
    for finding in dataset_findings(records, views):
        if finding.severity == "error":
            errors.append(finding)
        else:
            warnings += 1
    command = _command(loaded.path, config_source)
    if warnings:  # beyond the ids that a note names already
        warnings += len(loaded.changed_ids)
        note = f"{counted(warnings, 'warning')} in the dataset: {command} {plural(warnings, 'shows it', 'lists them')}"
        loaded = replace(loaded, notes=(*loaded.notes, note))
    if not errors:
        return CheckedDataset(loaded)
    hint = errors[0].hint
    if more := len(errors) - 1:
        hint += f" ({counted(more, 'more problem')}: {command} lists all)"
    problem = DatasetError(errors[0].what, hint=hint, **records.place_of(errors[0]))
    return CheckedDataset(loaded, problem, all(_may_lack_kind(each, records, views) for each in errors))


def _command(path: str | None, config_source: object) -> str:
    if path is None:
        return "validate_dataset"
    config = ["--config", str(config_source)] if isinstance(config_source, str | PathLike) else []
    return shlex.join(["graphrag-eval-lc", "validate", path, *config])


def _may_lack_kind(finding: Finding, records: RecordFile, views: StepViews) -> bool:
    """Return whether a finding is about the output of a reference step that no step kind is for."""
    location = finding.location
    if len(location) < _STEP_DEPTH or location[3] != "reference_steps" or location[_STEP_DEPTH:] not in _OF_OUTPUT:
        return False
    step: Any = records.values
    for part in location[:_STEP_DEPTH]:
        step = step[part]
    return views.kind_of(views.reference_view(step)) is step_kind_for(None, None)
