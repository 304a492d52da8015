"""How often tests of a difference detect one that does not exist, and one that does: ``MeanDifference`` and others.

Run it as ``python benchmarks/difference_tests.py``; it takes some minutes and needs the extra ``stats``. Pairs of runs
with a known true difference are simulated for 2 to 100 templates with 4 questions on average (or one each): templates
of equal size, of geometrically decreasing sizes, and with one that has half of the questions. The tests:

* ``MeanDifference``: this package's, vectorised over the pairs of a cell; on some pairs of each cell it is checked
  against the class itself.
* ``old pair``: sign flips of whole templates for p (``permutation_p_value``), and for the interval percentiles of means
  over resampled templates, widened for few templates.
* ``t``: the t test with the cluster-robust standard error and the degrees of freedom of Bell and McCaffrey.

The goals: ``MeanDifference`` detects a difference between symmetric runs in at most 6 of 100 pairs of every cell (plus
simulation error) and never contradicts its interval; the interval covers the true difference at least as often as the
old pair's (minus 2 of 100); the range of needed questions contains the true number in at least 75 of 100; from 11
templates on ``power`` is within 0.1 of the share detected, for binary and graded scores. Skewed runs (the true
difference is 0, but a few templates gain much and many lose a little) are shown for comparison, and described in
docs/why/differences.md.

``--quick`` simulates a tenth of the pairs, ``--markdown`` prints the tables for the docs. The exit code is 1 if a goal
is missed.
"""

import argparse
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from interval_coverage import SIZES
from scipy import stats

from graphrag_eval_lc.metrics.difference import MeanDifference, choices_of_clusters, questions_needed

PAIRS, PAIRS_OF_OLD, DRAWS, CHECKED = 4000, 1000, 999, 3
LEVEL: Final = 0.05
GOAL, GOAL_OF_RANGE, GOAL_OF_POWER, FEWEST_FOR_POWER = 0.06, 0.75, 0.1, 11
TEMPLATES = (2, 3, 5, 6, 8, 11, 20, 30, 100)
# With so few templates all selections are used, as in the class.
ALL_CHOICES_UP_TO = 13

Array = Any
Draw = Callable[[Array, Array, np.random.Generator], Array]


class Test(NamedTuple):
    """The outcome of a test for all pairs: whether it detects a difference, and the ends of its intervals."""

    found: Array
    low: Array
    high: Array


# --- the pairs of runs ------------------------------------------------------------------------------------------------
# Each function simulates the differences of questions (pairs by questions), given the template of each question.


def same_agent(churn: float, correlation: float) -> Draw:
    """Simulate one agent twice: a share of the questions flips, in either direction, together within a template."""

    def draw(of_template: Array, shape: Array, random: np.random.Generator) -> Array:
        pairs, templates = shape
        chances = np.full((pairs, templates), churn)
        if correlation:
            strength = (1 - correlation) / correlation
            chances = random.beta(churn * strength, (1 - churn) * strength, (pairs, templates))
        turned = random.random((pairs, len(of_template))) < chances[:, of_template]
        return turned * random.choice([-1.0, 1.0], turned.shape)

    return draw


def whole_templates(churn: float) -> Draw:
    """Simulate templates that flip as a whole, in either direction."""

    def draw(of_template: Array, shape: Array, random: np.random.Generator) -> Array:
        turned: Array = (random.random(shape) < churn) * random.choice([-1.0, 1.0], shape)
        return turned[:, of_template]

    return draw


def graded(of_template: Array, shape: Array, random: np.random.Generator) -> Array:
    """Simulate one agent twice with scores in fifths."""
    good = random.beta(1.5, 0.5, (shape[0], len(of_template)))
    return (random.binomial(5, good) - random.binomial(5, good)) / 5


def normal(correlation: float, mean: float = 0.0) -> Draw:
    """Simulate normal differences that correlate within a template."""

    def draw(of_template: Array, shape: Array, random: np.random.Generator) -> Array:
        shared: Array = random.normal(size=shape) * np.sqrt(correlation)
        return (
            mean + shared[:, of_template] + random.normal(size=(shape[0], len(of_template))) * np.sqrt(1 - correlation)
        )

    return draw


