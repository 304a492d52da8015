"""Scoring without an agent: ``score_responses`` for responses from elsewhere, ``score_run`` to score a run again."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.benchmark.earlier_run import (
    config_again,
    dataset_of,
    missing_functions,
    missing_scorers,
    question_warnings,
    refuse_missing,
    scoring_warnings,
)
from graphrag_eval_lc.benchmark.option_fields import recorded
from graphrag_eval_lc.benchmark.options import of_folder, of_responses
from graphrag_eval_lc.benchmark.progress import progress_display
from graphrag_eval_lc.benchmark.run_manifest import git_state, kept_notes, new_record, scored_again, text_digest
from graphrag_eval_lc.benchmark.run_options import ScoredBy
from graphrag_eval_lc.benchmark.run_output import RunOutput, with_report
from graphrag_eval_lc.benchmark.score_options import (
    RAY,
    CheckedScoreOptions,
    CheckedScoreRunOptions,
    ScoreOptions,
    ScoreRunOptions,
)
from graphrag_eval_lc.config import EvaluationConfig, load_config, with_measures
from graphrag_eval_lc.dataset.ids import refuse_ids_as_written, unknown_questions_warning
from graphrag_eval_lc.dataset.loading import DatasetSource, Responses, questions_of, read_responses, response_key
from graphrag_eval_lc.dataset.selection import Selection, answered_note
from graphrag_eval_lc.dataset.validation import check_dataset
from graphrag_eval_lc.errors import ConfigError, DatasetError, RunFolderError
from graphrag_eval_lc.evaluation.pipeline import Comparer
from graphrag_eval_lc.evaluation.samples import Sample, Shard, planned, recorded_samples, samples_of
from graphrag_eval_lc.judges.request_plan import RequestPlan
from graphrag_eval_lc.records import QuestionWithTemplate, Response, Template
from graphrag_eval_lc.registry.metrics import NUMBER_OF_ERROR_SAMPLES
from graphrag_eval_lc.run_folder import RUN_FILE, Journal, Key
from graphrag_eval_lc.texts import counted, listed

_FEW = 10  # up to this many questions without a response, the tables in the output show enough
_DROP = "--drop-missing (drop_missing=True) to score without"


@of_responses(ScoreOptions)
def score_responses(dataset: DatasetSource, responses: str | PathLike[str] | Responses, **options: Any) -> BenchmarkRun:
    """Score responses that were recorded elsewhere, and write the same folder as a run does.

    Args:
        dataset: A path, or the templates that ``load_dataset`` returns.
        responses: A path, the responses by question id, or a list of responses that carry their question ids (and
            their ``repeat``, if a question was asked several times).
        **options: Those of ``ScoreOptions``; all have a default.

    Raises:
        DatasetError: The dataset cannot be read, breaks the format, has a question id twice, lacks an id that was
            selected, or has no selected question (with a response, where only these are scored).
        ResponsesError: The file cannot be read, or the responses are not a mapping or a list of responses with
            question ids.
        ConfigError: The config has a key or value that does not exist.
        RunFolderError: The folder cannot be written, holds a run already, or holds the responses.
        OptionError: max_cost is not greater than 0, or an evaluator is not a function.
    """
    given = CheckedScoreOptions(**options)
    with _recorded(dataset, responses, given) as scoring:
        output = scoring.output
        questions = [question for _, question in scoring.questions]
        record = new_record(
            dataset,
            scoring.templates,
            questions,
            given.config,
            given.evaluators,
            selection=given.selection.as_dict(),
            git=None if given.output_dir is None else git_state(),
            **recorded(given),
        )
        if output.folder is not None and not given.overwrite:
            output.folder.refuse_earlier()  # before the workers start, which takes seconds
        with _comparer_of(given, given.config, output) as comparer:
            output.replace(record, scoring.responses.values(), overwrite=given.overwrite)
            output.notes += scoring.notes
            output.warn(*scoring.warnings)
            run = _scored(scoring, comparer)
    return with_report(run, run.output_dir) if given.report else run


@of_responses(ScoreOptions)
def plan_scoring(
    dataset: DatasetSource, responses: str | PathLike[str] | Responses, **options: Any
) -> RequestPlan | None:
    """Return the requests that judges would send in ``score_responses`` with the same arguments, without sending them.

    Returns:
        The number of requests, their tokens and USD; None if no model judges.

    Raises:
        GraphRAGEvalError: What ``score_responses`` would raise before it asks.
    """
    given = CheckedScoreOptions(**options).replaced(output_dir=None, progress="off")
    with _recorded(dataset, responses, given) as scoring:
        return _planned(scoring)


class _Scoring(NamedTuple):
    """The input of a scoring: samples, and a function that returns their responses."""

    output: RunOutput
    options: ScoredBy
    templates: Sequence[Template]
    questions: Sequence[QuestionWithTemplate]
    samples: Sequence[Sample]
    response_to: Callable[[Key], Response | None]
    responses: Mapping[Key, Response] = {}
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()


@contextmanager
def _recorded(
    dataset: DatasetSource, responses: str | PathLike[str] | Responses, given: CheckedScoreOptions
) -> Iterator[_Scoring]:
    """Yield responses that were recorded elsewhere; ``score_responses`` says what this raises."""
    loaded = check_dataset(dataset, given.config, given.config_source).usable()
    templates = loaded.templates
    selected = given.selection.apply(templates)
    doubts = given.check_gates(templates)
    _refuse_own_folder(responses, given.output_dir)
    found = read_responses(responses)
    by_key = {response_key(record): record for record in found.records}
    ids = [question_id for question_id, _ in by_key]
    known = {str(question["id"]): question for _, question in questions_of(templates)}
    refuse_ids_as_written(known, loaded.changed_ids, ids, found.changed_ids, (loaded.path, found.path))
    questions = given.selection.answered(selected, set(ids))
    samples = recorded_samples(questions, by_key)
    notes = [answered_note(len(questions), len(selected))] if given.answered_only else []
    warnings = [*loaded.notes, *found.notes, *doubts, *_unknown_questions(by_key, templates)]
    warnings += _unanswered(samples, by_key)
    display = progress_display(given.progress, done_by="result_scored")
    with RunOutput(given.output_dir, open_files=given.open_files) as output, display as observer:
        output.observers = [observer]
        output.prepare(given)
        yield _Scoring(output, given, templates, questions, samples, by_key.get, by_key, notes, warnings)


@of_folder(ScoreRunOptions)
def score_run(run_dir: str | PathLike[str], **options: Any) -> BenchmarkRun:
    """Score the responses of a run's folder again, in place; no agent is asked.

    Args:
        run_dir: The folder. Its results, aggregates and totals are replaced, with a selection by those of the selected
            questions alone; its responses stay.
        **options: Those of ``ScoreRunOptions``; all have a default.

    Returns:
        The run. Questions that were selected and not asked stay left out, and so do those that the selection of
            ``score_responses`` left out.

    Raises:
        RunFolderError: The folder holds no run, cannot be written, or is in use; or the run was scored with a plugin, a
            matcher, an evaluator or a model of Python's that is missing now, so that its scores would change or go.
        OptionError: max_cost is not greater than 0, or an evaluator is not a function.
        DatasetError: The dataset cannot be read, breaks the format, or lacks an id that was selected; or the run has no
            question that was selected.
        ConfigError: The config has a key or value that does not exist.
    """
    given = CheckedScoreRunOptions(**options)
    with (
        _run_to_score(run_dir, given) as scoring,
        _comparer_of(given, scoring.options.config, scoring.output) as comparer,
    ):
        output, config = scoring.output, scoring.options.config
        earlier, journal = output.earlier or {}, output.journal
        assert journal is not None
        asked = [question for _, question in scoring.questions]
        chosen = given.selection.as_dict()
        source = dataset_of(earlier, Path(run_dir)) if given.dataset is None else given.dataset
        record = new_record(
            source, scoring.templates, asked, config, scoring.options.evaluators, scored_selection=chosen
        )
        output.record = scored_again(record, earlier)
        output.notes += [*scoring.notes, *kept_notes(earlier)]
        output.warn(*_unanswered(scoring.samples, journal))
        scored = _scored(scoring, comparer)
        scored.stopped = scored.stopped or earlier.get("stopped")
        missing = missing_scorers(earlier, scoring.options)
        output.warn(
            *scoring_warnings(earlier, output.record, scored.judges, missing), *question_warnings(earlier, record)
        )
        if "agent" not in earlier:
            known = earlier.get("questions") or {}  # those no longer in the dataset were reported above
            output.warn(*_unknown_questions((key for key in journal if key[0] not in known), scoring.templates))
        output.warn(*scoring.warnings)
    return with_report(scored, scored.output_dir) if given.report else scored


@of_folder(ScoreRunOptions)
def plan_score_run(run_dir: str | PathLike[str], **options: Any) -> RequestPlan | None:
    """Return the requests that judges would send in ``score_run`` with the same arguments, without sending them.

    Returns:
        The number of requests, without those whose answers the folder has, their tokens and USD; None if no model
            judges.

    Raises:
        GraphRAGEvalError: What ``score_run`` would raise before it asks.
    """
    given = CheckedScoreRunOptions(**options).replaced(progress="off")
    with _run_to_score(run_dir, given) as scoring:
        return _planned(scoring)


@contextmanager
def _run_to_score(run_dir: str | PathLike[str], given: CheckedScoreRunOptions) -> Iterator[_Scoring]:
    """Yield the run in a folder, which is locked meanwhile; ``score_run`` says what this raises."""
    if not Path(run_dir).is_dir():
        raise RunFolderError("the folder does not exist", path=run_dir, hint="Give the folder of a run.")
    display = progress_display(given.progress, done_by="result_scored")
    with RunOutput(run_dir, open_files=given.open_files) as output, display as observer:
        output.observers = [observer]
        folder, earlier = Path(run_dir), output.earlier
        if earlier is None:
            raise RunFolderError("the folder holds no run", path=run_dir, hint="Give the folder of a run.")
        options = _options_again(earlier, folder, given)
        if not given.drop_missing:
            refuse_missing(missing_scorers(earlier, options), folder, _DROP)
        source = dataset_of(earlier, folder) if given.dataset is None else given.dataset
        checked = check_dataset(source, options.config, given.config_source)
        loaded = checked.usable(lacks_kinds=given.drop_missing)
        templates = loaded.templates
        # Without a missing plugin its metrics disappear, and gates of the run's own config may name them.
        doubts = [] if given.drop_missing else options.check_gates(templates)
        questions = Selection().apply(templates)
        if "agent" in earlier or earlier.get("selection"):
            asked_ids = earlier.get("questions") or {}
            questions = [pair for pair in questions if str(pair[1]["id"]) in asked_ids]
        selected = _selected(given.selection, templates, questions, run_dir)
        output.warn(*loaded.notes, *doubts)
        output.prepare(options)
        # The text of a question may have changed since it was asked; its answer counts unless the run asked it again.
        of_run = (earlier.get("questions") or {}) if "agent" in earlier else {}
        texts = {str(question["id"]): question["question_text"] for _, question in questions}
        journal = output.open_journal(
            {key: text for key, text in texts.items() if of_run.get(key) == text_digest(text)}
        )
        scored, notes = selected, list[str]()
        if given.answered_only:
            scored = given.selection.answered(selected, {key[0] for key in journal})
            notes.append(answered_note(len(scored), len(selected)))
        if len(selected) < len(questions):
            notes.append(
                f"{counted(len(scored), 'question is', 'questions are')} scored of the {len(questions):,} of the run, "
                "and its results, aggregates and report are of these alone; score it without a selection for all of "
                "them"
            )
        samples, unasked = _answered(journal, scored, earlier)
        warnings = []
        if unasked and "stopped" not in earlier:  # it was killed before it could record that
            warnings.append(f"{unasked:,} of {len(samples) + unasked:,} were not asked yet, and are not counted")
        yield _Scoring(output, options, templates, questions, samples, output.response, notes=notes, warnings=warnings)


def _options_again(earlier: Mapping[str, Any], folder: Path, given: CheckedScoreRunOptions) -> ScoredBy:
    """Return the options for scoring a run again; without a config, the one in run.json is used."""
    try:
        config = load_config(
            config_again(earlier) if given.config_source is None else given.config_source,
            has_llm=given.llm is not None,
            has_embeddings=given.embeddings is not None,
        )
    except ConfigError as problem:
        if given.config_source is None and not given.drop_missing:  # it may name the metric of a plugin that is missing
            refuse_missing(missing_functions(earlier, given.evaluators), folder, _DROP)
        if given.config_source is None and problem.key == "repeats.metric":
            problem.path = folder / RUN_FILE
            problem.hint = "Give the plugin that registers it, or a configuration that names another."
        raise
    return given.replaced(config=config if given.measures is None else with_measures(config, given.measures))


def _selected(
    selection: Selection,
    templates: Sequence[Template],
    questions: list[QuestionWithTemplate],
    folder: str | PathLike[str],
) -> list[QuestionWithTemplate]:
    """Return those of a run's questions that are to be scored."""
    if selection.is_all:
        return questions
    ids = {str(question["id"]) for _, question in selection.apply(templates)}
    selected = [pair for pair in questions if str(pair[1]["id"]) in ids]
    if not selected:
        hint = "Select questions that it has; they are in run.json, under questions."
        raise DatasetError("the run has none of the selected questions", path=folder, hint=hint)
    return selected


