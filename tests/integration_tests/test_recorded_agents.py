"""The agents of the recorded streams reproduce the recorded responses with current packages."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full
FOLDER = Path(__file__).parents[1] / "streams"


def test_agents_reproduce_the_responses_of_their_streams() -> None:
    command = [sys.executable, str(FOLDER / "record.py"), "--compare", str(FOLDER / "agents.py")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "39 passed" in ended.stdout
    assert "left out" not in ended.stdout
