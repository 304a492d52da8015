"""Comparing runs: each with the first one, question by question."""

from collections.abc import Iterable, Mapping, Sequence

from graphrag_eval_lc.aggregation import RunNumbers
from graphrag_eval_lc.comparison.comparison import ComparedQuestion, Comparison, PairComparison, RunSummary
from graphrag_eval_lc.comparison.metric_comparison import Pair, compared_metric, difference_of, judged_together
from graphrag_eval_lc.comparison.pairing import NamedRun, Pairing
from graphrag_eval_lc.comparison.run_source import RunSource, run_results
from graphrag_eval_lc.comparison.turned import (
    Seen,
    TurnedQuestion,
    direction_of,
    seen_questions,
    side_by_side,
)
from graphrag_eval_lc.config import ConfigSource
from graphrag_eval_lc.errors import ComparisonError, OptionError

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DIRECTIONS = ("now wrong", "now right", "worse", "better")
# Of so many questions for each run the steps are kept.
_MOST_SIDE_BY_SIDE = 500


def compare_runs(
    a: RunSource,
    b: RunSource,
    *more: RunSource,
    metrics: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    config: ConfigSource = None,
) -> Comparison:
    """Compare runs with the first one, question by question.

    Questions are paired by their ids; of one that was asked several times the mean is taken. A failed sample's
    scores count as 0; what it spent is what it spent. A question that has a metric in one of the runs only is left
    out of that metric and counted. Intervals and p-values take templates as wholes, as their questions succeed and
    fail together. P-values are adjusted by Holm's method for each run, over the scores, over those of
    retrieval, and over what was spent.

    Args:
        a: The baseline: the folder of a run, a BenchmarkRun, or a list of results.
        b: A run that is compared with it.
        *more: More of them, each compared with the baseline.
        metrics: The metrics to compare, any numbers of the results; the first score among them says which questions
            turned. None takes all scores that both runs have, steps_score first, and the agent's tokens, time
            and cost.
        config: The configuration of runs that come without a folder, which have no run.json that has it.
        labels: A name for each run; None takes those in run.json, else those of the folders.

    Returns:
        The comparison. No result is kept, but what is shown of the questions that turned.

    Raises:
        ComparisonError: The runs have no question or no metric in common, or something given is no run.
        RunFolderError: A folder cannot be read.
        MissingExtraError: scipy is not installed.
        OptionError: There are not as many labels as runs.

    Example:
        >>> def results(*scores):
        ...     return [
        ...         {"template_id": f"t{n}", "question_id": f"q{n}", "status": "success", "steps_score": score}
        ...         for n, score in enumerate(scores)
        ...     ]
        >>> comparison = compare_runs(results(0, 0, 0, 0, 0, 0, 0, 1), results(1, 1, 1, 1, 1, 1, 1, 1))
        >>> metric = comparison.pairs[0].metric("steps_score")
        >>> metric.difference, metric.verdict, metric.wins
        (0.875, 'better', 7)
    """
    sources = (a, b, *more)
    if len(sources) > len(_LETTERS):
        raise OptionError(f"{len(sources)} runs are too many to compare", mend=f"Give {len(_LETTERS)} at most.")
    if labels is not None and len(labels) != len(sources):
        raise OptionError(f"{len(labels)} labels for {len(sources)} runs", mend="Give as many labels as runs.")
    wanted = None if metrics is None else [metrics] if isinstance(metrics, str) else list(dict.fromkeys(metrics))
    runs = []
    for letter, source in zip(_LETTERS, sources, strict=False):
        results = run_results(source, config)
        runs.append(NamedRun(letter, results, results.numbers(wanted or ())))
    pairings = [_checked(Pairing.of(runs[0], run), wanted) for run in runs[1:]]
    names: Sequence[str | None] = labels or [None] * len(runs)
    summaries = [_summary(run, label) for run, label in zip(runs, names, strict=True)]
    metric = _main_metric(pairings, wanted)
    warnings = [*(text for run in runs for text in _run_warnings(run))]
    pairs = []
    for pairing, summary in zip(pairings, summaries[1:], strict=True):
        warnings += [*pairing.warnings(), *_metric_warnings(pairing, wanted)]
        pairs.append(_pair(pairing, summary, wanted or pairing.metrics(), metric))
    return Comparison(summaries[0], tuple(pairs), metric, tuple(dict.fromkeys(warnings)))


def _checked(pairing: Pairing, wanted: Sequence[str] | None) -> Pairing:
    a, b = pairing.a, pairing.b
    for run in (a, b):
        if not run.numbers.questions:
            raise ComparisonError(f"run {run.letter} has no results", path=run.results.path, mend="Give another run.")
    if not pairing.common:
        raise ComparisonError(
            f"runs A and {b.letter} have no question in common",
            path=b.results.path,
            mend="Compare runs on the same dataset; questions are paired by their ids.",
        )
    unknown = [metric for metric in wanted or () if metric not in {*a.numbers.measured(), *b.numbers.measured()}]
    if unknown:
        raise ComparisonError(
            f"no result has the metric {unknown[0]}",
            mend=f"Those that both runs have are {', '.join(pairing.metrics()) or 'none'}.",
        )
    if not any(map(pairing.can_compare, wanted if wanted is not None else pairing.metrics())):
        raise ComparisonError(
            f"runs A and {b.letter} have no metric in common",
            path=b.results.path,
            mend="Score both runs with the same configuration.",
        )
    return pairing