def spread(deviation: float, mean: float) -> Draw:
    """Simulate graded differences: normal with this mean and deviation, slightly correlated within templates."""
    draw = normal(0.1)
    return lambda of_template, shape, random: mean + deviation * draw(of_template, shape, random)


def fifths(before: float, after: float) -> Draw:
    """Simulate two agents with these means and scores in fifths; the same templates are hard for both."""

    def draw(of_template: Array, shape: Array, random: np.random.Generator) -> Array:
        by_template: Array = random.beta(before * 3, (1 - before) * 3, shape)
        good = by_template[:, of_template]
        return (random.binomial(5, good * after / before) - random.binomial(5, good)) / 5

    return draw


def skewed(kind: str) -> Draw:
    """Simulate differences with mean 0 of which a few are large: exponential or lognormal templates."""

    def draw(of_template: Array, shape: Array, random: np.random.Generator) -> Array:
        large: Array = (
            random.exponential(size=shape) - 1 if kind == "exponential" else random.lognormal(size=shape) - np.exp(0.5)
        )
        return large[:, of_template] + 0.5 * random.normal(size=(shape[0], len(of_template)))

    return draw


def few_fixes(share: float) -> Draw:
    """Simulate templates of which a share gains much while the others lose a little; the mean is 0."""

    def draw(of_template: Array, shape: Array, random: np.random.Generator) -> Array:
        gain = min(1.0, 0.3 * (1 - share) / share)
        fixed: Array = random.random(shape) < share
        is_fixed = fixed[:, of_template]
        chance = np.where(is_fixed, gain, gain * share / (1 - share))
        return np.where(random.random(chance.shape) < chance, np.where(is_fixed, 1.0, -1.0), 0.0)

    return draw


def breaks(share: float) -> Draw:
    """Simulate a worse agent: a share of the questions breaks, together within a template, and a few are fixed."""

    def draw(of_template: Array, shape: Array, random: np.random.Generator) -> Array:
        chances: Array = random.beta(share * 7 / 3, (1 - share) * 7 / 3, shape)
        broken = chances[:, of_template]
        at = random.random(broken.shape)
        return np.where(at < broken, -1.0, np.where(at > 1 - 0.03 * (1 - broken), 1.0, 0.0))

    return draw


def drop(before: float, after: float) -> Draw:
    """Simulate two agents with these means, for whom the same templates are hard; answers are drawn independently."""

    def draw(of_template: Array, shape: Array, random: np.random.Generator) -> Array:
        by_template: Array = random.beta(before * 3, (1 - before) * 3, shape)
        chances = by_template[:, of_template]
        uniform = random.random((2, *chances.shape))
        return (uniform[0] < chances * after / before).astype(float) - (uniform[1] < chances)

    return draw


SYMMETRIC: Final[dict[str, Draw]] = {
    "3 % of questions turn": same_agent(0.03, 0.0),
    "10 % turn": same_agent(0.1, 0.0),
    "10 % turn, correlated": same_agent(0.1, 0.3),
    "30 % turn": same_agent(0.3, 0.0),
    "10 % of templates turn": whole_templates(0.1),
    "50 % of templates turn": whole_templates(0.5),
    "90 % of templates turn": whole_templates(0.9),
    "graded": graded,
    "normal": normal(0.0),
    "normal, correlated": normal(0.5),
}
SKEWED: Final[dict[str, Draw]] = {
    "exponential": skewed("exponential"),
    "lognormal": skewed("lognormal"),
    "5 % of templates fixed": few_fixes(0.05),
    "10 % fixed": few_fixes(0.1),
    "20 % fixed": few_fixes(0.2),
}
# with the true difference
EFFECTS: Final[dict[str, tuple[Draw, float]]] = {
    "0.9 → 0.7": (drop(0.9, 0.7), -0.2),
    "0.8 → 0.75": (drop(0.8, 0.75), -0.05),
    "10 % break": (breaks(0.1), -0.1 + 0.03 * 0.9),
    "25 % break": (breaks(0.25), -0.25 + 0.03 * 0.75),
    "normal, half a spread": (normal(0.3, 0.5), 0.5),
}


