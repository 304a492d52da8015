"""``merge_runs`` combines the parts of a run, such as shards, into one run; ``plan_merge`` only returns the outcome."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, Final, cast

from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.benchmark.earlier_run import (
    config_again,
    dataset_of,
    missing_functions,
    plugin_warnings,
    recorded_config,
    register_recorded,
)
from graphrag_eval_lc.benchmark.merge_parts import Answers, Part, open_parts, refuse_unrelated
from graphrag_eval_lc.benchmark.run_manifest import KEPT, dataset_record, new_run_id, text_digest
from graphrag_eval_lc.compare import read_gates
from graphrag_eval_lc.compare.gates import Gates
from graphrag_eval_lc.config import EvaluationConfig, load_config
from graphrag_eval_lc.dataset.loading import DatasetSource, questions_of, read_dataset, response_key
from graphrag_eval_lc.errors import ConfigError, RunFolderError
from graphrag_eval_lc.evaluation.pipeline import Pipeline
from graphrag_eval_lc.evaluation.samples import MOST_REPEATS, Sample, Shard, samples_of, shard_number
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.judges.cache import merged_lines
from graphrag_eval_lc.judges.custom_functions import has_registered_functions
from graphrag_eval_lc.prices import Pricing
from graphrag_eval_lc.records import Response, Result, Template
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC
from graphrag_eval_lc.registry.plugins import registered_only_here
from graphrag_eval_lc.run_folder import RESPONSES_FILE, RESULTS_FILE, ResultsFile, RunFolder, iter_results, read_run
from graphrag_eval_lc.run_folder.folder import JUDGE_CACHE_FILE
from graphrag_eval_lc.texts import counted, listed, plural

Runs = Sequence[str | PathLike[str]]
MISSING: Final = "missing"
"""The reason of a merged run that is not complete."""
NOT_SCORED: Final = "not scored"
"""The reason of a merged run whose responses are still to be scored."""
_MOST_CONFLICTS = 5
_MOST_NAMED = 20
# Keys of run.json that are about one part or its scoring; the merge writes new ones.
_OF_PART = ("format_version", "run_id", "label", "href", "tags", "shard", "merged", "selection", "times", "stopped")
_AT_END = ("totals", "questions", "judges", "scored", "scored_selection")


@dataclass(frozen=True, slots=True)
class MergePlan:
    """The outcome that a merge would have.

    Attributes:
        runs: How many folders are merged.
        samples: How many samples the whole run has.
        answered: How many of them are answered.
        errors: How many of those failed.
        missing: What is missing, in one sentence; empty if nothing is.
        warnings: What the user should know.
    """

    runs: int
    samples: int
    answered: int
    errors: int
    missing: str
    warnings: tuple[str, ...] = ()


def merge_runs(
    runs: Runs,
    *,
    output_dir: str | PathLike[str],
    dataset: DatasetSource | None = None,
    label: str | None = None,
    gates: Gates = None,
    overwrite: bool = False,
    force: bool = False,
    open_files: bool = False,
) -> BenchmarkRun:
    """Merge the parts of one run, such as its shards, into a run that you resume, score and compare like any other.

    All parts must have the same dataset, agent, capture, config, repeats and limits. Shards must also have the same
    selection; other runs may have different questions of the dataset. Failed attempts, costs, sessions and the judges'
    answers are kept, and the parts stay unchanged. Results are copied. If a killed part left responses unscored, they
    are scored now, unless scoring needs a model or your own functions: then call ``score_run``.

    Args:
        runs: The folders of the parts, in any order; a merged one may be among them.
        output_dir: The folder of the merged run.
        dataset: A path, or the templates; None for the path in run.json.
        label: The run's label; None for that of the parts, if all have the same.
        gates: Gates in addition to those of the config, such as ``["steps_score=0.9"]``.
        overwrite: Replace an earlier run in the folder.
        force: Merge parts even if agent, capture or limits differ; run.json then has those of the first part. If one
            sample has two answers, keep the one that succeeded, or the first.
        open_files: Whether the umask decides who may read new files; otherwise only their owner may.

    Returns:
        The run. If it is not complete, ``stopped`` says what is missing, with the reason ``missing``; if its
            responses are still to be scored, the reason is ``not scored``.

    Raises:
        OptionError: No folder is given.
        RunFolderError: A folder holds no run of an agent or is in use, the runs do not belong together, one sample has
            two different answers, or the output folder holds a run or cannot be written.
        DatasetError: The dataset cannot be read or breaks the format.

    Example:
        >>> run = merge_runs(["runs/night-1-of-2", "runs/night-2-of-2"], output_dir="runs/night")  # doctest: +SKIP
    """
    given = list(read_gates(gates))
    with _merge(runs, output_dir, dataset, force=force) as merge:
        folder = RunFolder(output_dir, is_private=not open_files)
        with folder.lock():
            if overwrite:
                if not force and "merged" in (read_run(folder.shown) or {}):
                    merge.refuse_to_lose(folder)
                folder.clear()
            folder.refuse_earlier()
            return merge.write(folder, label, given)


def plan_merge(
    runs: Runs, *, output_dir: str | PathLike[str], dataset: DatasetSource | None = None, force: bool = False
) -> MergePlan:
    """Return what ``merge_runs`` would return with the same arguments; nothing is written.

    Raises:
        GraphRAGEvalError: What ``merge_runs`` would raise before it writes.
    """
    with _merge(runs, output_dir, dataset, force=force) as merge:
        keys = [sample.key for sample in merge.samples if merge.answers.is_answered(sample.key)]
        errors = sum((summary := merge.answers.summary(key)) is not None and summary.is_error for key in keys)
        missing = (merge.stopped or {}).get("message", "")
        return MergePlan(len(merge.parts), len(merge.samples), len(keys), errors, missing, tuple(merge.warnings))


@contextmanager
def _merge(
    runs: Runs, output_dir: str | PathLike[str], given: DatasetSource | None, *, force: bool
) -> Iterator["_Merge"]:
    """Yield the checked parts, locked during the context."""
    with ExitStack() as stack:
        parts, left_out = open_parts(runs, stack)
        if Path(output_dir).resolve() in (part.path.resolve() for part in parts):
            hint = "Give another folder: the parts stay as they are."
            raise RunFolderError("the folder is one of those that are merged", path=output_dir, hint=hint)
        accepted, first = refuse_unrelated(parts, force=force), parts[0]
        source = dataset_of(first.record, first.path) if given is None else given
        loaded = read_dataset(source)
        if dataset_record(source, loaded.templates)["sha256"] != (first.record.get("dataset") or {}).get("sha256"):
            what = "the dataset is not the one of these runs any more" if given is None else "this is not their dataset"
            hint = "Give it as it was: --dataset FILE (dataset=…); or score each part with the new one first, and "
            path = str(source) if isinstance(source, str | PathLike) else first.path
            raise RunFolderError(what, path=path, hint=f"{hint}merge then.")
        repeats = min(first.record.get("repeats") or 1, MOST_REPEATS)
        digests = _merged_questions(parts, loaded.templates)
        samples = samples_of(
            [pair for pair in questions_of(loaded.templates) if str(pair[1]["id"]) in digests], repeats
        )
        if not samples:
            what = "run.json names no question that the dataset has"
            raise RunFolderError(what, path=first.path, hint="Put its questions back, or leave this run out.")
        texts = {str(each["id"]): each["question_text"] for _, each in questions_of(loaded.templates)}
        answers = Answers({part.path / RESPONSES_FILE: _asked_texts(part, texts) for part in parts})
        warnings = [*left_out, *loaded.notes, *accepted, *_difference_warnings(parts)]
        merge = _Merge(parts, loaded.templates, digests, samples, answers, repeats, warnings)
        merge.check_lines_and_conflicts(force=force)
        yield merge


def _asked_texts(part: Part, texts: Mapping[str, str]) -> dict[str, str]:
    """Return the texts that a part asked unchanged, by question id; for corrected questions, any answer counts."""
    asked = part.record.get("questions") or {}
    return {key: text for key, text in texts.items() if asked.get(key) == text_digest(text)}


def _difference_warnings(parts: Sequence[Part]) -> Iterator[str]:
    """Yield warnings about different code or packages of the parts, which may change answers."""
    known = ((part.record.get("git") or {}).get("commit") for part in parts)
    commits = list(dict.fromkeys(str(commit)[:12] for commit in known if commit is not None))
    if len(commits) > 1:
        yield f"the parts were asked at {counted(len(commits), 'commit')}: {listed(commits)}"
    all_versions = [part.record.get("versions") or {} for part in parts]
    for package in dict.fromkeys(chain.from_iterable(all_versions)):
        versions = dict.fromkeys(str(each.get(package)) for each in all_versions)
        if len(versions) > 1:
            yield f"the parts were asked with {package} {listed(list(versions))}"
    yield from dict.fromkeys(text for part in parts[1:] for text in plugin_warnings(parts[0].record, part.record))


@dataclass(slots=True)
class _Merge:
    """Parts of one run, read and checked."""

    parts: Sequence[Part]
    templates: Sequence[Template]
    questions: Mapping[str, Any]
    samples: Sequence[Sample]
    answers: Answers
    repeats: int
    warnings: list[str]

    def check_lines_and_conflicts(self, *, force: bool) -> None:
        """Refuse two answers to one sample, or warn of them; warn of lines that hold no response."""
        conflicts = sorted(self.answers.conflicts.items())
        if conflicts and not force:
            paths = [part.path for part in self.parts]
            named = [f"{_name(key)} in {paths[one]} and {paths[other]}" for key, (one, other) in conflicts]
            samples = f"{counted(len(named), 'sample')} {plural(len(named), 'has', 'have')} two different answers"
            raise RunFolderError(
                f"{samples}: {listed(named, _MOST_CONFLICTS)}",
                hint="Leave out the run that does not count; or --force (force=True) keeps the answer that succeeded, "
                "or the first.",
            )
        if conflicts:
            ids = [key[0] for key, _ in conflicts]
            kept = f"{counted(len(ids), 'sample')} with two different answers, of which one was kept"
            self.warnings.append(f"{kept}: {listed(ids)}")
        self.warnings += chain.from_iterable(journal.unreadable for journal in self.answers.journals)

    def refuse_to_lose(self, folder: RunFolder) -> None:
        """Refuse to replace a merged run that was resumed: no part has its new answers, and they are paid for."""
        existing = Answers({folder.path / RESPONSES_FILE: {}})
        keys = [sample.key for sample in self.samples if existing.is_answered(sample.key)]
        lost = [key[0] for key in keys if not self.answers.is_answered(key)]
        if lost:
            what = f"the folder has {counted(len(lost), 'answer')} that no part has: {listed(lost)}"
            hint = "Give it as a part too, with another folder as the output; or --force (force=True) to replace it."
            raise RunFolderError(what, path=folder.shown, hint=hint)

    def write(self, folder: RunFolder, label: str | None, gates: list[Any]) -> BenchmarkRun:
        """Write the merged run, with run.json after the responses, so that a half-written merge cannot be resumed."""
        stopped = self.stopped
        folder.write_responses(self.answers)
        own = folder.path / JUDGE_CACHE_FILE
        ids = [str(origin.get("run_id")) for part in self.parts for origin in part.origins]
        caches = [own, *(part.path / JUDGE_CACHE_FILE for part in self.parts)]
        folder.write_judge_cache(merged_lines(caches, share_lines=own.exists() or len(set(ids)) < len(ids)))
        record = _merged_record(self.parts, self.templates, self.questions, label=label, stopped=stopped)
        folder.write_run(record)
        config = recorded_config(self.parts[0].record)
        unscored, aggregates = self._score(folder, config)
        if unscored:
            stopped = self._not_scored(folder.shown, unscored)
        else:
            folder.write_aggregates(aggregates)
            folder.write_run({**record, "totals": aggregates["totals"]})
        answered = sum(self.answers.is_answered(sample.key) for sample in self.samples)
        samples = counted(len(self.samples), "question" if self.repeats == 1 else "sample")
        return BenchmarkRun(
            aggregates,
            output_dir=folder.shown,
            results=[] if unscored else None,
            stopped=stopped,
            warnings=self.warnings,
            judges=record.get("judges") or None,
            notes=[f"merged of {counted(len(self.parts), 'run')}: {answered:,} of {samples} answered"],
            gates=[*config.gates, *gates],
        )

    # --- what is missing ---

    @property
    def stopped(self) -> dict[str, Any] | None:
        """Why the run is not complete, as ``BenchmarkRun.stopped`` says it; None if it is."""
        keys = [sample.key for sample in self.samples if not self.answers.is_answered(sample.key)]
        if not keys:
            return None
        known = {shard for part in self.parts for shard in part.shards}
        of = next((shard.of for shard in known), None)
        number = len(keys)
        sentence = f"{counted(number, 'sample')} of {len(self.samples):,} {plural(number, 'is', 'are')} not answered"
        if of is None:
            texts = [listed([_name(key) for key in keys])]
        else:
            sizes = Counter(Shard(shard_number(key, of), of) for key in keys)
            absent = [str(shard) for shard in sorted(sizes, key=lambda shard: shard.number) if shard not in known]
            begun = [f"{shard} ({sizes[shard]:,} left)" for shard in sizes if shard in known]
            texts = []
            if absent:
                are = plural(len(absent), "is", "are")
                texts.append(f"{plural(len(absent), 'shard')} {listed(absent, _MOST_NAMED)} {are} missing")
            if begun:
                texts.append(f"{plural(len(begun), 'shard')} {listed(begun, _MOST_NAMED)} did not finish")
        why = {
            str(found.get("message")): part.path
            for part in self.parts
            if isinstance(found := part.record.get("stopped"), dict)
        }
        reasons = "".join(f"; {path} was stopped: {message}" for message, path in list(why.items())[:3])
        return {"reason": MISSING, "message": f"{sentence}: {', and '.join(texts)}{reasons}", "left_out": number}

    def _not_scored(self, folder: Path, number: int) -> dict[str, Any]:
        missing = self.stopped
        lacking = "" if missing is None else f"; and {missing['message']}"
        responses = f"{counted(number, 'response')} {plural(number, 'was', 'were')}"
        message = (
            f"{responses} not scored by the parts, and your models or functions score this run: graphrag-eval-lc "
            f"score {folder} does it, and asks again for nothing that is known"
        )
        left_out = 0 if missing is None else missing["left_out"]
        return {"reason": NOT_SCORED, "message": f"{message}{lacking}", "left_out": left_out}

    # --- results ---

    def _score(self, folder: RunFolder, recorded: EvaluationConfig) -> tuple[int, dict[str, Any]]:
        """Take over the parts' results and score the rest, unless that needs a model or a user's function.

        Returns the number of unscored responses and the aggregates.
        """
        config = self._config_to_score(recorded)
        with registered_only_here(), folder.results() as results:
            for part in self.parts:
                register_recorded(part.record)
            pipeline = self._pipeline(config or recorded, results)
            lacking = {sample.key: sample for sample in self.samples if self.answers.summary(sample.key)}
            for number, part in enumerate(self.parts):
                is_scored = "totals" in part.record and not part.record.get("scored_selection")
                path = part.path / RESULTS_FILE
                for result in iter_results(path) if is_scored and path.is_file() else ():
                    key = response_key(result)
                    if key in lacking and self.answers.journal_of(key) == number:
                        pipeline.keep(lacking.pop(key), cast("Result", result))
            if lacking and config is None:
                results.discard()
                return len(lacking), self._pipeline(recorded, None).finish()
            for sample in lacking.values():
                pipeline.add(sample, cast("Response | None", self.answers.read(sample.key)))
            aggregates = pipeline.finish()
            has_budget = (self.parts[0].record.get("limits") or {}).get("max_cost") is not None
            self.warnings += pipeline.warnings(wants_costs=has_budget)
            return 0, aggregates

    def _pipeline(self, config: EvaluationConfig, results: ResultsFile | None) -> Pipeline:
        return Pipeline(config, self.templates, repeats=self.repeats, pricing=Pricing(config.prices), file=results)

    def _config_to_score(self, recorded: EvaluationConfig) -> EvaluationConfig | None:
        """Return the configuration for scoring responses here exactly as in a part; None if that is impossible."""
        is_judged = any(part.record.get("judges") or part.record.get("evaluators") for part in self.parts)
        if recorded.llm is not None or has_registered_functions() or is_judged:
            return None
        if any(missing_functions(part.record) for part in self.parts):
            return None
        try:
            return load_config(config_again(self.parts[0].record))
        except ConfigError:  # it names something that a plugin of the parts declares
            return None


def _name(key: tuple[str, int]) -> str:
    return key[0] if key[1] == 1 else f"{key[0]} (repeat {key[1]})"


# --- run.json --------------------------------------------------------------------------------------------------------


def _merged_record(
    parts: Sequence[Part],
    templates: Sequence[Template],
    questions: Mapping[str, Any],
    *,
    label: str | None = None,
    stopped: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the run.json of a merged run, without ``totals``."""
    records, first = [part.record for part in parts], parts[0].record
    shared = {
        key: first.get(key) for key in ("label", "href") if all(each.get(key) == first.get(key) for each in records)
    }
    tags = list(dict.fromkeys(tag for record in records for tag in (record.get("tags") or [])))
    selections = [record.get("selection") or {} for record in records]
    if any(each != selections[0] for each in selections):
        is_whole = len(questions) == sum(1 for _ in questions_of(templates))
        selections[0] = {} if is_whole else {"question_ids": list(questions)}
    described = {
        **shared,
        **({} if label is None else {"label": label}),
        "tags": tags,
        "merged": list({str(each.get("run_id")): each for part in parts for each in part.origins}.values()),
        "dataset": first.get("dataset"),
        "selection": selections[0],
        **{key: value for key, value in first.items() if key not in (*_OF_PART, *_AT_END)},
        KEPT: [each for record in records for each in (record.get(KEPT) or [])],
        "times": _times(parts),
        "stopped": dict(stopped or {}),
        "judges": next((record["judges"] for record in reversed(records) if "judges" in record), None),
    }
    known = {key: value for key, value in described.items() if value not in (None, [], {})}
    scorers = {key: _scorers(records, key) for key in ("matchers", "evaluators", "plugins") if key in first}
    return {"run_id": new_run_id(datetime.now(UTC)), **known, **scorers, "questions": questions}


