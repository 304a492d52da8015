"""Coverage and width of intervals of a run's mean: ``mean_interval`` and other methods.

Run it as ``python benchmarks/interval_coverage.py``; it takes a minute or two and needs the extra ``stats``. Runs with
a known true mean are simulated in cells: true means from 0.5 to 0.97; 5, 10, 30 and 100 templates with 4 questions on
average; templates of equal size, of geometrically decreasing sizes, and with one that has half of the questions; scores
that correlate by 0 to 0.5 within a template; scores of 0 or 1, graded ones (fifths), and means of three repeats. How
good an agent is at a template is drawn from a beta distribution. The intervals:

* ``mean_interval``: this package's, vectorised over the runs of a cell; on some runs of each cell it is checked against
  the function itself.
* ``t``: the cluster-robust one, with CR2 and the degrees of freedom of Bell and McCaffrey.
* ``wilson``: Wilson's on the effective sample size by CR2 alone, with Student's quantile.
* ``beta``: Clopper and Pearson's on the same, adjusted as by Korn and Graubard.
* ``bootstrap``: percentiles of means over resampled templates, widened for few templates; on fewer runs.
* ``kappa``: for Cohen's kappa, ``kappa_interval`` compared with κ ± z · its standard error ("wald", of those that
  exist), for kappa from 0 to 0.95, 2 to 4 answers of which the most frequent has a share of 0.33 to 0.9, raters with
  other shares, 20 to 200 items.

The goal is a coverage of ``mean_interval`` of at least 0.93 in every cell, and the same of ``kappa_interval``. Runs in
which any two scores of a template are either drawn independently or identical ("all alike") are shown for comparison:
few templates fail then, and as a whole.

``--quick`` simulates a tenth of the runs, ``--markdown`` prints the tables for the docs. The exit code is 1 if the goal
is missed.
"""

import argparse
import itertools
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from scipy import stats

from graphrag_eval_lc.metrics import kappa_interval
from graphrag_eval_lc.metrics.agreement import KAPPA_PRIOR
from graphrag_eval_lc.metrics.intervals import PRIOR_WEIGHT, mean_interval

RUNS, RUNS_OF_BOOTSTRAP, DRAWS, CHECKED = 4000, 400, 999, 5
GOAL: Final = 0.93
CONFIDENCE: Final = 0.95
MEANS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.97)
TEMPLATES = (5, 10, 30, 100)
PER_TEMPLATE = 4
CORRELATIONS = (0.0, 0.1, 0.3, 0.5)
FIFTHS, REPEATS = 5, 3

Array = Any
Ends = tuple[Array, Array]
METHODS = ("mean_interval", "t", "wilson", "beta", "bootstrap")


class Cell(NamedTuple):
    """The parameters shared by the runs of a cell."""

    scores: str
    templates: int
    sizes: str
    correlation: float
    mean: float


class Drawn(NamedTuple):
    """The runs of a cell: sums and sums of squares by run and template, and the sizes of the templates."""

    sums: Array
    squares: Array
    sizes: Array


# --- the runs ---------------------------------------------------------------------------------------------------------


def equal(templates: int) -> Array:
    """Return sizes of equal templates."""
    return np.full(templates, PER_TEMPLATE)


def geometric(templates: int) -> Array:
    """Return geometrically decreasing sizes, down to 1."""
    shares: Array = (0.8 if templates > 5 else 0.5) ** np.arange(templates)
    sizes: Array = np.round(shares / shares.sum() * PER_TEMPLATE * templates)
    return sizes.clip(1).astype(int)