# --- the tests --------------------------------------------------------------------------------------------------------


class Sums(NamedTuple):
    """The differences of all pairs as tests need them: sums by template, and squares of the non-zero ones."""

    totals: Array
    sizes: Array
    squares: Array


def sums_of(differences: Array, sizes: Array) -> Sums:
    """Return the sums by template, and the mean square of the non-zero differences (1 if there are none)."""
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    number = (differences != 0).sum(axis=1)
    squares = np.where(number, (differences**2).sum(axis=1) / np.maximum(number, 1), 1.0)
    return Sums(np.add.reduceat(differences, starts, axis=1), sizes, squares)


class Robust(NamedTuple):
    """The means, their residuals by template, the variances, and the degrees of freedom."""

    means: Array
    residuals: Array
    variances: Array
    freedom: float


def robust_of(sums: Sums) -> Robust:
    """Return the cluster-robust means, like ``cluster_robust_mean``."""
    number, shares = sums.sizes.sum(), sums.sizes / sums.sizes.sum()
    means = sums.totals.sum(axis=1) / number
    residuals = sums.totals - means[:, None] * sums.sizes
    ratios = shares**2 / (1 - shares)
    freedom = 1 / ((shares**2).sum() + ratios.sum() ** 2 - (ratios**2).sum())
    return Robust(means, residuals, (residuals**2 / (1 - shares)).sum(axis=1) / number**2, float(freedom))


def t_test(sums: Sums) -> Test:
    """Test with Student's t and the cluster-robust standard error only."""
    robust = robust_of(sums)
    half = stats.t.ppf(1 - LEVEL / 2, robust.freedom) * np.sqrt(robust.variances)
    return Test(np.abs(robust.means) > half + 1e-12, robust.means - half, robust.means + half)


def choices_for(templates: int) -> Array:
    """Return selections of templates; with many templates only the first ones."""
    chosen = np.concatenate([*choices_of_clusters(templates)])
    return chosen if templates <= ALL_CHOICES_UP_TO else chosen[:DRAWS]


def flips(sums: Sums) -> tuple[Array, Array, Array]:
    """Return the p-values of the sign flips, and the means of selected templates at the ends (infinite if beyond)."""
    chosen = choices_for(len(sums.sizes))
    means = (sums.totals @ chosen.T) / (chosen @ sums.sizes)
    means[np.abs(means) <= 1e-9 * np.abs(sums.totals / sums.sizes).max(axis=1)[:, None]] = 0
    mean = sums.totals.sum(axis=1)[:, None]
    beyond = np.where(mean > 0, means <= 0, means >= 0).sum(axis=1)
    p_values = np.where(np.abs(mean[:, 0]) < 1e-9, 1, np.minimum(1, 2 * (beyond + 1) / (len(chosen) + 1)))
    number = int(np.ceil(LEVEL * (len(chosen) + 1) / 2 - 1e-9)) - 1
    at = max(number, 1) - 1
    parted = np.partition(means, (at, len(chosen) - 1 - at), axis=1)
    return p_values, parted[:, at], parted[:, -1 - at]


def mean_difference(sums: Sums) -> Test:
    """Test like ``MeanDifference``, for all pairs at once."""
    robust = robust_of(sums)
    error = np.sqrt(robust.variances + sums.squares / sums.sizes.sum() ** 2)
    spread = (robust.residuals**2).sum(axis=1)
    is_some = spread > 1e-12
    skewness = np.where(is_some, (robust.residuals**3).sum(axis=1) / np.where(is_some, spread, 1) ** 1.5, 0)
    quantile = stats.t.ppf(1 - LEVEL / 2, robust.freedom)
    more = 1 / 6 + quantile**2 / 3
    above, below = quantile + np.maximum(-skewness, 0) * more, quantile + np.maximum(skewness, 0) * more
    p_values, low, high = flips(sums)
    differ = (np.abs(sums.totals) > 1e-9).sum(axis=1)
    p_values = np.maximum(p_values, 2.0 ** (1 - np.minimum(differ, 60)))
    ratio = robust.means / error
    found = ((ratio > above) | (ratio < -below)) & (p_values < LEVEL)
    low = np.minimum(low, robust.means - above * error)
    high = np.maximum(high, robust.means + below * error)
    return Test(found, np.where(found, low, np.minimum(low, 0)), np.where(found, high, np.maximum(high, 0)))


