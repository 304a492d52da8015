"""The benchmark of coverage, as it stands in the repository."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "interval_coverage.py"


@pytest.mark.full
def test_intervals_hold_the_true_mean_in_every_cell() -> None:
    done = subprocess.run([sys.executable, str(BENCHMARK), "--quick"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith(": met")
