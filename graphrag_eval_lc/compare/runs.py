"""The runs of a comparison: where their results come from, and which of their questions pair."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from graphrag_eval_lc.aggregation import QuestionValues, RunValues
from graphrag_eval_lc.compare.metric_comparison import FEWEST_FOR_A_VERDICT, Pair
from graphrag_eval_lc.config import ConfigSource, EvaluationConfig, load_config
from graphrag_eval_lc.errors import ComparisonError, RunFolderError
from graphrag_eval_lc.registry import metric_spec
from graphrag_eval_lc.registry.custom_metrics import changed_since, note_recorded
from graphrag_eval_lc.registry.metrics import BUILT_IN, JUDGES, MAIN_METRIC, is_built_in
from graphrag_eval_lc.run_folder import RESULTS_FILE, iter_results, read_run
from graphrag_eval_lc.stats import FEWEST_CLUSTERS
from graphrag_eval_lc.texts import counted

# What a configuration says of the numbers in results.
_OF_NUMBERS = ("steps", "custom_evaluations", "retrieval")


# Where results have steps and what is said of them, and in how many lists within each other.
_STEPS = (("actual_steps", 1), ("reference_steps", 2), ("steps_diagnosis", 2))


class HasResults(Protocol):
    """A run that gives its results one at a time, such as a BenchmarkRun."""

    def iter_results(self) -> Iterator[Any]:
        """Return the results, each time from the first."""


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
        """Yield the results.

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
            hint="Give results as run_evaluation makes them, or the folder of a run.",
        )

    def declarations(self) -> dict[str, Mapping[str, Any]]:
        """Return what run.json tells of the metrics that plugins gave, by their keys."""
        evaluators = self.record.get("evaluators")
        records = [each for each in evaluators if isinstance(each, Mapping)] if isinstance(evaluators, list) else []
        told = ((each.get("name"), each.get("declares")) for each in records)
        return {key: each for key, each in told if isinstance(key, str) and isinstance(each, Mapping)}

    def config(self) -> EvaluationConfig:
        """Return the configuration of the run, as far as it says what the numbers of its results are.

        Raises:
            ConfigError: That in run.json cannot be read.
        """
        config = self.record.get("config")
        known = config if isinstance(config, Mapping) else {}
        return load_config(
            {key: known[key] for key in _OF_NUMBERS if known.get(key) is not None}, has_llm=True, has_embeddings=True
        )

    def numbers(self, metrics: Iterable[str] = ()) -> RunValues:
        """Return the numbers of the run's questions.

        Args:
            metrics: More metrics than the configuration tells: keys of the results.
        """
        numbers = RunValues(self.config(), metrics)
        for result in self:
            numbers.add(result)
        return numbers


