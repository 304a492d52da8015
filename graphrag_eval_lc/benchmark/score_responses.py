"""Scoring without an agent: responses that were recorded elsewhere, or once more those of a run's folder."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.benchmark.option_fields import recorded
from graphrag_eval_lc.benchmark.option_signatures import of_folder, of_responses
from graphrag_eval_lc.benchmark.run_manifest import RunManifest, changed_questions, config_record
from graphrag_eval_lc.benchmark.score_options import (
    CheckedScoreOptions,
    CheckedScoreRunOptions,
    ScoreOptions,
    ScoreRunOptions,
)
from graphrag_eval_lc.benchmark.scorers import (
    dropped_warning,
    judging_warnings,
    missing_functions,
    missing_scorers,
    plugin_warnings,
    refuse_missing,
    scored_with,
)
from graphrag_eval_lc.config import EvaluationConfig, load_config, with_measures
from graphrag_eval_lc.dataset.loading import (
    DatasetSource,
    Responses,
    load_response_records,
    response_key,
    response_records,
    templates_of,
)
from graphrag_eval_lc.errors import ConfigError, RunFolderError
from graphrag_eval_lc.evaluation.limits import Budget
from graphrag_eval_lc.evaluation.pipeline import Pipeline, judges_of
from graphrag_eval_lc.evaluation.samples import Sample, Selection, recorded_samples
from graphrag_eval_lc.masking import without_masked
from graphrag_eval_lc.prices import Pricing
from graphrag_eval_lc.records import Response, Template
from graphrag_eval_lc.run_folder import RUN_FILE, Journal, Key, RunFolder
from graphrag_eval_lc.texts import counted, listed

if TYPE_CHECKING:
    from graphrag_eval_lc.judges.judging import Judges

_DROP = "--drop-missing (drop_missing=True) to score without"


@of_responses(ScoreOptions)
def score_responses(dataset: DatasetSource, responses: str | PathLike[str] | Responses, **options: Any) -> BenchmarkRun:
    """Score responses that were recorded elsewhere, and write the same folder as a run does.

    Args:
        dataset: A path, or the templates that ``load_dataset`` gives.
        responses: A path, the responses by question id, or a list of responses that carry their question ids (and
            their ``repeat``, where a question was asked several times).
        **options: Those of ``ScoreOptions``; all have a default.

    Raises:
        DatasetError: The dataset cannot be read, breaks the format, or has a question id twice.
        ResponsesError: The file cannot be read, or the responses are neither a mapping nor a list of responses with
            question ids.
        ConfigError: The config has a key or value that does not exist.
        RunFolderError: The folder cannot be written, holds a run already, or holds the responses.
        OptionError: max_cost is no number greater than 0, or an evaluator cannot be one.
    """
    given = CheckedScoreOptions.completed()(**options)
    settings, output_dir = given.config, given.output_dir
    judging = _Judging(given.evaluators, given.llm, given.embeddings, given.judge_cache, given.max_cost)
    templates = templates_of(dataset)
    questions = Selection().apply(templates)
    _refuse_own_folder(responses, output_dir)
    from_file = isinstance(responses, str | PathLike)
    records = load_response_records(cast("Any", responses)) if from_file else response_records(cast("Any", responses))
    by_key = {response_key(record): record for record in records}
    samples = recorded_samples(questions, by_key.keys())
    record = RunManifest.begin(
        dataset,
        templates,
        [question for _, question in questions],
        settings,
        scored_with(questions, settings, judging.evaluators),
        **recorded(given),
    )
    if output_dir is None:
        return _scored(samples, by_key.get, templates, settings, judging)[0]
    folder = RunFolder(output_dir)
    with folder.lock():
        judging.check(settings)  # before an earlier run is replaced
        if given.overwrite:
            folder.clear()
        folder.refuse_earlier()
        folder.write_run(record.as_dict())
        folder.write_responses(by_key.values())
        run, scorers = _scored(samples, by_key.get, templates, settings, judging, folder)
        folder.write_run({**record.end(run.aggregates["totals"], scorers=scorers).as_dict(), **_told(run)})
    return run


@of_folder(ScoreRunOptions)
def score_run(run_dir: str | PathLike[str], **options: Any) -> BenchmarkRun:
    """Score the responses of a run's folder again, in place; no agent is asked.

    Args:
        run_dir: The folder. Its results, aggregates and totals are replaced; its responses stay.
        **options: Those of ``ScoreRunOptions``; all have a default.

    Returns:
        The run. Questions that were selected and not asked stay left out.

    Raises:
        RunFolderError: The folder holds no run, cannot be written, or is in use; or the run was scored with a plugin, a
            matcher, an evaluator or a model of Python's that is missing now, so that its scores would change or go.
        OptionError: max_cost is no number greater than 0, or an evaluator cannot be one.
        DatasetError: The dataset cannot be read, or breaks the format.
        ConfigError: The config has a key or value that does not exist.
    """
    given = CheckedScoreRunOptions.completed()(**options)
    config, llm, embeddings = given.config, given.llm, given.embeddings
    if not Path(run_dir).is_dir():
        raise RunFolderError("there is no such folder", path=run_dir, hint="Give the folder of a run.")
    folder = RunFolder(run_dir)
    with ExitStack() as stack:
        stack.enter_context(folder.lock())
        earlier = folder.earlier
        if earlier is None:
            raise RunFolderError("the folder holds no run", path=run_dir, hint="Give the folder of a run.")
        judging = _Judging(given.evaluators, llm, embeddings, given.judge_cache, given.max_cost)
        command = shlex.join(["graphrag-eval-lc", "score", str(run_dir)])
        try:
            settings = load_config(
                _config_again(earlier) if config is None else config,
                has_llm=llm is not None,
                has_embeddings=embeddings is not None,
            )
        except ConfigError as problem:
            if config is None and not given.drop_missing:  # it may name the metric of a plugin that is missing
                refuse_missing(missing_functions(earlier, folder.path, judging.evaluators), folder.path, _DROP, command)
            if config is None and problem.key == "repeats.metric":
                problem.path = folder.path / RUN_FILE
                problem.hint = "Give the plugin that registers it, or a configuration that names another."
            raise
        if given.measures is not None:
            settings = with_measures(settings, given.measures)
        gone = missing_scorers(
            earlier, folder.path, settings, evaluators=judging.evaluators, llm=llm, embeddings=embeddings
        )
        if not given.drop_missing:
            refuse_missing(gone, folder.path, _DROP, command)
        source = _dataset_of(earlier, folder) if given.dataset is None else given.dataset
        templates = templates_of(source)
        questions = Selection().apply(templates)
        journal = stack.enter_context(folder.journal())
        is_recorded = "agent" not in earlier
        selected = earlier.get("questions") or {}
        if not is_recorded:
            questions = [each for each in questions if str(each[1]["id"]) in selected]
        samples = recorded_samples(questions, _answered(journal), only_answered=not is_recorded)
        unasked = 0 if is_recorded else len(questions) * (earlier.get("repeats") or 1) - len(samples)
        run, scorers = _scored(
            samples, lambda key: cast("Response | None", journal.read(key)), templates, settings, judging, folder
        )
        now = RunManifest.begin(source, templates, [question for _, question in questions], settings)
        missing = [key for key in selected if key not in now.questions]
        run.warnings = [
            *journal.set_aside,
            *run.warnings,
            *dropped_warning(gone),
            *plugin_warnings(earlier, scorers),
            *judging_warnings(earlier, run.judges, dropped=gone),
            *_warnings(changed_questions(earlier, now.as_dict()), missing),
        ]
        if unasked > 0 and "stopped" not in earlier:  # it was killed, and could not say so
            text = f"{unasked:,} of {len(samples) + unasked:,} were not asked yet, and are not counted"
            run.warnings = [*run.warnings, text]
        folder.write_run(
            {
                **{key: value for key, value in earlier.items() if key not in ("judges", "plugins")},
                "dataset": now.described["dataset"],
                "config": config_record(settings),
                "scored": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "totals": run.aggregates["totals"],
                **scorers,
                **_told(run),
            }
        )
    run.stopped = run.stopped or earlier.get("stopped")
    return run


def _answered(journal: Journal) -> Iterator[Key]:
    """Yield the keys of a journal without those whose response gave way to another text of the question."""
    known = journal.keys()
    for key in known:
        summary = journal.summary(key)
        is_cut_off = summary is not None and summary.is_interrupted
        if not is_cut_off or not (journal.read(key) or {}).get("superseded"):
            yield key


def _config_again(earlier: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the config of a run.json without its plugins, as a folder is no reason to import what it names.

    A masked key is left out only where OPENAI_API_KEY would reach OpenAI itself; with any other endpoint it stays
    masked, and whoever asks a model is told to give the config.
    """
    config = earlier.get("config")
    if config:
        config = {key: value for key, value in config.items() if key != "plugins"}
    sections = (config or {}).get("llm") or {}
    kept = {
        name: without_masked(section)
        if isinstance(section, Mapping) and section.get("provider") == "openai" and not section.get("base_url")
        else section
        for name, section in sections.items()
    }
    return {**config, "llm": kept} if config and sections else config