def _unanswered(samples: Sequence[Sample], keys: Container[Key]) -> list[str]:
    """Return one warning if most of the questions, and more than ten, have no response."""
    missing = [sample.key[0] for sample in samples if sample.key not in keys]
    if len(missing) <= _FEW or 2 * len(missing) <= (number := len({sample.key[0] for sample in samples})):
        return []
    found = f"{len(missing):,} of {number:,} questions have no response and count as failed"
    hint = "; --answered-only (answered_only=True) scores only the others" if len(missing) < number else ""
    return [f"{found}: {listed(missing, 3)}{hint}"]


def _unknown_questions(keys: Iterable[Key], templates: Sequence[Template]) -> list[str]:
    """Return a warning about responses whose question is not in the dataset."""
    known = [str(question["id"]) for _, question in questions_of(templates)]
    warning = unknown_questions_warning((question_id for question_id, _ in keys), known)
    return [] if warning is None else [warning]


def _answered(
    journal: Journal, questions: Sequence[QuestionWithTemplate], earlier: Mapping[str, Any]
) -> tuple[Sequence[Sample], int]:
    """Return the samples of a run that are scored, and how many were not asked yet."""
    if "agent" not in earlier:  # the responses were recorded elsewhere: what has none counts as failed
        return recorded_samples(questions, journal), 0
    asked_repeats = earlier.get("repeats") or 1
    most = max([asked_repeats, *(repeat for _, repeat in journal)])
    samples = samples_of(questions, most, Shard.in_record(earlier))
    plan = planned(samples, journal.summary, only_scores=True)
    return plan.done, sum(sample.repeat <= asked_repeats for sample in plan.to_ask)