def _merged_questions(parts: Sequence[Part], templates: Sequence[Template]) -> dict[str, Any]:
    """Return the digests of the questions that any part selects, by their ids, in the dataset's order."""
    known: dict[str, Any] = {}
    for part in parts:
        known.update(part.record.get("questions") or {})
    ids = (str(question["id"]) for _, question in questions_of(templates))
    return {each: known[each] for each in ids if each in known}


def _scorers(records: Sequence[Mapping[str, Any]], key: str) -> list[Any]:
    """Return the matchers, evaluators or plugins of all parts, with the metrics that an evaluator returned in any."""
    known: dict[str, Any] = {}
    for each in (each for record in records for each in (record.get(key) or [])):
        name = json_text([each.get("name"), each.get("media_type"), each.get("sha256")])
        before = known.get(name, {})
        metrics = list(dict.fromkeys((*(before.get("metrics") or []), *(each.get("metrics") or []))))
        known[name] = {**before, **each, **({"metrics": metrics} if "metrics" in {**before, **each} else {})}
    return list(known.values())


def _times(parts: Sequence[Part]) -> dict[str, Any]:
    """Return ``times`` for the merged run: the sessions of all parts by start, and the sum of their seconds."""
    unique = {json_text(each): each for part in parts for each in _sessions(part, parts[0].record)}
    ordered = sorted(unique.values(), key=lambda session: str(session.get("started")))
    finished = [str(each["finished"]) for each in ordered if "finished" in each]
    seconds = [each.get(ELAPSED_SEC) for each in ordered]
    spent = round(sum(each for each in seconds if isinstance(each, int | float)), 3)
    ended = {"finished": max(finished), ELAPSED_SEC: spent} if finished else {}
    return {"started": ordered[0].get("started") if ordered else None, **ended, "sessions": ordered}


def _sessions(part: Part, first: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the sessions of a part with its shard, and with its commit and capture if they differ from ``first``."""
    record = part.record
    own: dict[str, Any] = {} if part.shard is None else {"shard": str(part.shard)}
    own |= {key: record[key] for key in ("git", "capture") if key in record and record[key] != first.get(key)}
    for session in (record.get("times") or {}).get("sessions") or []:
        yield {**own, **session}