def _dataset_of(earlier: Mapping[str, Any], folder: RunFolder) -> str:
    path = (earlier.get("dataset") or {}).get("path")
    if path is None:
        raise RunFolderError(
            "run.json names no file of the dataset, as it was made in Python",
            path=folder.path,
            hint="Give it: --dataset FILE (dataset=...).",
        )
    if not Path(path).exists():
        raise RunFolderError(
            f"the dataset {path} of this run is not there, seen from the current folder",
            path=folder.path,
            hint="Go to the folder where the run was started, or give it: --dataset FILE (dataset=...).",
        )
    return str(path)


def _warnings(changed: Iterable[str], missing: Sequence[str]) -> Iterable[str]:
    texts = sorted(changed)
    if texts:
        yield f"{counted(len(texts), 'question')} with another text than was asked: {listed(texts)}"
    if missing:
        yield f"{counted(len(missing), 'question')} of the run no longer in the dataset: {listed(missing)}"


@dataclass(frozen=True, slots=True)
class _Judging:
    """Who judges, and what that may cost."""

    evaluators: Sequence[Callable[..., Any]]
    llm: Any
    embeddings: Any
    is_cached: bool
    max_cost: float | None

    def check(self, config: EvaluationConfig) -> None:
        """Raise what would keep the judges from being made."""
        with ExitStack() as stack:
            self.judges(config, Pricing(), None, stack)

    def judges(
        self, config: EvaluationConfig, pricing: Pricing, folder: RunFolder | None, stack: ExitStack
    ) -> "Judges | None":
        is_asked = config.llm is not None or self.llm is not None
        cache = stack.enter_context(folder.judge_cache()) if folder and is_asked and self.is_cached else None
        return judges_of(
            config,
            evaluators=self.evaluators,
            llm=self.llm,
            embeddings=self.embeddings,
            cache=cache,
            pricing=pricing,
        )


