"""The benchmark of tests of a difference, as it stands in the repository."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "difference_tests.py"


@pytest.mark.full
def test_no_more_differences_are_seen_than_the_level_allows() -> None:
    done = subprocess.run([sys.executable, str(BENCHMARK), "--quick"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith(": met")
