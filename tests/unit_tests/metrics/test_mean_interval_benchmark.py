"""The benchmark of coverage, as it stands in the repository, without the other methods that it shows beside ours."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
# The bootstrap is most of the work, and has no part in the verdict.
WITHOUT_BOOTSTRAP = """
import sys
import interval_coverage
interval_coverage.RUNS_OF_BOOTSTRAP, interval_coverage.DRAWS = 2, 9
sys.exit(interval_coverage.main())
"""


@pytest.mark.full
def test_intervals_hold_the_true_mean_in_every_cell() -> None:
    command = [sys.executable, "-c", WITHOUT_BOOTSTRAP, "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=BENCHMARKS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith(": met")
