"""A separate environment with ragas and this package, created once and kept. The tests' environment has no ragas."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".venv-ragas"
ENVIRONMENT = {**os.environ, "RAGAS_DO_NOT_TRACK": "true"}


def ragas_python() -> Path:
    """Return the environment's interpreter, or skip the test if it cannot be created."""
    python = FOLDER / "bin" / "python"
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / "lock").open("w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests in other processes may create it at the same time
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", FOLDER], check=True)
        installed = [python, "-c", "import ragas.metrics.collections, graphrag_eval_lc, genai_prices"]
        if subprocess.run(installed, capture_output=True, cwd=FOLDER, env=ENVIRONMENT, check=False).returncode:
            install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-e", f"{ROOT}[ragas]"]
            outcome = subprocess.run(install, capture_output=True, text=True, check=False)
            if outcome.returncode:
                pytest.skip(f"ragas cannot be installed: {outcome.stderr.strip().splitlines()[-1:]}")
    return python


def output_of(python: Path, script: str, stdin: str) -> str:
    """Return the last line that a script prints in the environment."""
    outcome = subprocess.run(
        [python, "-c", script], input=stdin, capture_output=True, text=True, env=ENVIRONMENT, check=False
    )
    assert outcome.returncode == 0, outcome.stderr[-4000:]
    return outcome.stdout.splitlines()[-1]
