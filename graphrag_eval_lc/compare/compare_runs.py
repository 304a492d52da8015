"""compare_runs: compares each run with the first one, question by question."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from graphrag_eval_lc.aggregation.sample_values import bounds_text
from graphrag_eval_lc.compare.comparison_view import ComparedQuestion, PairComparison, RunSummary
from graphrag_eval_lc.compare.flips import Flip, flips_between
from graphrag_eval_lc.compare.metric_tests import MetricValues, compared_metrics
from graphrag_eval_lc.compare.run_comparison import RunComparison
from graphrag_eval_lc.compare.runs import NamedRun, Pairing, RunSource, run_names, run_results
from graphrag_eval_lc.compare.settings import setting_warnings
from graphrag_eval_lc.config import ConfigSource
from graphrag_eval_lc.errors import ComparisonError, NothingToCompareError, OptionError
from graphrag_eval_lc.registry import metric_spec
from graphrag_eval_lc.registry.custom_metrics import recorded_only_here
from graphrag_eval_lc.registry.metrics import MAIN_METRIC, STEPS_SCORE
from graphrag_eval_lc.texts import counted, plural

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


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

    Questions are paired by their ids. If a question was asked several times, its mean counts. Each metric declares
    which direction is better; by default higher is. A failed sample's scores count as 0, or as the greatest possible
    value if lower is better; what it spent counts as it is. If only one of the runs has a metric for a question, the
    question is left out of that metric, and counted. Intervals and p-values treat templates as clusters, because
    their questions succeed and fail together. If only one of several templates has a metric, it gets no verdict.

    The main metric is chosen beforehand, so its own p-value decides. For all other metrics the p-value is adjusted by
    Holm's method for all metrics of a run that can be tested, scores and what was spent together. If fewer than 6
    templates differ, no p-value is below 0.05, so the test cannot decide; gates (``RunComparison.gate_results``) then
    use the size of the effect. Intervals come from the same test: an interval contains 0 if, and only if, there is no
    evidence of a difference. That of the main metric is at 95 %, others may be at more.

    Args:
        a: The baseline: the folder of a run, a BenchmarkRun, or a list of results. If it is the best of several runs
            (``chosen_from`` of a ``Baseline``), all p-values are multiplied by their number, as the best of many looks
            better than it is.
        b: The run to compare with it.
        *more: Further runs, each compared with the baseline.
        metrics: The metrics to compare: any numbers in the results. The first score among them is the main metric,
            which decides which questions are broken and fixed; without a score it is the first metric. None: all scores
            that both runs have, with steps_score as the main one if A has it, and what the agent spent: tokens, time
            and cost.
        config: The configuration of runs without a folder, which have no run.json.
        labels: A name for each run. None: the names in run.json, otherwise those of the folders; runs that have the
            same name are named by their folders.

    Returns:
        The comparison. It keeps only what is shown of the changed questions, not all results of the runs.

    Raises:
        ComparisonError: The runs have no question or no metric in common, or an argument is neither a run nor a result.
        RunFolderError: A folder cannot be read.
        MissingExtraError: scipy is not installed.
        OptionError: The number of labels is not that of the runs, or the list of metrics is empty.

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
    given = (a, b, *more)
    if len(given) > len(_LETTERS):
        raise OptionError(f"{len(given)} runs are too many to compare", hint=f"Give {len(_LETTERS)} at most.")
    named = [labels] if isinstance(labels, str) else labels
    if named is not None and len(named) != len(given):
        raise OptionError(f"{len(named)} labels for {len(given)} runs", hint="Give as many labels as runs.")
    wanted = None if metrics is None else [metrics] if isinstance(metrics, str) else list(dict.fromkeys(metrics))
    if wanted is not None and not wanted:
        raise OptionError("no metric is named", key="metrics", hint="Name one, or leave metrics out to compare all.")
    # All runs are opened before any is read, because reading depends on the metrics that all of them declare.
    opened = zip(_LETTERS, [run_results(source, config) for source in given], strict=False)
    runs = [NamedRun(letter, results, results.numbers(wanted or ())) for letter, results in opened]
    pairings = [_require_comparable(Pairing.of(runs[0], run), wanted) for run in runs[1:]]
    names = run_names([(run.results.record.get("label"), run.results.path) for run in runs])
    names = [given or name for given, name in zip(named or names, names, strict=True)]
    summaries = [_summary(run, label) for run, label in zip(runs, names, strict=True)]
    metric = _main_metric(pairings, wanted)
    warnings = [text for run in runs for text in _run_warnings(run)]
    chosen_from = getattr(a, "chosen_from", 1)
    if chosen_from > 1:
        warnings.append(
            f"A is the best of {chosen_from} runs, and so partly by chance: p-values are multiplied by {chosen_from}, "
            "and intervals are wider to match."
        )
    pairs = []
    for pairing, summary in zip(pairings, summaries[1:], strict=True):
        named = [metric for metric in wanted or pairing.metrics() if pairing.can_compare(metric)]
        warnings += [*pairing.warnings(), *setting_warnings(pairing.a, pairing.b, named)]
        pairs.append(_pair(pairing, summary, wanted or pairing.metrics(), metric, chosen_from))
        warnings += _metric_warnings(pairing, wanted, pairs[-1])
    sources = tuple(run.results for run in runs)
    return RunComparison(summaries[0], tuple(pairs), metric, tuple(dict.fromkeys(warnings)), sources)


def _require_comparable(pairing: Pairing, wanted: Sequence[str] | None) -> Pairing:
    """Return the pairing; raise a ComparisonError if its runs have no question or no wanted metric in common."""
    a, b = pairing.a, pairing.b
    for run in (a, b):
        if not run.numbers.questions:
            raise NothingToCompareError(
                f"run {run.letter} has no results", path=run.results.path, hint="Give another run."
            )
    what, path = f"runs A and {b.letter} have no question in common", b.results.path
    if not pairing.common:
        hint = "Compare runs on the same dataset; questions are paired by their ids."
        raise NothingToCompareError(what, path=path, hint=hint)
    if pairing.texts_that_differ() == len(pairing.common):
        what = f"{what}: under the same ids they have other texts"
        raise NothingToCompareError(what, path=path, hint="Compare runs on the same dataset.")
    unknown = [metric for metric in wanted or () if metric not in {*a.numbers.measured(), *b.numbers.measured()}]
    if unknown:
        hint = f"Those that both runs have are {', '.join(pairing.metrics()) or 'none'}."
        raise ComparisonError(f"no result has the metric {unknown[0]}", hint=hint)
    if not any(map(pairing.can_compare, wanted if wanted is not None else pairing.metrics())):
        hint = "Score both runs with the same configuration."
        raise NothingToCompareError(f"runs A and {b.letter} have no metric in common", path=path, hint=hint)
    return pairing


def _main_metric(pairings: Sequence[Pairing], wanted: Sequence[str] | None) -> str | None:
    """Return the main metric, which some of the pairs may lack."""
    if wanted is not None:
        return next((metric for metric in wanted if not metric_spec(metric).is_spent), wanted[0])
    if MAIN_METRIC in pairings[0].a.numbers.measured():
        return MAIN_METRIC
    scores = (metric for pairing in pairings for metric in pairing.metrics() if not metric_spec(metric).is_spent)
    return next(scores, None)


def _summary(run: NamedRun, label: str) -> RunSummary:
    questions, path = run.numbers.questions.values(), run.results.path
    return RunSummary(
        letter=run.letter,
        label=label or run.letter,
        path=None if path is None else str(path),
        number_of_questions=len(questions),
        number_of_samples=sum(question.samples for question in questions),
        number_of_errors=sum(question.errors for question in questions),
    )


def _run_warnings(run: NamedRun) -> Iterable[str]:
    stopped = run.results.record.get("stopped")
    if isinstance(stopped, Mapping):
        number = stopped.get("left_out")
        left_out = ""
        if isinstance(number, int) and number:
            left_out = f"; {counted(number, 'sample was', 'samples were')} not asked"
        yield f"Run {run.letter} ended before its time ({stopped.get('message')}){left_out}."
    if (upper := run.numbers.mean_of_upper_bound(STEPS_SCORE)) is not None:
        scores = (question.score(STEPS_SCORE) for question in run.numbers.questions.values())
        between = bounds_text(fmean(score for score in scores if score is not None), upper)
        means = f": its {STEPS_SCORE} is {between}" if between else ""
        yield (
            f"{run.letter} has undecided steps, which count 0{means}; if a question that has some changed, that is "
            "marked as undecided."
        )


def _metric_warnings(pairing: Pairing, wanted: Sequence[str] | None, pair: PairComparison) -> Iterable[str]:
    """Warn about metrics that only one run has, and about those without a verdict, as only one template has them."""
    for run, other in ((pairing.a, pairing.b), (pairing.b, pairing.a)):
        measured = run.numbers.measured()
        own = (each for each in wanted or measured if each in measured and not pairing.can_compare(each))
        # The cost of judges says nothing about an agent.
        if alone := [metric for metric in own if metric_spec(metric).spent_by != "judges"]:
            yield f"Only {run.letter} has {', '.join(alone)}; {other.letter} has not, so that is not compared."
    alone = [metric.metric for metric in pair.metrics if metric.number_of_templates == 1 < pair.number_of_templates]
    if alone:
        which = f"{alone[0]} is" if len(alone) == 1 else f"{len(alone)} metrics, such as {alone[0]}, are"
        them = plural(len(alone), "it", "them")
        yield f"{which} measured in one template only, so no conclusion is possible about {them}."


def _pair(
    pairing: Pairing, summary: RunSummary, metrics: Sequence[str], main: str | None, chosen_from: int
) -> PairComparison:
    values = {metric: pairing.values(metric) for metric in metrics if pairing.can_compare(metric)}
    compared = [
        MetricValues(metric_spec(metric), pairing.by_template(pairs), pairing.left_out(metric))
        for metric, pairs in values.items()
        if pairs
    ]
    a, b, template_ids = pairing.a, pairing.b, pairing.template_ids()
    number_of_templates = len(set(template_ids.values()))
    flips: tuple[Flip, ...] = ()
    # What was spent differs in nearly every question, so it has no flips.
    if main in values and not metric_spec(main).is_spent:
        flips = flips_between(a.results, b.results, values[main], template_ids, metric_spec(main), b.letter)
    questions = tuple(
        ComparedQuestion(each, template_id, {metric: pairs[each] for metric, pairs in values.items() if each in pairs})
        for each, template_id in template_ids.items()
    )
    return PairComparison(
        run=summary,
        number_of_questions=len(pairing.common),
        number_of_templates=number_of_templates,
        errors_a=sum(question.errors for question, _ in pairing.questions()),
        errors_b=sum(question.errors for _, question in pairing.questions()),
        left_out_a=len(a.numbers.questions) - len(pairing.common),
        left_out_b=len(b.numbers.questions) - len(pairing.common),
        metrics=compared_metrics(
            compared, main=main, number_of_templates=number_of_templates, letter=b.letter, chosen_from=chosen_from
        ),
        flips=flips,
        questions=questions,
    )
