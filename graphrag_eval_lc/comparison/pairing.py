"""The questions that two runs have in common, with their values, and what is to be known of that."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_eval_lc.aggregation import QuestionNumbers, RunNumbers
from graphrag_eval_lc.comparison.metric_comparison import FEWEST_FOR_A_VERDICT, Pair
from graphrag_eval_lc.comparison.run_source import RunResults
from graphrag_eval_lc.registry import metric_spec
from graphrag_eval_lc.registry.metrics import BUILT_IN, JUDGES, MAIN_METRIC, is_built_in
from graphrag_eval_lc.registry.own_metrics import changed_since
from graphrag_eval_lc.stats import FEWEST_CLUSTERS
from graphrag_eval_lc.texts import counted

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
    numbers: RunNumbers


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
        """Give the common questions of two runs."""
        return cls(a, b, [identifier for identifier in a.numbers.questions if identifier in b.numbers.questions])

    def questions(self) -> Iterable[tuple[QuestionNumbers, QuestionNumbers]]:
        """Give the numbers of each common question in both runs."""
        return ((self.a.numbers.questions[each], self.b.numbers.questions[each]) for each in self.common)

    def template_ids(self) -> set[str]:
        """Give the templates of the common questions, as A has them."""
        return {self.a.numbers.questions[identifier].template_id for identifier in self.common}

    def metrics(self) -> list[str]:
        """Give the metrics that are compared where none are named: scores, the main one first, then what was spent."""
        known = self._in_both()
        scores = [metric for metric in known if not metric_spec(metric).is_spent]
        spent = [metric for metric in _spent_by_agents(known) if metric in known]
        return sorted(scores, key=lambda metric: metric != MAIN_METRIC) + spent

    def can_compare(self, metric: str) -> bool:
        """Tell whether both runs have a metric; one in which all questions failed would have had it."""
        return metric in self._in_both()

    def values(self, metric: str) -> Mapping[str, Pair]:
        """Give a metric's values in A and in the other run by the ids of the questions that have it in both."""
        return {identifier: (a, b) for identifier, a, b in self._sides(metric) if a is not None and b is not None}

    def left_out(self, metric: str) -> int:
        """Give how many common questions have a metric in exactly one of the runs."""
        return sum((a is None) is not (b is None) for _, a, b in self._sides(metric))

    def texts_that_differ(self) -> int:
        """Give how many common questions have another text in one run than in the other, as far as it is known."""
        texts = ((a.text_digest, b.text_digest) for a, b in self.questions())
        return sum(None not in each and each[0] != each[1] for each in texts)

    def by_template(self, pairs: Mapping[str, Pair]) -> dict[str, list[Pair]]:
        """Give values by the questions' templates, as A has them."""
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
                of_a, of_b = a.score(metric, has_twin=metric in b.sums), b.score(metric, has_twin=metric in a.sums)
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
    """Give the names and media types that users registered matchers for; None where run.json does not tell."""
    matchers = record.get("matchers")
    if not isinstance(matchers, list):
        return None
    kinds = ([each.get(key) for key in ("name", "media_type")] for each in matchers if isinstance(each, Mapping))
    return {" with ".join(str(kind) for kind in pair if kind is not None) for pair in kinds}


def _all_failed(numbers: RunNumbers) -> bool:
    return all(question.errors == question.samples for question in numbers.questions.values())


def _spent_by_agents(known: Iterable[str]) -> list[str]:
    """Give what agents spend, by metrics of this package, then by users' own among those that are known.

    What judges spend is not of the agent's doing, and is compared where it is asked for.
    """
    own = (metric_spec(metric) for metric in known if not is_built_in(metric))
    return [
        *(spec.key for spec in BUILT_IN if spec.spent_by == "agent"),
        *(spec.key for spec in own if spec.is_spent and spec.spent_by != "judges"),
    ]


def _questions(count: int) -> str:
    return counted(count, "common question is", "common questions are")
