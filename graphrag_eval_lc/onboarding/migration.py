"""Migrates from graphrag-eval: converts its config, and checks on old responses that its figures are reproduced."""

import math
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Final

from graphrag_eval_lc.aggregation import compute_aggregates
from graphrag_eval_lc.config import load_config, locate
from graphrag_eval_lc.config.loading import PROJECT_FILE, RUN_SECTION
from graphrag_eval_lc.dataset.loading import DatasetSource, Responses, load_dataset, questions_of, read_responses
from graphrag_eval_lc.errors import ComparisonError, ConfigError, GraphRAGEvalWarning, NothingToCompareError
from graphrag_eval_lc.evaluation.evaluate import run_evaluation
from graphrag_eval_lc.files.opening import make_folder
from graphrag_eval_lc.files.record_file import read_records
from graphrag_eval_lc.files.writing import refuse_existing, replace_file, yaml_text
from graphrag_eval_lc.onboarding.old_config import moved_config
from graphrag_eval_lc.records import Response, Template
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC, JUDGES, STEPS_SCORE, TOKENS
from graphrag_eval_lc.texts import counted, listed, plural, shortened

Place = tuple[str | None, str]
"""A question's id and a key of its result; for aggregates None and the path, such as ``micro/elapsed_sec/mean``."""

_COMPARED: Final = (STEPS_SCORE, "status", *TOKENS, ELAPSED_SEC)
_PARTS: Final = ("per_template", "micro", "macro")
_JUDGED: Final = frozenset(key for judge in JUDGES for key in judge.keys)
_TOLERANCE: Final = 1e-9
_LONGEST_REASON: Final = 240


@dataclass(frozen=True, slots=True)
class Difference:
    """A published figure that is not reproduced here."""

    question_id: str | None  # the question; None for a figure of the aggregates
    key: str  # the key of the result, or the path in the aggregates, with slashes
    published: Any
    here: Any  # the figure here, or None
    why: str  # the reason in a sentence, or what to check if it is unknown


@dataclass(slots=True)
class Published:
    """The figures that graphrag-eval published, and the keys that models judged, which are not compared."""

    figures: dict[Place, Any] = field(default_factory=dict)
    judged: set[str] = field(default_factory=set)


def read_published(published: Any, custom: Sequence[str]) -> Published:
    """Read what graphrag-eval published: results or aggregates, each as a file or as values; or a list of both.

    ``custom`` has the keys of custom evaluations, which models judge.
    """
    is_several = isinstance(published, list | tuple) and not any(map(_is_result, published))
    found, judged = Published(), {*_JUDGED, *custom}
    for source in published if is_several else () if published is None else (published,):
        is_path = isinstance(source, str | PathLike)
        path = str(source) if is_path else None
        values = read_records(source, ComparisonError, what="set of published results").values if is_path else source
        if isinstance(values, Mapping) and any(part in values for part in _PARTS):
            for place, figure in _figures_in({part: values.get(part) for part in _PARTS}):
                if keys := judged.intersection(place):
                    found.judged |= keys
                else:
                    found.figures[None, "/".join(place)] = figure
        elif isinstance(values, list) and values and all(map(_is_result, values)):
            for result in values:
                found.figures.update(_figures_of(result, path))
                found.judged |= judged & result.keys()
        else:
            hint = "Give the list that its run_evaluation returned, or what its compute_aggregates returned."
            raise ComparisonError("these are not results or aggregates of graphrag-eval", path=path, hint=hint)
    return found


def _is_result(value: Any) -> bool:
    return isinstance(value, Mapping) and "question_id" in value


def _figures_of(result: Mapping[str, Any], path: str | None = None) -> Iterator[tuple[Place, Any]]:
    identifier = str(result["question_id"])
    for key in _COMPARED:
        value = result.get(key)
        if key != "status" and (isinstance(value, bool) or not isinstance(value, int | float | None)):
            what, hint = f"{value!r:.60} is no number", "Give the results as graphrag-eval returned them."
            raise ComparisonError(what, path=path, question_id=identifier, key=key, hint=hint)
        if value is not None:
            yield (identifier, key), value


