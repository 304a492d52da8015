"""migrate: old responses of graphrag-eval scored, its figures looked for, and its config written as ours."""

import os
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from graphrag_eval_lc.config import load_config, locate
from graphrag_eval_lc.config.project_file import PROJECT_FILE
from graphrag_eval_lc.dataset.loading import (
    Responses,
    checked_dataset,
    load_dataset,
    load_responses,
    questions_of,
    response_records,
)
from graphrag_eval_lc.errors import ConfigError, NothingToCompareError
from graphrag_eval_lc.files.opening import make_folder
from graphrag_eval_lc.files.writing import refuse_existing, replace_file, yaml_text
from graphrag_eval_lc.migration.explained import differences_of
from graphrag_eval_lc.migration.findings import Migration
from graphrag_eval_lc.migration.old_config import MovedConfig, moved_config
from graphrag_eval_lc.migration.published import Published, read_published
from graphrag_eval_lc.migration.trials import (
    ERRORS_COUNT,
    OF_AGENT,
    Scored,
    Scorer,
    section_of,
    with_agents_k,
)
from graphrag_eval_lc.migration.written import project_text
from graphrag_eval_lc.records import Response, Template
from graphrag_eval_lc.texts import counted, listed, plural

_DATASET_FILE = "questions.yaml"


def migrate(
    dataset: str | PathLike[str] | Sequence[Template],
    responses: str | PathLike[str] | Responses,
    *,
    config: str | PathLike[str] | Mapping[str, Any] | None = None,
    published: Any = (),
    output_dir: str | PathLike[str] | None = None,
    overwrite: bool = False,
) -> Migration:
    """Find the settings that give graphrag-eval's figures, and write them down.

    The old responses are scored with each setting that is known to differ from graphrag-eval's. No agent and no model
    is asked, so judged metrics are not compared.

    Args:
        dataset: graphrag-eval's reference dataset: a path, or the templates.
        responses: The recorded responses: a path, a mapping by question id, or a list.
        config: graphrag-eval's config, a path or what stands in it; its models and custom evaluations are moved.
        published: What graphrag-eval gave: the path of its results or its aggregates, or a list of both. Without it
            nothing is compared, and the settings are those of graphrag-eval 6.6.1.
        output_dir: The folder that gets ``graphrag_eval.yaml``, and ``questions.yaml`` where the dataset has to change;
            None writes nothing.
        overwrite: Whether these files may be replaced.

    Returns:
        The settings with how many figures each gives, what remains different and why, and the files.

    Raises:
        DatasetError: The dataset cannot be read or breaks the format.
        ResponsesError: The responses cannot be read or break the format.
        ConfigError: The old config cannot be read.
        ComparisonError: The published files are neither results nor aggregates.
        NothingToCompareError: What was published is of other questions.
        RunFolderError: A file exists already, or cannot be written.

    Example:
        >>> step = {"name": "lookup", "args": {}, "output": "1"}
        >>> dataset = [{"template_id": "t", "questions": [
        ...     {"id": "q", "question_text": "1?", "reference_steps": [[{**step, "output": "2"}], [step]]}]}]
        >>> responses = {"q": {"question_id": "q", "actual_steps": [{**step, "id": "a", "status": "success"}]}}
        >>> migrate(dataset, responses, published=[{"question_id": "q", "steps_score": 0.5}]).settings
        {'steps': {'scoring': 'all_groups'}}
    """
    target = None if output_dir is None else Path(output_dir)
    for name in (PROJECT_FILE, _DATASET_FILE) if target is not None else ():
        refuse_existing(target / name, overwrite=overwrite)  # type: ignore[operator]
    moved = moved_config(config)
    _check_config(moved, config)
    templates = load_dataset(dataset) if isinstance(dataset, str | PathLike) else checked_dataset(dataset)
    records = _responses(responses)
    expected = read_published(_sources(published), _custom_keys(moved))
    _check_overlap(expected, templates)
    scorer = Scorer(templates, records, expected)
    tried = list(scorer.tried())
    chosen = max(tried, key=lambda each: each.rank)
    results = scorer.results(chosen.settings)
    differences = tuple(differences_of(expected, chosen, tried, results))
    notes = (*moved.notes, *_notes(templates, records, expected, chosen))
    settings = section_of(chosen.settings)
    found = Migration(
        questions=len(_ids(templates)),
        trials=tuple(each.trial(expected, is_chosen=each is chosen) for each in tried),
        differences=differences,
        settings=settings,
        notes=notes,
        files=(),
        results=results,
        aggregates=chosen.aggregates,
    )
    return found if target is None else _written(found, target, dataset, templates, chosen, moved)