def half(templates: int) -> Array:
    """Return sizes of which the first is the sum of the others."""
    others = np.full(templates - 1, max(1, PER_TEMPLATE * templates // 2 // (templates - 1)))
    return np.concatenate([[others.sum()], others])


SIZES: Final[dict[str, Callable[[int], Array]]] = {"equal": equal, "geometric": geometric, "one holds half": half}


def cells() -> Iterator[Cell]:
    """Yield all cells."""
    everything = itertools.product(("binary", "graded", "repeats", "all alike"), TEMPLATES, SIZES, CORRELATIONS, MEANS)
    yield from itertools.starmap(Cell, everything)


def drawn_runs(cell: Cell, runs: int, random: np.random.Generator) -> Drawn:
    """Simulate the runs of a cell."""
    sizes = SIZES[cell.sizes](cell.templates)
    chances = _chances(cell, (runs, cell.templates), random)
    if cell.scores in ("binary", "all alike"):
        sums = np.asarray(random.binomial(sizes, chances), dtype=float)
        return Drawn(sums, sums, sizes)
    sums, squares = np.zeros(chances.shape), np.zeros(chances.shape)
    for template, size in enumerate(sizes):
        scores = _scores(cell.scores, np.repeat(chances[:, template, None], size, axis=1), random)
        sums[:, template], squares[:, template] = scores.sum(axis=1), (scores**2).sum(axis=1)
    return Drawn(sums, squares, sizes)


def _chances(cell: Cell, shape: tuple[int, int], random: np.random.Generator) -> Array:
    """Draw how good the agent is at each template."""
    if cell.correlation == 0:
        return np.full(shape, cell.mean)
    if cell.scores == "all alike":
        whole = (random.random(shape) < cell.mean).astype(float)
        return np.where(random.random(shape) < cell.correlation, whole, cell.mean)
    strength = (1 - cell.correlation) / cell.correlation
    return random.beta(cell.mean * strength, (1 - cell.mean) * strength, shape)


def _scores(kind: str, chances: Array, random: np.random.Generator) -> Array:
    """Draw graded scores or means of repeats whose expected values are the chances."""
    strength, steps = (3.0, FIFTHS) if kind == "graded" else (1.0, REPEATS)
    of_question = random.beta(np.maximum(chances * strength, 1e-3), np.maximum((1 - chances) * strength, 1e-3))
    # If a chance is 0 or 1, the beta distribution is degenerate.
    of_question = np.where((chances <= 0) | (chances >= 1), chances, of_question)
    return random.binomial(steps, of_question) / steps


# --- the intervals ----------------------------------------------------------------------------------------------------


class Robust(NamedTuple):
    """The mean of each run, the square of its cluster-robust standard error, and its degrees of freedom."""

    means: Array
    variances: Array
    freedom: float


def robust_of(drawn: Drawn) -> Robust:
    """Return the cluster-robust means, like ``cluster_robust_mean``."""
    number, shares = drawn.sizes.sum(), drawn.sizes / drawn.sizes.sum()
    means = drawn.sums.sum(axis=1) / number
    residuals = drawn.sums - means[:, None] * drawn.sizes
    ratios = shares**2 / (1 - shares)
    freedom = 1 / ((shares**2).sum() + ratios.sum() ** 2 - (ratios**2).sum())
    return Robust(means, (residuals**2 / (1 - shares)).sum(axis=1) / number**2, float(freedom))


def t_ends(drawn: Drawn, robust: Robust) -> Ends:
    """Return the ends of the t intervals, clipped to 0 and 1."""
    half_width = stats.t.ppf((1 + CONFIDENCE) / 2, robust.freedom) * np.sqrt(robust.variances)
    return np.clip(robust.means - half_width, 0, 1), np.clip(robust.means + half_width, 0, 1)


def _effective(drawn: Drawn, robust: Robust, variances: Array) -> tuple[Array, Array]:
    """Return the effective sample sizes, and the matching quantiles."""
    number, squares = drawn.sizes.sum(), (drawn.sizes**2).sum()
    spreads = robust.means * (1 - robust.means)
    is_extreme = spreads <= 1e-12
    known = np.clip(spreads / np.maximum(variances, 1e-12), 1, number)
    sizes = np.where(is_extreme | (variances <= 1e-12), number**2 / squares, known)
    upper = (1 + CONFIDENCE) / 2
    return sizes, np.where(is_extreme, stats.norm.ppf(upper), stats.t.ppf(upper, robust.freedom))


def wilson_ends(drawn: Drawn, robust: Robust, variances: Array | None = None) -> Ends:
    """Return the ends of Wilson's intervals on the effective sample sizes."""
    sizes, quantiles = _effective(drawn, robust, robust.variances if variances is None else variances)
    ratio = quantiles**2 / sizes
    centres = (robust.means + ratio / 2) / (1 + ratio)
    half_width = np.sqrt(ratio * robust.means * (1 - robust.means) + ratio**2 / 4) / (1 + ratio)
    return centres - half_width, centres + half_width


def beta_ends(drawn: Drawn, robust: Robust) -> Ends:
    """Return the ends of Clopper and Pearson's intervals on the effective sample sizes."""
    sizes, quantiles = _effective(drawn, robust, robust.variances)
    sizes = sizes * (stats.norm.ppf((1 + CONFIDENCE) / 2) / quantiles) ** 2
    successes, rest = robust.means * sizes, (1 - robust.means) * sizes
    tail = (1 - CONFIDENCE) / 2
    low = stats.beta.ppf(tail, np.maximum(successes, 1e-9), rest + 1)
    high = stats.beta.ppf(1 - tail, successes + 1, np.maximum(rest, 1e-9))
    return np.where(successes > 0, low, 0), np.where(rest > 0, high, 1)


def our_ends(drawn: Drawn, robust: Robust) -> Ends:
    """Return the ends of ``mean_interval`` for all runs at once."""
    sums, squared, sizes = drawn
    number, templates, squares = sizes.sum(), len(sizes), (sizes**2).sum()
    between = ((sums / sizes - robust.means[:, None]) ** 2 * sizes).sum(axis=1) / (templates - 1)
    within = np.maximum((squared - sums**2 / sizes).sum(axis=1), 0) / max(number - templates, 1)
    of_groups = (between - within) * (templates - 1) / (number - squares / number)
    total = of_groups + within
    is_some = total > 1e-12
    correlations = np.where(is_some, np.clip(of_groups / np.where(is_some, total, 1), 0, 1), 1)
    telling = np.minimum(templates - 1, number * np.minimum(robust.means, 1 - robust.means))
    drawn_up = (correlations * telling + PRIOR_WEIGHT) / (telling + PRIOR_WEIGHT)
    model = np.maximum(total, 0) * ((1 - drawn_up) * number + drawn_up * squares) / number**2
    return wilson_ends(drawn, robust, np.maximum(robust.variances, model))


def bootstrap_ends(drawn: Drawn, random: np.random.Generator) -> Ends:
    """Return percentiles of means over resampled templates, at levels widened for few templates."""
    templates = len(drawn.sizes)
    weights = random.multinomial(templates, np.full(templates, 1 / templates), DRAWS).astype(float)
    means = (weights @ drawn.sums.T) / (weights @ drawn.sizes)[:, None]
    widening = np.sqrt(templates / (templates - 1)) * stats.t.ppf((1 + CONFIDENCE) / 2, templates - 1)
    low, high = np.quantile(means, [stats.norm.sf(widening), stats.norm.cdf(widening)], axis=0)
    return low, high


# --- results ---------------------------------------------------------------------------------------------------------


class Measured(NamedTuple):
    """Coverage and mean width of a method's intervals in a cell."""

    coverage: float
    width: float


def measured(cell: Cell, runs: int, random: np.random.Generator) -> dict[str, Measured]:
    """Simulate a cell's runs, and measure all methods."""
    drawn = drawn_runs(cell, runs, random)
    robust = robust_of(drawn)
    ours = our_ends(drawn, robust)
    check_twin(drawn, ours)
    few = Drawn(drawn.sums[:RUNS_OF_BOOTSTRAP], drawn.squares[:RUNS_OF_BOOTSTRAP], drawn.sizes)
    ends = {
        "mean_interval": ours,
        "t": t_ends(drawn, robust),
        "wilson": wilson_ends(drawn, robust),
        "beta": beta_ends(drawn, robust),
        "bootstrap": bootstrap_ends(few, random),
    }
    return {
        method: Measured(
            float(np.mean((low <= cell.mean + 1e-9) & (cell.mean - 1e-9 <= high))), float(np.mean(high - low))
        )
        for method, (low, high) in ends.items()
    }


def check_twin(drawn: Drawn, ours: Ends) -> None:
    """Compare the vectorised intervals with the package's, if the scores follow from the sums.

    Raises:
        SystemExit: They differ.
    """
    if drawn.sums is not drawn.squares:
        return
    labels = np.repeat(np.arange(len(drawn.sizes)), drawn.sizes).tolist()
    for run in range(min(CHECKED, len(drawn.sums))):
        passed = drawn.sums[run].astype(int)
        scores = [float(place < ones) for ones, size in zip(passed, drawn.sizes, strict=True) for place in range(size)]
        interval = mean_interval(scores, labels, CONFIDENCE)
        if interval is None or not np.allclose(interval[:2], [ours[0][run], ours[1][run]], atol=1e-9):
            sys.exit(f"the vectorised interval {ours[0][run]}, {ours[1][run]} is not that of mean_interval: {interval}")


def print_tables(found: dict[Cell, dict[str, Measured]], *, is_markdown: bool) -> None:
    """Print the lowest coverage and the mean width by scores, templates and sizes."""
    headings = ["scores", "templates", "sizes", *METHODS]
    for title, attribute in (("The lowest coverage of the cells", "coverage"), ("The mean width", "width")):
        print(f"\n{title}\n")
        print(_line(headings, is_markdown=is_markdown))
        if is_markdown:
            print(f"|{'---|' * len(headings)}")
        rows: dict[tuple[str, int, str], list[dict[str, Measured]]] = defaultdict(list)
        for cell, by_method in found.items():
            rows[cell.scores, cell.templates, cell.sizes].append(by_method)
        for key, of_row in rows.items():
            values = [[getattr(each[method], attribute) for each in of_row] for method in METHODS]
            numbers = [min(each) if attribute == "coverage" else sum(each) / len(each) for each in values]
            print(_line([*map(str, key), *(f"{number:.3f}" for number in numbers)], is_markdown=is_markdown))


def _line(cells_of_row: list[str], *, is_markdown: bool) -> str:
    if is_markdown:
        return f"| {' | '.join(cells_of_row)} |"
    return "  ".join(f"{text:>14}" for text in cells_of_row)


# --- Cohen's kappa ----------------------------------------------------------------------------------------------------

ITEMS: Final = (20, 30, 50, 100, 200)
KAPPAS: Final = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95)
ANSWERS: Final = (
    (0.5, 0.5),
    (0.7, 0.3),
    (0.8, 0.2),
    (0.9, 0.1),
    (1 / 3,) * 3,
    (0.6, 0.25, 0.15),
    (0.8, 0.1, 0.1),
    (0.7, 0.1, 0.1, 0.1),
)
# One rater is stricter: the shares of the cells.
UNLIKE: Final = (
    ((0.5, 0.2), (0.05, 0.25)),
    ((0.7, 0.15), (0.02, 0.13)),
    ((0.4, 0.3), (0.02, 0.28)),
    ((0.75, 0.02), (0.1, 0.13)),
    ((0.85, 0.06), (0.01, 0.08)),
)


def kappa_tables() -> Iterator[Array]:
    """Yield the cell shares of tables with a known kappa."""
    for shares, kappa in itertools.product(ANSWERS, KAPPAS):
        yield kappa * np.diag(shares) + (1 - kappa) * np.outer(shares, shares)
    yield from map(np.array, UNLIKE)


def kappas_of(tables: Array) -> Ends:
    """Return the kappa of each table (NaN if undefined), and its standard error."""
    number = tables.sum(axis=(1, 2))
    shares = tables / number[:, None, None]
    first, second = shares.sum(axis=2), shares.sum(axis=1)
    same = np.einsum("tii->ti", shares)
    expected = (first * second).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        kappas = np.where(expected < 1 - 1e-12, (same.sum(axis=1) - expected) / (1 - expected), np.nan)
        missed = 1 - kappas
        pairs = shares * (second[:, :, None] + first[:, None, :]) ** 2
        other = pairs.sum(axis=(1, 2)) - np.einsum("tii->ti", pairs).sum(axis=1)
        variance = (same * (1 - (first + second) * missed[:, None]) ** 2).sum(axis=1)
        variance += missed**2 * other - (kappas - expected * missed) ** 2
        return kappas, np.sqrt(np.maximum(variance, 0) / number) / (1 - expected)


def kappa_coverage(runs: int, random: np.random.Generator, *, is_markdown: bool) -> bool:
    """Measure and print the intervals of kappa, and return whether the goal is met."""
    rows: dict[tuple[int, int], list[tuple[float, ...]]] = defaultdict(list)
    upper = (1 + CONFIDENCE) / 2
    for shares, items in itertools.product(kappa_tables(), ITEMS):
        answers, true = len(shares), float(kappas_of(shares[None])[0][0])
        tables = random.multinomial(items, shares.ravel(), runs).reshape(-1, answers, answers).astype(float)
        tables = tables[~np.isnan(kappas_of(tables)[0])]
        kappas, errors = kappas_of(tables)
        centres, more = kappas_of(tables + KAPPA_PRIOR / answers**2)
        half = stats.t.ppf(upper, items - 1) * more
        low, high = (
            np.clip(np.minimum(kappas, centres - half), -1, 1),
            np.clip(np.maximum(kappas, centres + half), -1, 1),
        )
        for table, *ends in zip(tables[:CHECKED].astype(int).tolist(), low, high, strict=False):
            if not np.allclose(kappa_interval(table) or (), ends, atol=2e-3):
                sys.exit(f"the vectorised interval {ends} is not that of kappa_interval: {kappa_interval(table)}")
        wald, is_there = stats.norm.ppf(upper) * errors, errors > 1e-6
        is_covered = is_there & (np.abs(kappas - true) <= wald + 1e-9)
        covered = (low <= true + 1e-9) & (true - 1e-9 <= high)
        numbers = (
            covered.mean(),
            is_covered.sum() / is_there.sum(),
            1 - is_there.mean(),
            (high - low).mean(),
            2 * wald[is_there].mean(),
        )
        rows[answers, items].append(tuple(map(float, numbers)))
    print("\nKappa: the lowest coverage of the cells, the most without an interval, the mean width\n")
    headings = ["answers", "items", "kappa_interval", "wald", "wald is missing", "width", "width of wald"]
    print(_line(headings, is_markdown=is_markdown))
    if is_markdown:
        print(f"|{'---|' * len(headings)}")
    for key, cells_of_row in rows.items():
        covered, wald, missing, width, of_wald = zip(*cells_of_row, strict=True)
        numbers = (min(covered), min(wald), max(missing), float(np.mean(width)), float(np.mean(of_wald)))
        print(_line([*map(str, key), *(f"{number:.3f}" for number in numbers)], is_markdown=is_markdown))
    lowest, allowed = min(min(each)[0] for each in rows.values()), GOAL - 2.5 * np.sqrt(GOAL * (1 - GOAL) / runs)
    is_met = bool(lowest >= allowed)
    print(f"\ncoverage of kappa_interval at least {GOAL} in every cell: {lowest:.3f}: {'met' if is_met else 'NOT MET'}")
    return is_met


def main() -> int:
    """Measure all cells, print the tables and whether the goal is met, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs")
    parser.add_argument("--kappa", action="store_true", help="only the intervals of kappa")
    parser.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    options = parser.parse_args()
    runs = RUNS // 10 if options.quick else RUNS
    random = np.random.default_rng(20)
    is_kappa_met = kappa_coverage(runs, np.random.default_rng(21), is_markdown=options.markdown)
    if options.kappa:
        return 0 if is_kappa_met else 1
    found = {cell: measured(cell, runs, random) for cell in cells()}
    print_tables(found, is_markdown=options.markdown)
    # With fewer runs, some cells miss the goal by chance.
    allowed = GOAL - (2.5 * np.sqrt(GOAL * (1 - GOAL) / runs) if options.quick else 0)
    below = {cell: each for cell, each in found.items() if each["mean_interval"].coverage < allowed}
    short = {cell: each for cell, each in below.items() if cell.scores != "all alike"}
    print(f"\n{len(found):,} cells of {runs:,} runs; of mean_interval below {allowed:.3f}:")
    for cell, each in sorted(below.items(), key=lambda item: item[1]["mean_interval"].coverage):
        others = ", ".join(f"{method} {each[method].coverage:.3f}" for method in METHODS[1:])
        print(f"  {each['mean_interval'].coverage:.3f}  {tuple(cell)}  ({others})")
    print(f"coverage at least {GOAL} in every cell drawn from beta distributions: {'NOT MET' if short else 'met'}")
    return 1 if short or not is_kappa_met else 0


if __name__ == "__main__":
    sys.exit(main())
