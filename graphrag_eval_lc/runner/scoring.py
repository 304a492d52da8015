"""Scoring without an agent: responses that were recorded elsewhere, or once more those of a run's folder."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any, cast

from graphrag_eval_lc.config import ConfigSource, EvaluationConfig, load_config
from graphrag_eval_lc.dataset import DatasetSource, load_response_records, templates_of
from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.evaluation import Responses, response_records
from graphrag_eval_lc.masking import masked_values
from graphrag_eval_lc.records import Question, Response, Template
from graphrag_eval_lc.run_folder import Key, RunFolder
from graphrag_eval_lc.runner.benchmark_run import BenchmarkRun
from graphrag_eval_lc.runner.events import RunEvent
from graphrag_eval_lc.runner.resuming import changed_questions
from graphrag_eval_lc.runner.run_record import RunRecord
from graphrag_eval_lc.runner.samples import Sample
from graphrag_eval_lc.runner.scores import Scores
from graphrag_eval_lc.runner.selection import Selection


def score_responses(
    dataset: DatasetSource,
    responses: str | PathLike[str] | Responses,
    *,
    output_dir: str | PathLike[str] | None = None,
    config: ConfigSource = None,
    label: str | None = None,
    href: str | None = None,
    tags: Sequence[str] = (),
    overwrite: bool = False,
) -> BenchmarkRun:
    """Score responses that were recorded elsewhere, and write the same folder as a run does.

    Args:
        dataset: A path, or the templates that ``load_dataset`` gives.
        responses: A path, the responses by question id, or a list of responses that carry their question ids (and
            their ``repeat``, where a question was asked several times).
        output_dir: The run's folder; None writes nothing.
        config: A path, a dict or an EvaluationConfig; None for the defaults.
        label: A name for the run, for people.
        href: A link to what is known of it elsewhere.
        tags: Marks for it.
        overwrite: Whether an earlier run in the folder is replaced.

    Raises:
        DatasetError: The dataset cannot be read, breaks the format, or has a question id twice.
        ResponsesError: The file cannot be read, or the responses are neither a mapping nor a list of responses with
            question ids.
        ConfigError: The config has a key or value that does not exist.
        RunFolderError: The folder cannot be written, holds a run already, or holds the responses.
    """
    settings = load_config(config)
    templates = templates_of(dataset)
    questions = Selection().apply(templates)
    _refuse_own_folder(responses, output_dir)
    from_file = isinstance(responses, str | PathLike)
    records = load_response_records(cast("Any", responses)) if from_file else response_records(cast("Any", responses))
    by_key = {(str(record["question_id"]), _repeat(record)): record for record in records}
    samples = _samples(questions, by_key.keys())
    record = RunRecord.begin(
        dataset, templates, [question for _, question in questions], settings, label=label, href=href, tags=list(tags)
    )
    if output_dir is None:
        return _scored(samples, by_key.get, templates, settings)
    folder = RunFolder(output_dir)
    with folder.lock():
        if overwrite:
            folder.clear()
        folder.refuse_earlier()
        folder.write_run(record.as_dict())
        folder.write_responses(by_key.values())
        run = _scored(samples, by_key.get, templates, settings, folder)
        folder.write_run(record.end(run.aggregates["totals"]).as_dict())
    return run


def score_run(
    run_dir: str | PathLike[str], *, dataset: DatasetSource | None = None, config: ConfigSource = None
) -> BenchmarkRun:
    """Score the responses of a run's folder again, in place; no agent is asked.

    Args:
        run_dir: The folder. Its results, aggregates and totals are replaced; its responses stay.
        dataset: A path, or the templates; None for the path that stands in run.json.
        config: A path, a dict or an EvaluationConfig; None for what stands in run.json.

    Returns:
        The run. Questions that were selected and not asked stay left out.

    Raises:
        RunFolderError: The folder holds no run, cannot be written, or is in use.
        DatasetError: The dataset cannot be read, or breaks the format.
        ConfigError: The config has a key or value that does not exist.
    """
    if not Path(run_dir).is_dir():
        raise RunFolderError("there is no such folder", path=run_dir, mend="Give the folder of a run.")
    folder = RunFolder(run_dir)
    with ExitStack() as stack:
        stack.enter_context(folder.lock())
        earlier = folder.earlier
        if earlier is None:
            raise RunFolderError("the folder holds no run", path=run_dir, mend="Give the folder of a run.")
        settings = load_config(earlier.get("config") if config is None else config)
        source = _dataset_of(earlier, folder) if dataset is None else dataset
        templates = templates_of(source)
        questions = Selection().apply(templates)
        journal = stack.enter_context(folder.journal())
        is_recorded = "agent" not in earlier
        selected = earlier.get("questions") or {}
        if not is_recorded:
            questions = [each for each in questions if str(each[1]["id"]) in selected]
        samples = _samples(questions, journal.keys(), only_answered=not is_recorded)
        run = _scored(samples, lambda key: cast("Response | None", journal.read(key)), templates, settings, folder)
        now = RunRecord.begin(source, templates, [question for _, question in questions], settings)
        missing = [key for key in selected if key not in now.questions]
        run.warnings = [*journal.set_aside, *_warnings(changed_questions(earlier, now.as_dict()), missing)]
        folder.write_run(
            {
                **earlier,
                "dataset": now.described["dataset"],
                "config": masked_values(settings.model_dump()),
                "scored": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "totals": run.aggregates["totals"],
            }
        )
    run.stopped = earlier.get("stopped")
    return run


def _dataset_of(earlier: Mapping[str, Any], folder: RunFolder) -> str:
    path = (earlier.get("dataset") or {}).get("path")
    if path is None:
        raise RunFolderError(
            "run.json names no file of the dataset, as it was made in Python",
            path=folder.path,
            mend="Give it: --dataset FILE (dataset=...).",
        )
    if not Path(path).exists():
        raise RunFolderError(
            f"the dataset {path} of this run is not there, seen from the current folder",
            path=folder.path,
            mend="Go to the folder where the run was started, or give it: --dataset FILE (dataset=...).",
        )
    return str(path)


def _warnings(changed: Iterable[str], missing: Sequence[str]) -> Iterable[str]:
    texts = sorted(changed)
    if texts:
        yield f"{_questions(texts)} with another text than was asked: {', '.join(texts[:5])}"
    if missing:
        yield f"{_questions(missing)} of the run no longer in the dataset: {', '.join(missing[:5])}"


def _questions(ids: Sequence[str]) -> str:
    return f"{len(ids):,} {'question' if len(ids) == 1 else 'questions'}"


def _samples(
    questions: Sequence[tuple[Template, Question]], keys: Iterable[Key], *, only_answered: bool = False
) -> list[Sample]:
    """Give the samples that there are responses to; a question without any is a sample too, unless it is left out."""
    repeats: dict[str, list[int]] = {}
    for question_id, repeat in keys:
        repeats.setdefault(question_id, []).append(repeat)
    samples: list[Sample] = []
    for template, question in questions:
        for repeat in sorted(repeats.get(str(question["id"]), [] if only_answered else [1])):
            samples.append(Sample(len(samples), template, question, repeat))
    return samples


def _scored(
    samples: Sequence[Sample],
    response_to: Callable[[Key], Response | None],
    templates: Sequence[Template],
    config: EvaluationConfig,
    folder: RunFolder | None = None,
) -> BenchmarkRun:
    """Score samples one by one, and write what is new into the folder."""
    template_ids = [str(template["template_id"]) for template in templates]
    repeats = max((sample.repeat for sample in samples), default=1)
    kept: list[Response] = []
    with ExitStack() as stack:
        file = None if folder is None else stack.enter_context(folder.results())
        scores = Scores(config, template_ids, repeats=repeats, file=file, tell=_tell_nobody)
        for sample in samples:
            response = response_to(sample.key)
            scores.score(sample, response)
            if folder is None and response is not None:
                kept.append(response)
        aggregates = scores.finish()
    if folder is None:
        return BenchmarkRun(aggregates, responses=kept, results=scores.kept())
    folder.write_aggregates(aggregates)
    return BenchmarkRun(aggregates, output_dir=folder.path)


def _tell_nobody(_: RunEvent) -> None: ...


def _repeat(record: Mapping[str, Any]) -> int:
    repeat = record.get("repeat")
    return repeat if isinstance(repeat, int) and repeat > 0 else 1


def _refuse_own_folder(responses: object, output_dir: str | PathLike[str] | None) -> None:
    """Keep a run from being replaced by the scores of its own responses: what it says of its agent would be lost."""
    if output_dir is None or not isinstance(responses, str | PathLike):
        return
    if Path(responses).resolve().parent == Path(output_dir).resolve():
        raise RunFolderError(
            "the responses lie in the folder itself",
            path=output_dir,
            mend=f"Score the run in place: graphrag-eval-lc score {output_dir} (score_run).",
        )