def old_pair(sums: Sums, random: np.random.Generator) -> Test:
    """Test with sign flips, and percentiles of means over resampled templates; on fewer pairs."""
    few = Sums(sums.totals[:PAIRS_OF_OLD], sums.sizes, sums.squares[:PAIRS_OF_OLD])
    templates = len(sums.sizes)
    weights = random.multinomial(templates, np.full(templates, 1 / templates), DRAWS).astype(float)
    means = (weights @ few.totals.T) / (weights @ few.sizes)[:, None]
    widening = np.sqrt(templates / (templates - 1)) * stats.t.ppf(1 - LEVEL / 2, templates - 1)
    low, high = np.quantile(means, [stats.norm.sf(widening), stats.norm.cdf(widening)], axis=0)
    return Test(flips(few)[0] < LEVEL, low, high)


def contradictions(test: Test) -> float:
    """Return the share of pairs for which verdict and interval disagree."""
    return float(np.mean(test.found != ((test.low > 1e-12) | (test.high < -1e-12))))


def check_twin(differences: Array, of_template: Array, test: Test) -> None:
    """Compare the vectorised test with the class, for cells in which both use all selections of templates.

    Raises:
        SystemExit: They differ, or the class contradicts itself.
    """
    for pair in range(min(CHECKED, len(differences))):
        of_pair = differences[pair]
        groups = [of_pair[of_template == template].tolist() for template in range(of_template[-1] + 1)]
        found = MeanDifference(groups, scale=1.0)
        interval = found.interval(1 - LEVEL)
        if interval is None or (found.p_value < 1 - (1 - LEVEL)) is interval.low <= 0 <= interval.high:
            sys.exit(f"p = {found.p_value} contradicts {interval} for {groups}")
        if len(groups) <= ALL_CHOICES_UP_TO:
            ours = (found.p_value < LEVEL, *interval)
            if not np.allclose(ours, [each[pair] for each in test], atol=1e-9):
                sys.exit(f"the vectorised test {[each[pair] for each in test]} is not that of the class: {ours}")


# --- results ---------------------------------------------------------------------------------------------------------


def drawn(draw: Draw, sizes: Array, pairs: int, random: np.random.Generator) -> tuple[Array, Array]:
    """Return the differences of simulated pairs of runs, and the template of each question."""
    of_template = np.repeat(np.arange(len(sizes)), sizes)
    return draw(of_template, (pairs, len(sizes)), random), of_template