def _main_metric(pairings: Sequence[Pairing], wanted: Sequence[str] | None) -> str | None:
    """Give the first score that is compared."""
    for pairing in pairings:
        for metric in wanted if wanted is not None else pairing.metrics():
            if pairing.can_compare(metric) and not pairing.is_spent(metric):
                return metric
    return None


def _summary(run: NamedRun, label: str | None) -> RunSummary:
    questions = run.numbers.questions.values()
    path = run.results.path
    name = label or run.results.record.get("label") or (path.resolve().name if path else None)
    return RunSummary(
        letter=run.letter,
        label=str(name or run.letter),
        path=None if path is None else str(path),
        number_of_questions=len(questions),
        number_of_samples=sum(question.samples for question in questions),
        number_of_errors=sum(question.errors for question in questions),
    )


def _run_warnings(run: NamedRun) -> Iterable[str]:
    stopped = run.results.record.get("stopped")
    if isinstance(stopped, Mapping):
        left_out = stopped.get("left_out")
        asked = f"; {left_out:,} samples were not asked" if isinstance(left_out, int) and left_out else ""
        yield f"Run {run.letter} ended before its time ({stopped.get('message')}){asked}."


def _metric_warnings(pairing: Pairing, wanted: Sequence[str] | None) -> Iterable[str]:
    """Name the metrics that only one run has."""
    a, b = pairing.a, pairing.b
    for run, other in ((a, b), (b, a)):
        measured = wanted if wanted is not None else run.numbers.measured()
        alone = [
            metric
            for metric in measured
            if metric in run.numbers.measured()
            and not pairing.can_compare(metric)
            # What judges cost says nothing of an agent.
            and (metric == "agent_cost" or not metric.endswith("_cost"))
        ]
        if alone:
            yield f"Only {run.letter} has {', '.join(alone)}; {other.letter} has not, so that is not compared."


def _pair(pairing: Pairing, summary: RunSummary, metrics: Sequence[str], main: str | None) -> PairComparison:
    values = {metric: pairing.values(metric) for metric in metrics if pairing.can_compare(metric)}
    compared = [
        compared_metric(
            metric,
            pairing.by_template(pairs),
            is_spent=pairing.is_spent(metric),
            left_out=sum(
                (metric in a.sums or metric in b.sums) and a.question_id not in pairs for a, b in pairing.questions()
            ),
        )
        for metric, pairs in values.items()
        if pairs
    ]
    a, b = pairing.a.numbers, pairing.b.numbers
    return PairComparison(
        run=summary,
        number_of_questions=len(pairing.common),
        number_of_templates=len(pairing.template_ids()),
        errors_a=_errors(a, pairing.common),
        errors_b=_errors(b, pairing.common),
        left_out_a=len(a.questions) - len(pairing.common),
        left_out_b=len(b.questions) - len(pairing.common),
        metrics=judged_together(compared, summary.letter),
        turned=_turned(pairing, main, values.get(main or "", {})),
        questions=tuple(
            ComparedQuestion(
                identifier,
                a.questions[identifier].template_id,
                {metric: pairs[identifier] for metric, pairs in values.items() if identifier in pairs},
            )
            for identifier in pairing.common
        ),
    )


def _errors(numbers: RunNumbers, common: Iterable[str]) -> int:
    return sum(numbers.questions[identifier].errors for identifier in common)


def _turned(pairing: Pairing, metric: str | None, pairs: Mapping[str, Pair]) -> tuple[TurnedQuestion, ...]:
    changed = {identifier: pair for identifier, pair in pairs.items() if difference_of(pair)}
    if metric is None or not changed:
        return ()
    order = sorted(changed, key=lambda each: (_DIRECTIONS.index(direction_of(*changed[each])), -_size(changed[each])))
    shown = {identifier: rank < _MOST_SIDE_BY_SIDE for rank, identifier in enumerate(order)}
    in_a, in_b = (seen_questions(run.results, shown, metric) for run in (pairing.a, pairing.b))
    return tuple(
        _turned_question(
            identifier,
            pairing.a.numbers.questions[identifier].template_id,
            changed[identifier],
            in_a[identifier],
            in_b[identifier],
        )
        for identifier in order
    )


def _size(pair: Pair) -> float:
    return abs(difference_of(pair))


def _turned_question(identifier: str, template_id: str, pair: Pair, a: Seen, b: Seen) -> TurnedQuestion:
    return TurnedQuestion(
        question_id=identifier,
        template_id=template_id,
        question_text=a.question_text,
        reference_answer=a.reference_answer or b.reference_answer,
        direction=direction_of(*pair),
        score_a=pair[0],
        score_b=pair[1],
        a=a.side,
        b=b.side,
        steps=side_by_side(a.steps, b.steps),
    )