def run_results(source: RunSource, config: ConfigSource = None) -> RunResults:
    """Return the results of a run.

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
            hint="Give the folder of a run, a BenchmarkRun, or a list of results.",
        )
    kept = list(results)
    return RunResults(None, _record_of(config), lambda: kept)


def _record_of(config: ConfigSource) -> dict[str, Any]:
    """Return what run.json would say of a configuration, as far as it is of use here."""
    if config is None:
        return {}
    known = load_config(config, has_llm=True, has_embeddings=True)
    return {"config": known.model_dump(include=set(_OF_NUMBERS))}


def _of_folder(folder: Path) -> RunResults:
    results = folder / RESULTS_FILE
    if not folder.is_dir():
        what = "this is a file, not the folder of a run" if folder.exists() else "there is no such folder"
        raise RunFolderError(what, path=folder, hint="Give the folder that run, score or demo wrote.")
    if not results.is_file():
        raise RunFolderError(
            f"the folder holds no {RESULTS_FILE}",
            path=folder,
            hint="Give the folder of a run; one that was killed is scored by: graphrag-eval-lc score RUN_DIR.",
        )
    return RunResults(folder, _record_in(folder), lambda: iter_results(results))


def _record_in(folder: Path) -> Mapping[str, Any]:
    try:
        return read_run(folder) or {}
    except RunFolderError as problem:
        if "--overwrite" not in (problem.hint or ""):
            raise
        # That is for whoever writes into the folder; here it is only read.
        raise RunFolderError(
            "the record of the run cannot be read", path=problem.path, hint="Mend the file, or give another run."
        ) from problem


def _is_nested(value: object, depth: int) -> bool:
    """Return whether a value is a list of objects, or of such lists."""
    if depth == 0:
        return isinstance(value, Mapping)
    return isinstance(value, list | tuple) and all(_is_nested(each, depth - 1) for each in value)


# Sections of the config; a judge may have one of its own name.
_SCORED_BY = ("steps", "sparql", "llm", *(judge.key for judge in JUDGES), "custom_evaluations", "retrieval")
_RECORDED_BY = ("step_names", "retrieval_documents", "max_output_chars", "redact")


@dataclass(frozen=True, slots=True)
class NamedRun:
    """A run of a comparison.

    Attributes:
        letter: What it is called there.
        results: Its results.
        numbers: Its numbers.
    """

    letter: str
    results: RunResults
    numbers: RunValues


@dataclass(frozen=True, slots=True)
class Pairing:
    """The common questions of two runs.

    Attributes:
        a: The baseline.
        b: The other run.
        common: The ids of the questions that both have, in A's order.
    """

    a: NamedRun
    b: NamedRun
    common: Sequence[str]

    @classmethod
    def of(cls, a: NamedRun, b: NamedRun) -> "Pairing":
        """Return the common questions of two runs."""
        return cls(a, b, [identifier for identifier in a.numbers.questions if identifier in b.numbers.questions])

    def questions(self) -> Iterable[tuple[QuestionValues, QuestionValues]]:
        """Return the numbers of each common question in both runs."""
        return ((self.a.numbers.questions[each], self.b.numbers.questions[each]) for each in self.common)

    def template_ids(self) -> set[str]:
        """Return the templates of the common questions, as A has them."""
        return {self.a.numbers.questions[identifier].template_id for identifier in self.common}

    def metrics(self) -> list[str]:
        """Return the metrics that are compared where none are named: scores, the main one first, then what was spent."""
        known = self._in_both()
        scores = [metric for metric in known if not metric_spec(metric).is_spent]
        spent = [metric for metric in _spent_by_agents(known) if metric in known]
        return sorted(scores, key=lambda metric: metric != MAIN_METRIC) + spent

    def can_compare(self, metric: str) -> bool:
        """Return whether both runs have a metric; one in which all questions failed would have had it."""
        return metric in self._in_both()

    def values(self, metric: str) -> Mapping[str, Pair]:
        """Return a metric's values in A and in the other run by the ids of the questions that have it in both."""
        return {identifier: (a, b) for identifier, a, b in self._sides(metric) if a is not None and b is not None}

    def left_out(self, metric: str) -> int:
        """Return how many common questions have a metric in exactly one of the runs."""
        return sum((a is None) is not (b is None) for _, a, b in self._sides(metric))

    def texts_that_differ(self) -> int:
        """Return how many common questions have another text in one run than in the other, as far as it is known."""
        texts = ((a.text_digest, b.text_digest) for a, b in self.questions())
        return sum(None not in each and each[0] != each[1] for each in texts)

    def by_template(self, pairs: Mapping[str, Pair]) -> dict[str, list[Pair]]:
        """Return values by the questions' templates, as A has them."""
        groups: dict[str, list[Pair]] = {}
        for identifier, pair in pairs.items():
            groups.setdefault(self.a.numbers.questions[identifier].template_id, []).append(pair)
        return groups

    def warnings(self) -> list[str]:
        """Say what is to be known of the two runs beside each other."""
        return [
            *self._question_warnings(),
            *self._template_warnings(),
            *self._setting_warnings(),
        ]

    def _sides(self, metric: str) -> Iterable[tuple[str, float | None, float | None]]:
        is_spent = metric_spec(metric).is_spent
        for a, b in self.questions():
            if is_spent:
                yield a.question_id, a.spent(metric), b.spent(metric)
            else:
                of_a, of_b = (
                    a.score(metric, has_elsewhere=metric in b.sums),
                    b.score(metric, has_elsewhere=metric in a.sums),
                )
                yield a.question_id, of_a, of_b

    def _in_both(self) -> list[str]:
        in_a, in_b = self.a.numbers.measured(), self.b.numbers.measured()
        scores_a = in_b if _all_failed(self.a.numbers) else ()
        scores_b = in_a if _all_failed(self.b.numbers) else ()
        known_a, known_b = {*in_a, *scores_a}, {*in_b, *scores_b}
        return [metric for metric in dict.fromkeys([*in_a, *in_b]) if metric in known_a and metric in known_b]

    def _question_warnings(self) -> Iterable[str]:
        a, b = self.a, self.b
        only_a = len(a.numbers.questions) - len(self.common)
        only_b = len(b.numbers.questions) - len(self.common)
        datasets = [_dataset_digest(run) for run in (a, b)]
        if None not in datasets and datasets[0] != datasets[1]:
            yield (
                f"A and {b.letter} were scored on different datasets: the {len(self.common):,} common questions are "
                f"compared; {only_a:,} of A and {only_b:,} of {b.letter} are left out."
            )
        elif only_a or only_b:
            yield (
                f"A and {b.letter} have {len(self.common):,} questions in common; {only_a:,} of A and {only_b:,} of "
                f"{b.letter} are left out."
            )
        changed = self.texts_that_differ()
        if changed:
            yield f"{_questions(changed)} with another text in {b.letter} than in A."

    def _template_warnings(self) -> Iterable[str]:
        moved = sum(a.template_id != b.template_id for a, b in self.questions())
        if moved:
            yield f"{_questions(moved)} of another template in {self.b.letter} than in A; A's templates are taken."
        number = len(self.template_ids())
        if number == 1:
            yield (
                "All questions are of one template, so that each counts for itself: intervals are too narrow and "
                "p-values too small where the questions resemble each other."
            )
        elif number < FEWEST_FOR_A_VERDICT:
            yield f"There are {number} templates; with fewer than {FEWEST_FOR_A_VERDICT} no p-value is below 0.05."
        elif number < FEWEST_CLUSTERS:
            yield f"There are {number} templates; with fewer than {FEWEST_CLUSTERS} intervals and p-values say little."

    def _setting_warnings(self) -> Iterable[str]:
        configs = [run.results.record.get("config") for run in (self.a, self.b)]
        if isinstance(configs[0], Mapping) and isinstance(configs[1], Mapping):
            different = [key for key in _SCORED_BY if configs[0].get(key) != configs[1].get(key)]
            if different:
                yield (
                    f"A and {self.b.letter} were scored with other settings ({', '.join(different)}), so that their "
                    "scores may not be comparable."
                )
        captures = [run.results.record.get("capture") for run in (self.a, self.b)]
        if isinstance(captures[0], Mapping) and isinstance(captures[1], Mapping):
            different = [key for key in _RECORDED_BY if captures[0].get(key) != captures[1].get(key)]
            if different:
                yield (
                    f"A and {self.b.letter} were recorded with other options of the capture ({', '.join(different)}), "
                    "so that their scores may not be comparable."
                )
        for run in (self.a, self.b):
            for metric, told in run.results.declarations().items():
                if metric in run.numbers.measured() and (changed := changed_since(metric, told)):
                    yield (
                        f"{metric} was declared otherwise when {run.letter} was scored ({', '.join(changed)}); it is "
                        "compared by another declaration, so that its values may not be comparable."
                    )
        matchers = [_matchers(run.results.record) for run in (self.a, self.b)]
        if None not in matchers and matchers[0] != matchers[1]:
            different = sorted(set(matchers[0] or ()) ^ set(matchers[1] or ()))
            yield (
                f"The steps of A and {self.b.letter} were compared by other matchers ({', '.join(different)}), so that "
                "their scores may not be comparable."
            )


