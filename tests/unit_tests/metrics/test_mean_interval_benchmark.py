"""The coverage benchmark, without the methods that it lists for comparison."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
# The bootstrap takes most of the time and does not affect the verdict.
WITHOUT_BOOTSTRAP = """
import sys
import interval_coverage
interval_coverage.RUNS_OF_BOOTSTRAP, interval_coverage.DRAWS = 2, 9
sys.exit(interval_coverage.main())
"""


@pytest.mark.full
def test_intervals_cover_the_true_mean_in_every_cell() -> None:
    command = [sys.executable, "-c", WITHOUT_BOOTSTRAP, "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=BENCHMARKS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith(": met")
