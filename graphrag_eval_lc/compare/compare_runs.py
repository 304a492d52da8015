"""Comparing runs: each with the first one, question by question."""

from collections.abc import Iterable, Mapping, Sequence

from graphrag_eval_lc.aggregation import RunValues
from graphrag_eval_lc.compare.flips import Direction, Flip, Seen, direction_of, seen_questions, side_by_side
from graphrag_eval_lc.compare.metric_comparison import MetricValues, Pair, compared_metrics, difference_of
from graphrag_eval_lc.compare.run_comparison import ComparedQuestion, PairComparison, RunComparison, RunSummary
from graphrag_eval_lc.compare.runs import NamedRun, Pairing, RunSource, run_results
from graphrag_eval_lc.config import ConfigSource
from graphrag_eval_lc.errors import ComparisonError, OptionError
from graphrag_eval_lc.registry import MetricSpec, metric_spec
from graphrag_eval_lc.registry.custom_metrics import recorded_only_here
from graphrag_eval_lc.registry.metrics import MAIN_METRIC
from graphrag_eval_lc.texts import plural

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DIRECTIONS = ("now wrong", "now right", "worse", "better")
# Of so many questions for each run the steps are kept.
_MOST_SIDE_BY_SIDE = 500


@recorded_only_here()
def compare_runs(
    a: RunSource,
    b: RunSource,
    *more: RunSource,
    metrics: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    config: ConfigSource = None,
) -> RunComparison:
    """Compare runs with the first one, question by question.

    Questions are paired by their ids; of one that was asked several times the mean is taken. Which way is better is
    what a metric declares; of a number that nobody declared more is. A failed sample's scores count as 0, where less is
    better as the greatest value that there can be; what it spent is what it spent. A question that has a metric in one
    of the runs only is left out of that metric and counted. Intervals and p-values take templates as wholes, as their
    questions succeed and fail together; of a metric that one template has while the runs have more nothing can be told.

    The main metric is chosen beforehand: its verdict is by its own p-value. The verdicts of all others are by
    p-values that Holm's method adjusts for all metrics of a run that can be tested, scores and what was spent
    together. Where fewer than 6 templates differ no p-value is below 0.05, so that the test cannot tell; the gates
    (``RunComparison.regression_gates``) then go by the effect. The 95 % intervals are of each metric for itself.

    Args:
        a: The baseline: the folder of a run, a BenchmarkRun, or a list of results.
        b: A run that is compared with it.
        *more: More of them, each compared with the baseline.
        metrics: The metrics to compare, any numbers of the results. The first score among them is the main metric,
            which says which questions flipped; where all of them were spent the first of these is. None takes all
            scores that both runs have, with steps_score as the main one where A has it, and what the agent spent:
            tokens, time and cost.
        config: The configuration of runs that come without a folder, which have no run.json that has it.
        labels: A name for each run; None takes those in run.json, else those of the folders.

    Returns:
        The comparison. No result is kept, but what is shown of the questions that flipped.

    Raises:
        ComparisonError: The runs have no question or no metric in common, or something given is no run or no result.
        RunFolderError: A folder cannot be read.
        MissingExtraError: scipy is not installed.
        OptionError: There are not as many labels as runs, or no metric is named.

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
        raise OptionError(f"{len(sources)} runs are too many to compare", hint=f"Give {len(_LETTERS)} at most.")
    named = [labels] if isinstance(labels, str) else labels
    if named is not None and len(named) != len(sources):
        raise OptionError(f"{len(named)} labels for {len(sources)} runs", hint="Give as many labels as runs.")
    wanted = None if metrics is None else [metrics] if isinstance(metrics, str) else list(dict.fromkeys(metrics))
    if wanted is not None and not wanted:
        raise OptionError("no metric is named", key="metrics", hint="Name one, or leave metrics out to compare all.")
    # All are opened before any numbers are taken, which go by what the records declare.
    opened = zip(_LETTERS, [run_results(source, config) for source in sources], strict=False)
    runs = [NamedRun(letter, results, results.numbers(wanted or ())) for letter, results in opened]
    pairings = [_checked(Pairing.of(runs[0], run), wanted) for run in runs[1:]]
    names: Sequence[str | None] = named or [None] * len(runs)
    summaries = [_summary(run, label) for run, label in zip(runs, names, strict=True)]
    metric = _main_metric(pairings, wanted)
    warnings = [*(text for run in runs for text in _run_warnings(run))]
    pairs = []
    for pairing, summary in zip(pairings, summaries[1:], strict=True):
        warnings += [*pairing.warnings(), *_metric_warnings(pairing, wanted)]
        pair = _pair(pairing, summary, wanted or pairing.metrics(), metric)
        warnings += _one_template_warnings(pair)
        pairs.append(pair)
    return RunComparison(summaries[0], tuple(pairs), metric, tuple(dict.fromkeys(warnings)))


def _checked(pairing: Pairing, wanted: Sequence[str] | None) -> Pairing:
    a, b = pairing.a, pairing.b
    for run in (a, b):
        if not run.numbers.questions:
            raise ComparisonError(f"run {run.letter} has no results", path=run.results.path, hint="Give another run.")
    if not pairing.common:
        raise ComparisonError(
            f"runs A and {b.letter} have no question in common",
            path=b.results.path,
            hint="Compare runs on the same dataset; questions are paired by their ids.",
        )
    if pairing.texts_that_differ() == len(pairing.common):
        raise ComparisonError(
            f"runs A and {b.letter} have no question in common: under the same ids they have other texts",
            path=b.results.path,
            hint="Compare runs on the same dataset.",
        )
    unknown = [metric for metric in wanted or () if metric not in {*a.numbers.measured(), *b.numbers.measured()}]
    if unknown:
        raise ComparisonError(
            f"no result has the metric {unknown[0]}",
            hint=f"Those that both runs have are {', '.join(pairing.metrics()) or 'none'}.",
        )
    if not any(map(pairing.can_compare, wanted if wanted is not None else pairing.metrics())):
        raise ComparisonError(
            f"runs A and {b.letter} have no metric in common",
            path=b.results.path,
            hint="Score both runs with the same configuration.",
        )
    return pairing


def _main_metric(pairings: Sequence[Pairing], wanted: Sequence[str] | None) -> str | None:
    """Return the metric that was chosen beforehand, which some of the pairs may lack."""
    if wanted is not None:
        return next((metric for metric in wanted if not metric_spec(metric).is_spent), wanted[0])
    if MAIN_METRIC in pairings[0].a.numbers.measured():
        return MAIN_METRIC
    scores = (metric for pairing in pairings for metric in pairing.metrics() if not metric_spec(metric).is_spent)
    return next(scores, None)


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
            and metric_spec(metric).spent_by != "judges"
        ]
        if alone:
            yield f"Only {run.letter} has {', '.join(alone)}; {other.letter} has not, so that is not compared."


def _one_template_warnings(pair: PairComparison) -> Iterable[str]:
    """Name the metrics of which nothing can be told, as a single template of several has them."""
    if pair.number_of_templates == 1:
        return
    alone = [metric.metric for metric in pair.metrics if metric.number_of_templates == 1]
    if alone:
        which = f"{alone[0]} is" if len(alone) == 1 else f"{len(alone)} metrics, such as {alone[0]}, are"
        them = plural(len(alone), "it", "them")
        yield f"{which} measured in one template only, so that nothing can be told of {them}."


def _pair(pairing: Pairing, summary: RunSummary, metrics: Sequence[str], main: str | None) -> PairComparison:
    values = {metric: pairing.values(metric) for metric in metrics if pairing.can_compare(metric)}
    compared = [
        MetricValues(metric_spec(metric), pairing.by_template(pairs), pairing.left_out(metric))
        for metric, pairs in values.items()
        if pairs
    ]
    number_of_templates = len(pairing.template_ids())
    # Of what was spent nearly every question differs.
    flips = {} if main is None or metric_spec(main).is_spent else values.get(main, {})
    a, b = pairing.a.numbers, pairing.b.numbers
    return PairComparison(
        run=summary,
        number_of_questions=len(pairing.common),
        number_of_templates=number_of_templates,
        errors_a=_errors(a, pairing.common),
        errors_b=_errors(b, pairing.common),
        left_out_a=len(a.questions) - len(pairing.common),
        left_out_b=len(b.questions) - len(pairing.common),
        metrics=compared_metrics(compared, main=main, number_of_templates=number_of_templates, letter=summary.letter),
        flips=_flips(pairing, metric_spec(main), flips) if main is not None else (),
        questions=tuple(
            ComparedQuestion(
                identifier,
                a.questions[identifier].template_id,
                {metric: pairs[identifier] for metric, pairs in values.items() if identifier in pairs},
            )
            for identifier in pairing.common
        ),
    )


def _errors(numbers: RunValues, common: Iterable[str]) -> int:
    return sum(numbers.questions[identifier].errors for identifier in common)


def _flips(pairing: Pairing, metric: MetricSpec, pairs: Mapping[str, Pair]) -> tuple[Flip, ...]:
    changed = {identifier: pair for identifier, pair in pairs.items() if difference_of(pair)}
    if not changed:
        return ()
    directions = {identifier: direction_of(*pair, metric) for identifier, pair in changed.items()}
    order = sorted(changed, key=lambda each: (_DIRECTIONS.index(directions[each]), -_size(changed[each])))
    shown = {identifier: rank < _MOST_SIDE_BY_SIDE for rank, identifier in enumerate(order)}
    in_a, in_b = (seen_questions(run.results, shown, metric) for run in (pairing.a, pairing.b))
    return tuple(
        _flip(
            identifier,
            pairing.a.numbers.questions[identifier].template_id,
            directions[identifier],
            changed[identifier],
            in_a[identifier],
            in_b[identifier],
        )
        for identifier in order
    )


def _size(pair: Pair) -> float:
    return abs(difference_of(pair))


def _flip(identifier: str, template_id: str, direction: Direction, pair: Pair, a: Seen, b: Seen) -> Flip:
    return Flip(
        question_id=identifier,
        template_id=template_id,
        question_text=a.question_text,
        reference_answer=a.reference_answer or b.reference_answer,
        direction=direction,
        score_a=pair[0],
        score_b=pair[1],
        a=a.side,
        b=b.side,
        steps=side_by_side(a.steps, b.steps),
    )
