"""Reads the results of the runs in a comparison, and pairs their questions."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from graphrag_eval_lc.aggregation import QuestionValues, RunValues
from graphrag_eval_lc.aggregation.sample_values import Metrics
from graphrag_eval_lc.compare.metric_comparison import FEWEST_FOR_A_VERDICT, Pair
from graphrag_eval_lc.config import ConfigSource, EvaluationConfig, RepeatsConfig, load_config
from graphrag_eval_lc.errors import ComparisonError, RunFolderError
from graphrag_eval_lc.metrics.intervals import FEWEST_CLUSTERS
from graphrag_eval_lc.registry import metric_spec
from graphrag_eval_lc.registry.custom_metrics import note_recorded
from graphrag_eval_lc.registry.metrics import BUILT_IN, MAIN_METRIC, UPPER_BOUNDS, is_built_in
from graphrag_eval_lc.run_folder import RESULTS_FILE, iter_results, read_run
from graphrag_eval_lc.run_folder.journal import wrong_steps
from graphrag_eval_lc.texts import counted

# The sections of a configuration that decide which metrics results have, and how these are read.
_OF_METRICS = ("steps", "custom_evaluations", "retrieval")


def run_names(runs: Iterable[tuple[object, Path | None]]) -> list[str]:
    """Return the names of runs, each given by its label and folder; runs with the same name are named by their folders.

    Without a label, the folder's name is taken. Folders with the same name are named by their paths.

    Example:
        >>> run_names([("demo", Path("runs/monday")), ("demo", Path("runs/today")), ("first", Path("runs/first"))])
        ['monday', 'today', 'first']
    """
    known = [(str(label or ""), path, path.resolve().name if path else "") for label, path in runs]
    names = [label or folder for label, _, folder in known]
    for instead in ([folder for *_, folder in known], ["" if path is None else str(path) for _, path, _ in known]):
        paths: dict[str, set[Path | None]] = {}
        for name, (_, path, _) in zip(names, known, strict=True):
            paths.setdefault(name, set()).add(path)
        names = [(len(paths[name]) > 1 and other) or name for name, other in zip(names, instead, strict=True)]
    return names


class HasResults(Protocol):
    """A run that yields its results one at a time, such as a BenchmarkRun."""

    def iter_results(self) -> Iterator[Any]:
        """Yield the results, from the first each time."""


RunSource = str | PathLike[str] | HasResults | Iterable[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class RunResults:
    """The results of a run, which can be read several times; its folder and run.json, if there are any."""

    path: Path | None
    record: Mapping[str, Any]
    _read: Callable[[], Iterable[Mapping[str, Any]]] = field(repr=False)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """Yield the results.

        Raises:
            ComparisonError: One of them is not the result of a question.
            RunFolderError: The file of results cannot be read.
        """
        for result in self._read():
            if not isinstance(result, Mapping) or result.get("question_id") is None:
                raise self._problem("a result without question_id")
            if self.path is None and (key := wrong_steps(result)):  # results in a file are checked when they are read
                raise self._problem("a result with steps of the wrong type", str(result["question_id"]), key)
            yield result

    def _problem(self, what: str, question_id: str | None = None, key: str | None = None) -> ComparisonError:
        path, hint = self.path and self.path / RESULTS_FILE, "Give results as run_evaluation makes them, or a folder."
        return ComparisonError(what, path=path, question_id=question_id, key=key, hint=hint)

    def declarations(self) -> dict[str, Mapping[str, Any]]:
        """Return the declarations of plugins' metrics in run.json, by metric."""
        declared = ((each.get("name"), each.get("declares")) for each in self.mappings_in("evaluators") or ())
        return {key: each for key, each in declared if isinstance(key, str) and isinstance(each, Mapping)}

    def section(self, name: str) -> Mapping[str, Any] | None:
        """Return a section of run.json; None if it has none."""
        section = self.record.get(name)
        return section if isinstance(section, Mapping) else None

    def mappings_in(self, name: str) -> list[Mapping[str, Any]] | None:
        """Return the mappings in a list of run.json; None if it has no such list."""
        listed = self.record.get(name)
        return [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else None

    def config(self) -> EvaluationConfig:
        """Return the parts of the run's configuration on which metrics its results have, and when a sample passes.

        Raises:
            ConfigError: The configuration in run.json cannot be read.
        """
        known = self.section("config") or {}
        sections = {key: known[key] for key in _OF_METRICS if known.get(key) is not None}
        if isinstance(steps := sections.get("steps"), Mapping):
            # Step kinds are not needed here, and the plugin that registers one may not be loaded.
            sections["steps"] = {key: value for key, value in steps.items() if key != "kinds"}
        config = load_config(sections, has_llm=True, has_embeddings=True)
        if (repeats := known.get("repeats")) is None:
            return config
        # The section repeats says which samples pass; the plugin that declares its score may not be loaded.
        return config.model_copy(update={"repeats": RepeatsConfig.model_validate(repeats)})

    def numbers(self, metrics: Iterable[str] = (), *, only: bool = False) -> RunValues:
        """Return the questions' values in the configuration's metrics and in ``metrics``; with ``only``, in these."""
        numbers = RunValues(Metrics(self.config(), metrics, only=only))
        for result in self:
            numbers.add(result)
        return numbers


def run_results(source: RunSource, config: ConfigSource = None) -> RunResults:
    """Return the results of a run; ``config`` is the configuration of results without a folder.

    Metrics that run.json declares are registered until the surrounding ``recorded_only_here`` block ends, so that they
    are compared and shown correctly even if their plugin is not installed.

    Raises:
        ConfigError: The configuration cannot be used.
        RunFolderError: The folder holds no results, or its run.json cannot be read.
        ComparisonError: The source is not a folder, a run or results.
    """
    results = _results_of(source, config)
    note_recorded(results.declarations().items())
    return results


def _results_of(source: RunSource, config: ConfigSource) -> RunResults:
    if isinstance(source, str | PathLike):
        folder, results = Path(source), Path(source) / RESULTS_FILE
        if not folder.is_dir():
            what = "this is a file, not the folder of a run" if folder.exists() else "the folder does not exist"
            raise RunFolderError(what, path=folder, hint="Give the folder that run, score or demo wrote.")
        if not results.is_file():
            hint = "Give the folder of a run; one that was killed is scored by: graphrag-eval-lc score RUN_DIR."
            raise RunFolderError(f"the folder holds no {RESULTS_FILE}", path=folder, hint=hint)
        return RunResults(folder, read_run(folder) or {}, partial(iter_results, results))
    record: dict[str, Any] = {}
    if config is not None:  # in the form of run.json, with the sections that are needed here
        known = load_config(config, has_llm=True, has_embeddings=True)
        record = {"config": known.model_dump(include={*_OF_METRICS, "repeats", "gates"})}
    if hasattr(source, "iter_results"):
        if (output_dir := getattr(source, "output_dir", None)) is None:
            return RunResults(None, record, source.iter_results)
        return RunResults(Path(output_dir), read_run(Path(output_dir)) or {}, source.iter_results)
    given = getattr(source, "results", source)
    if isinstance(given, bytes | Mapping) or not isinstance(given, Iterable):
        hint = "Give the folder of a run, a BenchmarkRun, or a list of results."
        raise ComparisonError(f"a run cannot be read from {type(source).__name__}", hint=hint)
    return RunResults(None, record, partial(iter, list(given)))


@dataclass(frozen=True, slots=True)
class NamedRun:
    """A run in a comparison: its name there, its results, and the values of its questions."""

    letter: str
    results: RunResults
    numbers: RunValues


@dataclass(frozen=True, slots=True)
class Pairing:
    """Two runs, the baseline first, and the ids of the questions that both have, in A's order."""

    a: NamedRun
    b: NamedRun
    common: Sequence[str]

    @classmethod
    def of(cls, a: NamedRun, b: NamedRun) -> "Pairing":
        """Return the common questions of two runs."""
        return cls(a, b, [identifier for identifier in a.numbers.questions if identifier in b.numbers.questions])

    def questions(self) -> Iterable[tuple[QuestionValues, QuestionValues]]:
        """Yield each common question in both runs."""
        return ((self.a.numbers.questions[each], self.b.numbers.questions[each]) for each in self.common)

    def template_ids(self) -> dict[str, str]:
        """Return the templates of the common questions by question id, as A has them."""
        return {a.question_id: a.template_id for a, _ in self.questions()}

    def metrics(self) -> list[str]:
        """Return the metrics that are compared by default: scores, the main one first, then what was spent.

        The upper bound of a score is compared only if it is named.
        """
        known = [metric for metric in self._in_both() if metric not in UPPER_BOUNDS]
        scores = [metric for metric in known if not metric_spec(metric).is_spent]
        # The judges' costs do not depend on the agent, so they are compared only if they are named.
        built_in = [spec.key for spec in BUILT_IN if spec.spent_by == "agent" and spec.key in known]
        own = {metric: metric_spec(metric) for metric in known if not is_built_in(metric)}
        of_users = [metric for metric, spec in own.items() if spec.is_spent and spec.spent_by != "judges"]
        return sorted(scores, key=lambda metric: metric != MAIN_METRIC) + built_in + of_users

    def can_compare(self, metric: str) -> bool:
        """Return whether both runs have a metric. A run in which all questions failed has each score of the other."""
        return metric in self._in_both()

    def values(self, metric: str) -> Mapping[str, Pair]:
        """Return a metric's values in A and in the other run by question id, for questions that have it in both."""
        return {identifier: (a, b) for identifier, a, b in self._sides(metric) if a is not None and b is not None}

    def left_out(self, metric: str) -> int:
        """Count the common questions that have a metric in exactly one of the runs."""
        return sum((a is None) is not (b is None) for _, a, b in self._sides(metric))

    def texts_that_differ(self) -> int:
        """Count the common questions whose texts are known and differ."""
        texts = ((a.text_digest, b.text_digest) for a, b in self.questions())
        return sum(None not in each and each[0] != each[1] for each in texts)

    def by_template(self, pairs: Mapping[str, Pair]) -> dict[str, list[Pair]]:
        """Group values by the questions' templates, as A has them."""
        groups: dict[str, list[Pair]] = {}
        for identifier, pair in pairs.items():
            groups.setdefault(self.a.numbers.questions[identifier].template_id, []).append(pair)
        return groups

    def _sides(self, metric: str) -> Iterable[tuple[str, float | None, float | None]]:
        """Yield the id of each common question with the values in A and in the other run."""
        is_spent = metric_spec(metric).is_spent
        for a, b in self.questions():
            if is_spent:
                yield a.question_id, a.mean(metric), b.mean(metric)
            else:
                score_a = a.score(metric, has_elsewhere=b.has(metric))
                yield a.question_id, score_a, b.score(metric, has_elsewhere=a.has(metric))

    def _in_both(self) -> list[str]:
        in_a, in_b = self.a.numbers.measured(), self.b.numbers.measured()
        known_a = {*in_a, *(in_b if _all_failed(self.a.numbers) else ())}
        known_b = {*in_b, *(in_a if _all_failed(self.b.numbers) else ())}
        known = [metric for metric in dict.fromkeys([*in_a, *in_b]) if metric in known_a & known_b]
        # If nothing is undecided, a score is its own upper bound.
        one_sided = [metric for metric in (known_a ^ known_b) & UPPER_BOUNDS.keys() if UPPER_BOUNDS[metric] in known]
        return [*known, *one_sided]

    def warnings(self) -> Iterable[str]:
        """Yield warnings about what makes the two runs hard to compare."""
        a, b = self.a, self.b
        only_a = len(a.numbers.questions) - len(self.common)
        only_b = len(b.numbers.questions) - len(self.common)
        digest_a, digest_b = ((run.results.section("dataset") or {}).get("sha256") for run in (a, b))
        if None not in (digest_a, digest_b) and digest_a != digest_b:
            yield (
                f"A and {b.letter} were scored on different datasets: the {_questions(len(self.common))} "
                f"compared; {only_a:,} of A and {only_b:,} of {b.letter} are left out."
            )
        elif only_a or only_b:
            yield (
                f"A and {b.letter} have {counted(len(self.common), 'question')} in common; {only_a:,} of A and "
                f"{only_b:,} of {b.letter} are left out."
            )
        changed = self.texts_that_differ()
        if changed:
            yield f"{_questions(changed)} with another text in {b.letter} than in A."
        moved = sum(a.template_id != b.template_id for a, b in self.questions())
        if moved:
            yield f"{_questions(moved)} of another template in {self.b.letter} than in A; A's templates are taken."
        number = len(set(self.template_ids().values()))
        if number == 1:
            yield (
                "All questions have one template, so each counts separately: intervals are too narrow and "
                "p-values too small if the questions resemble each other."
            )
        elif FEWEST_FOR_A_VERDICT <= number < FEWEST_CLUSTERS:  # with fewer, the view has a longer text
            fewest = f"with fewer than {FEWEST_CLUSTERS}, intervals and p-values are unreliable"
            yield f"There are {number} templates; {fewest}."


def _all_failed(numbers: RunValues) -> bool:
    return all(question.errors == question.samples for question in numbers.questions.values())


def _questions(count: int) -> str:
    return counted(count, "common question is", "common questions are")
