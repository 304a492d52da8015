"""The repository's benchmark of confirmed gates, with a part of its agents and runs of 44 questions only."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
FEW_AGENTS = """
import sys
import confirmation
confirmation.QUESTIONS, confirmation.MEANS, confirmation.NOISES = (44,), (0.9, 0.6), (0.05, 0.15, 0.2)
sys.exit(confirmation.main())
"""


@pytest.mark.full
def test_confirmed_gates_rarely_fail_the_same_agent_and_find_a_drop() -> None:
    command = [sys.executable, "-c", FEW_AGENTS, "--pairs", "150"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=BENCHMARKS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "noise up to 0.15: " in done.stdout
