"""The coverage benchmark, without the methods that it lists for comparison."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
# The bootstrap is most of the work and has no part in the verdict; these means and correlations are the hardest.
WITH_FEWER_CELLS = """
import sys
import interval_coverage
interval_coverage.RUNS_OF_BOOTSTRAP, interval_coverage.DRAWS = 2, 9
interval_coverage.MEANS, interval_coverage.CORRELATIONS = (0.5, 0.9, 0.97), (0.0, 0.5)
sys.exit(interval_coverage.main())
"""


@pytest.mark.full
def test_intervals_cover_the_true_mean_in_every_cell() -> None:
    command = [sys.executable, "-c", WITH_FEWER_CELLS, "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=BENCHMARKS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith(": met")