def _scored(
    samples: Sequence[Sample],
    response_to: Callable[[Key], Response | None],
    templates: Sequence[Template],
    config: EvaluationConfig,
    judging: _Judging,
    folder: RunFolder | None = None,
) -> tuple[BenchmarkRun, dict[str, Any]]:
    """Score samples, and write what is new into the folder; give the run and what scored it (``scored_with``)."""
    pricing = Pricing(config.prices)
    budget = Budget(None, None, judging.max_cost, unpriced=pricing.unpriced)
    kept: list[Response] = []

    def response_of(sample: Sample) -> Response | None:
        response = response_to(sample.key)
        if folder is None and response is not None:
            kept.append(response)
        return response

    with ExitStack() as stack:
        judges = judging.judges(config, pricing, folder, stack)
        pipeline = Pipeline(
            config,
            templates,
            repeats=max((sample.repeat for sample in samples), default=1),
            pricing=pricing,
            judges=judges,
            file=None if folder is None else stack.enter_context(folder.results()),
        )
        unjudged = pipeline.add_all(samples, response_of, budget)
        aggregates = pipeline.finish()
    stopped = None
    if unjudged:
        message = f"{budget.message}; {counted(unjudged, 'sample was', 'samples were')} not judged"
        stopped = {"reason": "max_cost", "message": message, "left_out": 0}
    if folder is not None:
        folder.write_aggregates(aggregates)
    run = BenchmarkRun(
        aggregates,
        output_dir=None if folder is None else folder.path,
        responses=kept if folder is None else None,
        results=pipeline.kept() if folder is None else None,
        stopped=stopped,
        warnings=pipeline.warnings(wants_costs=judging.max_cost is not None),
        judges=None if judges is None else judges.describe(),
    )
    questions = ((sample.template, sample.question) for sample in samples)
    return run, scored_with(questions, config, judging.evaluators, judges)


def _told(run: BenchmarkRun) -> dict[str, Any]:
    """Return what run.json says of the judges."""
    return {} if run.judges is None else {"judges": dict(run.judges)}


def _refuse_own_folder(responses: object, output_dir: str | PathLike[str] | None) -> None:
    """Keep a run from being replaced by the scores of its own responses: what it says of its agent would be lost."""
    if output_dir is None or not isinstance(responses, str | PathLike):
        return
    if Path(responses).resolve().parent == Path(output_dir).resolve():
        raise RunFolderError(
            "the responses lie in the folder itself",
            path=output_dir,
            hint=f"Score the run in place: graphrag-eval-lc score {output_dir} (score_run).",
        )
