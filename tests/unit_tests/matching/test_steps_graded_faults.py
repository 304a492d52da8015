"""Graded scores fall with the number of planted faults, and more reliably than binary ones."""

import runpy
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "graded_scores.py"


@pytest.mark.full
def test_graded_scores_rank_responses_by_faults_better_than_binary_ones() -> None:
    last_group, all_groups, graded = runpy.run_path(str(BENCHMARK))["measured"](seeds=1).values()
    assert graded.within < -0.75
    assert graded.within < min(last_group.within, all_groups.within)
    assert graded.of_all < min(last_group.of_all, all_groups.of_all)
    assert sorted(graded.means.values(), reverse=True) == [graded.means[count] for count in range(5)]
    assert graded.means[0] == 1.0