def _dataset_digest(run: NamedRun) -> object:
    dataset = run.results.record.get("dataset")
    return dataset.get("sha256") if isinstance(dataset, Mapping) else None


def _matchers(record: Mapping[str, Any]) -> set[str] | None:
    """Return the names and media types that users registered matchers for; None where run.json does not tell."""
    matchers = record.get("matchers")
    if not isinstance(matchers, list):
        return None
    kinds = ([each.get(key) for key in ("name", "media_type")] for each in matchers if isinstance(each, Mapping))
    return {" with ".join(str(kind) for kind in pair if kind is not None) for pair in kinds}


def _all_failed(numbers: RunValues) -> bool:
    return all(question.errors == question.samples for question in numbers.questions.values())


def _spent_by_agents(known: Iterable[str]) -> list[str]:
    """Return what agents spend, by metrics of this package, then by users' own among those that are known.

    What judges spend is not of the agent's doing, and is compared where it is asked for.
    """
    own = (metric_spec(metric) for metric in known if not is_built_in(metric))
    return [
        *(spec.key for spec in BUILT_IN if spec.spent_by == "agent"),
        *(spec.key for spec in own if spec.is_spent and spec.spent_by != "judges"),
    ]


def _questions(count: int) -> str:
    return counted(count, "common question is", "common questions are")