def print_table(title: str, headings: Sequence[str], rows: Iterable[Sequence[object]], *, is_markdown: bool) -> None:
    """Print a table."""
    print(f"\n{title}\n")
    texts = [[f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    if is_markdown:
        print("\n".join(f"| {' | '.join(row)} |" for row in [headings, ["---"] * len(headings), *texts]))
    else:
        print("\n".join("  ".join(f"{text:>15}" for text in row) for row in [headings, *texts]))


def goal(what: str, measured: str, *, is_met: bool) -> bool:
    """Print whether a goal is met, and return it."""
    print(f"goal: {what}: {measured}: {'met' if is_met else 'NOT MET'}")
    return is_met


class Nulls(NamedTuple):
    """The largest shares of pairs, by cell of a row, in which a non-existent difference is detected."""

    ours: float
    flips: float
    t: float
    contradictions: float


def nulls(pairs: int, random: np.random.Generator, *, is_markdown: bool) -> bool:
    """Measure and print false positives and contradictions, and return whether the goals are met."""
    rows, worst, ours_contradict = [], 0.0, 0.0
    for kind, per_template, (name, sizes_of), templates in _rows():
        sizes = np.ones(templates, int) if per_template == 1 else sizes_of(templates)
        cells = []
        for draw in (SYMMETRIC if kind == "symmetric" else SKEWED).values():
            differences, of_template = drawn(draw, sizes, pairs, random)
            sums = sums_of(differences, sizes)
            ours, old = mean_difference(sums), old_pair(sums, random)
            check_twin(differences, of_template, ours)
            ours_contradict = max(ours_contradict, contradictions(ours))
            flipped = float(np.mean(flips(sums)[0] < LEVEL))
            found = (float(np.mean(test.found)) for test in (ours, t_test(sums)))
            cells.append(Nulls(next(found), flipped, next(found), contradictions(old)))
        row = Nulls(*(max(values) for values in zip(*cells, strict=True)))
        if kind == "symmetric":
            worst = max(worst, row.ours)
        rows.append((kind, templates, "one question each" if per_template == 1 else name, *row))
    headings = ["differences", "templates", "sizes", "MeanDifference", "sign flips", "t", "old pair contradicts itself"]
    print_table("A difference is seen that is not there (the worst cell)", headings, rows, is_markdown=is_markdown)
    allowed = GOAL + (2.5 * np.sqrt(LEVEL * (1 - LEVEL) / pairs) if pairs < PAIRS else 0)
    is_met = goal(f"symmetric at most {allowed:.3f}", f"{worst:.3f}", is_met=worst <= allowed)
    return goal("no contradictions", f"{ours_contradict:.3f}", is_met=ours_contradict == 0) and is_met


def _rows() -> Iterator[tuple[str, int, tuple[str, Callable[[int], Array]], int]]:
    for kind in ("symmetric", "skewed"):
        yield from itertools.product([kind], [4], SIZES.items(), TEMPLATES)
        yield from itertools.product([kind], [1], [next(iter(SIZES.items()))], TEMPLATES)


def effects(pairs: int, random: np.random.Generator, *, is_markdown: bool) -> bool:
    """Measure and print power, coverage and widths for real differences, and return whether the goal is met."""
    rows, is_wider = [], True
    for (name, sizes_of), templates, (effect, (draw, truth)) in itertools.product(
        SIZES.items(), (5, 6, 11, 30, 100), EFFECTS.items()
    ):
        sizes = sizes_of(templates)
        differences, of_template = drawn(draw, sizes, pairs, random)
        sums = sums_of(differences, sizes)
        ours, old = mean_difference(sums), old_pair(sums, random)
        check_twin(differences, of_template, ours)
        held, held_old = (float(np.mean((each.low <= truth) & (truth <= each.high))) for each in (ours, old))
        width, width_old = (float(np.mean(each.high - each.low)) for each in (ours, old))
        is_wider &= held >= held_old - 0.02
        seen = (float(np.mean(each.found)) for each in (ours, old))
        rows.append((effect, templates, name, *seen, held, held_old, width, width_old))
    headings = ["difference", "templates", "sizes", "seen", "old", "held", "old", "width", "old"]
    print_table("Real differences: seen, held by the interval, mean width", headings, rows, is_markdown=is_markdown)
    return goal("intervals hold the difference at least as often as before", "all cells", is_met=is_wider)


def ranges(pairs: int, random: np.random.Generator, *, is_markdown: bool) -> bool:
    """Measure how often the range of needed questions contains the true number, and return whether the goal is met."""
    rows, lowest = [], 1.0
    for templates, (effect, (draw, truth)) in itertools.product((11, 30, 100), EFFECTS.items()):
        sizes = SIZES["equal"](templates)
        many = sums_of(drawn(draw, SIZES["equal"](100), 4000, random)[0], SIZES["equal"](100))
        # The spread of a mean is proportional to the square root of the number of questions.
        spread = float(np.std(robust_of(many).means)) * np.sqrt(many.sizes.sum() / sizes.sum())
        true = questions_needed(truth, spread, int(sizes.sum()))
        differences, of_template = drawn(draw, sizes, pairs, random)
        held, shown, single = [], 0, []
        for pair in differences:
            groups = [pair[of_template == template].tolist() for template in range(templates)]
            found = MeanDifference(groups, scale=1.0)
            needed = found.questions_needed_range()
            if needed is None or true is None:
                continue
            shown += needed.high is not None
            held.append(needed.low <= true and (needed.high is None or true <= needed.high))
            single.append(found.questions_needed() or 0)
        share = float(np.mean(held))
        lowest = min(lowest, share)
        ends = "{:,.0f} to {:,.0f}".format(*np.quantile(single, [0.1, 0.9]))
        rows.append((effect, templates, f"{true:,}", ends, share, shown / len(held)))
    headings = [
        "difference",
        "templates",
        "true number",
        "single numbers (80 %)",
        "range holds it",
        "range has two ends",
    ]
    print_table("Questions that it takes", headings, rows, is_markdown=is_markdown)
    return goal(
        f"the range holds the true number in at least {GOAL_OF_RANGE}", f"{lowest:.3f}", is_met=lowest >= GOAL_OF_RANGE
    )


# Drops of 0.05 and how they are simulated: binary scores by both means, graded ones by a question's variance.
DROPS: Final[dict[str, Draw]] = {
    "1 → 0.95": drop(1 - 1e-9, 0.95),
    "0.95 → 0.9": drop(0.95, 0.9),
    "0.9 → 0.85": drop(0.9, 0.85),
    "0.8 → 0.75": drop(0.8, 0.75),
    "graded, spread 0.02": spread(0.02, -0.05),
    "graded, spread 0.05": spread(0.05, -0.05),
    "graded, spread 0.2": spread(0.2, -0.05),
    "fifths, 0.95 → 0.9": fifths(0.95, 0.9),
    "fifths, 0.8 → 0.75": fifths(0.8, 0.75),
}


def powers(pairs: int, random: np.random.Generator, *, is_markdown: bool) -> bool:
    """Measure and print whether ``power`` is close to the share of pairs in which a drop of 0.05 is detected."""
    rows, largest = [], 0.0
    for (name, draw), templates in itertools.product(DROPS.items(), (8, 11, 20, 30, 100)):
        sizes = SIZES["equal"](templates)
        differences, of_template = drawn(draw, sizes, pairs, random)
        seen = float(np.mean(mean_difference(sums_of(differences, sizes)).found))
        said = []
        for pair in differences[: pairs // 10]:
            groups = [pair[of_template == template].tolist() for template in range(templates)]
            said.append(MeanDifference(groups, scale=1.0).power(0.05) or 0.0)
        rows.append((name, templates, seen, float(np.mean(said))))
        if templates >= FEWEST_FOR_POWER:
            largest = max(largest, abs(rows[-1][3] - seen))
    headings = ["drop", "templates", "seen", "power, mean"]
    print_table("Power of a drop of 0.05", headings, rows, is_markdown=is_markdown)
    what = f"from {FEWEST_FOR_POWER} templates on power is at most {GOAL_OF_POWER} from what is seen"
    return goal(what, f"{largest:.3f}", is_met=largest <= GOAL_OF_POWER)


MEASURES: Final = (nulls, effects, ranges, powers)


def main() -> int:
    """Measure everything, print the tables and whether the goals are met, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the pairs")
    parser.add_argument("--only", choices=[each.__name__ for each in MEASURES], help="only one of the tables")
    parser.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    options = parser.parse_args()
    pairs = PAIRS // 10 if options.quick else PAIRS
    random = np.random.default_rng(20)
    is_met = [
        measure(pairs // 8 if measure is ranges else pairs, random, is_markdown=options.markdown)
        for measure in MEASURES
        if options.only in (None, measure.__name__)
    ]
    return 0 if all(is_met) else 1


if __name__ == "__main__":
    sys.exit(main())
