"""The repository's benchmark of confirmed gates."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "confirmation.py"


@pytest.mark.full
def test_confirmed_gates_rarely_fail_the_same_agent_and_find_a_drop() -> None:
    command = [sys.executable, str(BENCHMARK), "--pairs", "150"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "noise up to 0.15: " in done.stdout