def _figures_in(tree: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from _figures_in(value, (*path, str(key)))
    elif isinstance(tree, int | float) and not isinstance(tree, bool):
        yield path, tree


def differences(
    published: Published, results: Sequence[Mapping[str, Any]], aggregates: Mapping[str, Any]
) -> Iterator[Difference]:
    """Yield the published figures that are not reproduced, in their published order."""
    by_id = {str(result["question_id"]): result for result in results}
    here: dict[Place, Any] = {(None, "/".join(place)): figure for place, figure in _figures_in(aggregates)}
    for result in results:
        here.update(_figures_of(result))
    for place, value in published.figures.items():
        identifier, key = place
        found = here.get(place)
        # graphrag-eval's aggregates have 0 for what was not measured.
        if not _is_same(value, found) and not (identifier is found is None and value == 0):
            why = "Check that dataset and responses are those that were scored."
            if identifier is not None:
                why = _why(key, by_id.get(identifier)) or why
            yield Difference(identifier, key, value, found, why)


def _is_same(published: Any, here: Any) -> bool:
    """Return whether two figures are the same, apart from rounding."""
    if isinstance(here, int | float) and isinstance(published, int | float):
        return math.isclose(here, published, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    return bool(here == published)


def _why(key: str, result: Mapping[str, Any] | None) -> str | None:
    if result is None:
        return "The dataset or the responses that were given do not have the question."
    if key != STEPS_SCORE:
        return None
    diagnosis = result.get("steps_diagnosis") or ()
    for row, (steps, said) in enumerate(zip(result.get("reference_steps") or (), diagnosis, strict=False), start=1):
        for column, (step, each) in enumerate(zip(steps, said, strict=False), start=1):
            if not each["matched"]:
                reason = shortened(each["reason"].rstrip("."), _LONGEST_REASON)
                return f"Reference step {row}.{column} ({step['name']}) has no match here: {reason}."
    return None


VERSIONS: Final[Mapping[str, dict[str, Any]]] = {
    "6": {"steps": {"scoring": "all_groups"}, "aggregates": {"errors": "include"}},
    "5": {},
}
"""The settings with which each version of graphrag-eval scores."""

_DATASET_FILE: Final = "questions.yaml"


@dataclass(frozen=True, slots=True)
class Migration:
    """What a migration found.

    Attributes:
        version: The version of graphrag-eval with whose settings the responses were scored, ``6`` or ``5``.
        settings: These settings, as they are written.
        compared: How many published figures were compared.
        differences: The figures that are not reproduced, in their published order.
        notes: Sentences on what was converted, left out or not compared.
        files: The files that were written.
    """

    version: str
    settings: dict[str, Any]
    compared: int
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    files: tuple[Path, ...] = ()

    @property
    def verdict(self) -> str:
        """The result in a sentence or two."""
        settings = f"the settings of graphrag-eval {self.version}"
        if not self.compared:
            what = f"Nothing published to compare with: these are {settings}"
            return f"{what}. Add --published results.yaml to check that they reproduce your figures."
        equal = self.compared - len(self.differences)
        figures = f"{counted(self.compared, 'published figure')} {plural(self.compared, 'is', 'are')}"
        return f"{equal:,} of {figures} equal with {settings}."

    def document(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        return {"verdict": self.verdict, **asdict(self), "files": [str(path) for path in self.files]}


def migrate(
    dataset: DatasetSource,
    responses: str | PathLike[str] | Responses,
    *,
    config: str | PathLike[str] | Mapping[str, Any] | None = None,
    published: Any = (),
    output_dir: str | PathLike[str] | None = None,
    overwrite: bool = False,
) -> Migration:
    """Convert graphrag-eval's config, and check on its old responses that its figures are reproduced.

    Two settings reproduce the figures of graphrag-eval 6: ``steps: {scoring: all_groups}`` and ``aggregates: {errors:
    include}``. They are written, unless the defaults reproduce more of the published figures, because graphrag-eval 5
    scores like the defaults. No agent and no model is called, so judged metrics are not compared.

    Args:
        dataset: graphrag-eval's reference dataset: a path, or the templates.
        responses: The recorded responses: a path, a mapping by question id, or a list.
        config: graphrag-eval's config, a path or its content; its models and custom evaluations are converted.
        published: What graphrag-eval published: the path of its results or of its aggregates, or a list of both.
        output_dir: The folder for ``graphrag_eval.yaml``, and for ``questions.yaml`` if the dataset has no file; None
            writes nothing.
        overwrite: Whether these files may be replaced.

    Returns:
        The settings, the remaining differences with their reasons, and the files.

    Raises:
        DatasetError: The dataset cannot be read or breaks the format.
        ResponsesError: The responses cannot be read or break the format.
        ConfigError: The old config cannot be read, or has a value that cannot be used.
        ComparisonError: The published files are not results or aggregates.
        NothingToCompareError: The published results are of other questions.
        RunFolderError: A file exists already, or cannot be written.

    Example:
        >>> step = {"name": "lookup", "args": {}, "output": "1"}
        >>> dataset = [{"template_id": "t", "questions": [
        ...     {"id": "q", "question_text": "1?", "reference_steps": [[{**step, "output": "2"}], [step]]}]}]
        >>> responses = {"q": {"question_id": "q", "actual_steps": [{**step, "id": "a", "status": "success"}]}}
        >>> migrate(dataset, responses, published=[{"question_id": "q", "steps_score": 0.5}]).settings["steps"]
        {'scoring': 'all_groups'}
    """
    target = None if output_dir is None else Path(output_dir)
    if target is not None:
        for name in (PROJECT_FILE, _DATASET_FILE):
            refuse_existing(target / name, overwrite=overwrite)
    sections, notes = moved_config(config)
    _check_config(sections, config)
    templates = load_dataset(dataset)
    loaded = read_responses(responses)
    records = {str(response["question_id"]): response for response in loaded.records}
    ids = [str(question["id"]) for _, question in questions_of(templates)]
    custom = [key for each in sections.get("custom_evaluations", ()) for key in each["outputs"]]
    expected = read_published(published, custom)
    of_results = list(dict.fromkeys(identifier for identifier, _ in expected.figures if identifier is not None))
    if of_results and not set(of_results) & set(ids):
        what = f"none of the {counted(len(of_results), 'published question')} is in the dataset"
        hint = "Give the dataset that graphrag-eval was given."
        raise NothingToCompareError(f"{what}, such as {listed(of_results, 1)}", hint=hint)
    version, differing = _best_version(templates, records, expected)
    notes += [*loaded.notes, *_notes(ids, records, expected)]
    found = Migration(version, VERSIONS[version], len(expected.figures), tuple(differing), tuple(notes))
    if target is None:
        return found
    files = _files(found, sections, target, dataset, templates)
    make_folder(target, is_private=False)
    for path, text in files.items():
        replace_file(path, [text.encode()])
    return replace(found, files=tuple(sorted(files)))


def _check_config(sections: Mapping[str, Any], source: Any) -> None:
    """Refuse an unusable value of the old config before anything is scored."""
    try:
        load_config(dict(sections))
    except ConfigError as problem:
        if isinstance(source, str | PathLike):
            locate(problem, source)
        raise


def _best_version(
    templates: Sequence[Template], records: Mapping[str, Response], expected: Published
) -> tuple[str, list[Difference]]:
    """Return the version whose settings reproduce more of the published figures, and the differences."""
    found: list[tuple[str, list[Difference]]] = []
    with warnings.catch_warnings():
        for version, settings in VERSIONS.items():
            results = run_evaluation(templates, records, settings, answered_only=True)
            found.append((version, list(differences(expected, results, compute_aggregates(results, settings)))))
            if not found[-1][1]:
                break
            warnings.simplefilter("ignore", GraphRAGEvalWarning)  # the first version has reported them already
    return min(found, key=lambda each: len(each[1]))


def _notes(ids: Sequence[str], records: Mapping[str, Response], published: Published) -> Iterator[str]:
    absent = [identifier for identifier in ids if identifier not in records]
    if absent:
        left_out = f"{counted(len(absent), 'question')} without a response {plural(len(absent), 'is', 'are')} left out"
        yield f"{left_out}, for which graphrag-eval would have stopped: {listed(absent)}."
    if published.judged:
        judged = listed(sorted(published.judged), 12)
        yield f"Not compared, as a model judges them: {judged}. Score again with the new file to measure them."


def _files(
    found: Migration, sections: Mapping[str, Any], target: Path, dataset: DatasetSource, templates: Sequence[Template]
) -> dict[Path, str]:
    """Return the texts of the project file, and of the dataset if it has no file."""
    files, name = {}, _DATASET_FILE
    if isinstance(dataset, str | PathLike):
        name = Path(os.path.relpath(Path(dataset).resolve(), target.resolve())).as_posix()
    else:
        files[target / _DATASET_FILE] = yaml_text(list(templates))
    head = [
        "# Written by `graphrag-eval-lc migrate`. The command line finds this file in the current folder.",
        f"# {found.verdict}",
        yaml_text({RUN_SECTION: {"dataset": name, "output": "runs"}}).rstrip(),
        "  # agent: my_agent.py:agent   # your agent, which `run` calls; `score` needs none",
    ]
    parts = [yaml_text({section: values}) for section, values in {**found.settings, **sections}.items()]
    files[target / PROJECT_FILE] = "\n".join([*head, "", *parts])
    return files