def _planned(scoring: _Scoring) -> RequestPlan | None:
    """Return the requests that the judges would send."""
    return scoring.output.planned_judging(
        scoring.options, scoring.samples, lambda sample: scoring.response_to(sample.key)
    )


def _scored(scoring: _Scoring, comparer: Comparer | None) -> BenchmarkRun:
    """Score samples, and end the run."""
    output, samples = scoring.output, scoring.samples
    repeats = max((sample.repeat for sample in samples), default=1)
    pipeline = output.pipeline(scoring.templates, repeats=repeats, comparer=comparer)
    max_concurrency = 1 if output.judges is None else output.judges.max_concurrency
    output.event("run_started", total=len(samples), done=0, errors=0, max_concurrency=max_concurrency)
    pipeline.add_all(samples, lambda sample: scoring.response_to(sample.key))
    known = () if output.folder is not None else (scoring.response_to(sample.key) for sample in samples)
    responses = [response for response in known if response is not None]
    aggregates = pipeline.finish()
    run = output.end(pipeline, aggregates, responses)
    errors, elapsed = aggregates["micro"][NUMBER_OF_ERROR_SAMPLES], output.elapsed_sec
    output.event("run_ended", total=len(samples), done=len(samples), errors=errors, elapsed_sec=elapsed, left_out=0)
    return run


@contextmanager
def _comparer_of(given: ScoredBy, config: EvaluationConfig, output: RunOutput) -> Iterator[Comparer | None]:
    """Yield the comparer of a cluster during the context; None if this process compares responses."""
    if given.engine != RAY:
        yield None
        return
    from graphrag_eval_lc.benchmark.ray_scoring import ray_comparer  # only a cluster needs it

    output.note_cluster(given.ray_address)
    with ray_comparer(config, workers=given.workers, address=given.ray_address) as comparer:
        yield comparer


def _refuse_own_folder(responses: object, output_dir: str | PathLike[str] | None) -> None:
    """Refuse to write into the run that the responses come from: its run.json with the agent would be lost."""
    if output_dir is None or not isinstance(responses, str | PathLike):
        return
    if Path(responses).resolve().parent == Path(output_dir).resolve():
        raise RunFolderError(
            "the responses lie in the folder itself",
            path=output_dir,
            hint=f"Score the run in place: graphrag-eval-lc score {output_dir} (score_run).",
        )