def _check_config(moved: MovedConfig, source: Any) -> None:
    """Refuse a value of the old config that could not be used, before anything is scored."""
    try:
        load_config(dict(moved.sections))
    except ConfigError as problem:
        if isinstance(source, str | PathLike):
            locate(problem, source)
        raise


def _responses(source: str | PathLike[str] | Responses) -> dict[str, Response]:
    if isinstance(source, str | PathLike):
        return load_responses(source)
    if isinstance(source, Mapping):
        return {str(identifier): response for identifier, response in source.items()}
    return {str(response["question_id"]): response for response in response_records(source)}


def _sources(published: Any) -> Sequence[Any]:
    """Return each thing that was published: one alone, or several in a list or tuple."""
    is_list = isinstance(published, list | tuple)
    if not is_list:
        return (published,) if published is not None else ()
    is_results = any(isinstance(each, Mapping) and "question_id" in each for each in published)
    return (published,) if is_results else tuple(published)


def _ids(templates: Sequence[Template]) -> list[str]:
    return [str(question["id"]) for _, question in questions_of(templates)]


def _custom_keys(moved: MovedConfig) -> list[str]:
    return [key for each in moved.sections.get("custom_evaluations", ()) for key in each["outputs"]]


def _check_overlap(published: Published, templates: Sequence[Template]) -> None:
    if published.values and not published.values.keys() & set(_ids(templates)):
        raise NothingToCompareError(
            f"none of the {counted(len(published.values), 'published question')} is in the dataset, such as "
            f"{listed(list(published.values), 1)}",
            hint="Give the dataset that graphrag-eval was given.",
        )


def _notes(
    templates: Sequence[Template],
    records: Mapping[str, Response],
    published: Published,
    chosen: Scored,
) -> Iterator[str]:
    absent = [identifier for identifier in _ids(templates) if identifier not in records]
    if absent:
        yield (
            f"{counted(len(absent), 'question')} without a response {plural(len(absent), 'is', 'are')} left out, where "
            f"graphrag-eval would have stopped: {listed(absent)}."
        )
    if published.judged:
        yield (
            f"Not compared, as a model judges them and none is asked: {listed(sorted(published.judged), 12)}. Score "
            "again with the new file to have them."
        )
    if ERRORS_COUNT in chosen.settings and not published.figures:
        yield (
            "Failed questions count in the means, as in graphrag-eval from version 6 on; remove aggregates: {errors: "
            "include} to leave them out."
        )
    if OF_AGENT in chosen.settings:
        yield (
            f"In {OF_AGENT[0]} graphrag-eval takes the agent's k. Here the reference's goes first, so the dataset is "
            f"written anew without it ({_DATASET_FILE}); with it, an agent that asks for fewer documents is not "
            "measured by fewer."
        )


def _written(
    found: Migration,
    target: Path,
    dataset: Any,
    templates: Sequence[Template],
    chosen: Scored,
    moved: MovedConfig,
) -> Migration:
    """Write the project file, and the dataset where it has to change or has no file."""
    files: dict[Path, str] = {}
    name = _DATASET_FILE
    if OF_AGENT in chosen.settings:
        files[target / _DATASET_FILE] = yaml_text(with_agents_k(templates))
    elif isinstance(dataset, str | PathLike):
        name = _relative(Path(dataset), target)
    else:
        files[target / _DATASET_FILE] = yaml_text(list(templates))
    sections = {**found.settings, **moved.sections}
    files[target / PROJECT_FILE] = project_text(name, sections, found.verdict)
    for path, text in files.items():
        make_folder(path.parent, is_private=False)
        replace_file(path, [text.encode()])
    return Migration(
        questions=found.questions,
        trials=found.trials,
        differences=found.differences,
        settings=found.settings,
        notes=found.notes,
        files=tuple(sorted(files)),
        results=found.results,
        aggregates=found.aggregates,
    )


def _relative(path: Path, folder: Path) -> str:
    """Return a path as it is from a folder, and as it is where there is no way, as between drives."""
    try:
        return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    except ValueError:
        return str(path.resolve())
