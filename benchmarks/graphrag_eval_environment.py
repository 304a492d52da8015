"""An environment with graphrag-eval, which needs Python 3.12, for the benchmarks that measure beside it."""

import shutil
import subprocess
import sys
from pathlib import Path

PACKAGES = ("graphrag-eval==6.6.1", "pyyaml>=6.0.2,<7")  # it reads its config with PyYAML and does not say so


def graphrag_eval_python(python: str | None, venv: Path) -> Path:
    """Give the Python of an environment with graphrag-eval, made where it is missing.

    Args:
        python: A Python 3.12; None looks for one on PATH and among pyenv's versions.
        venv: Where the environment is or is to be.
    """
    executable = venv / "bin" / "python"
    if not executable.exists():
        found = python or find_python312()
        if found is None:
            sys.exit("No Python 3.12 found; name one with --python, or pass --no-graphrag-eval.")
        subprocess.run([found, "-m", "venv", str(venv)], check=True)
        subprocess.run([str(executable), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return executable


def find_python312() -> str | None:
    """Give a Python 3.12 that starts, from PATH or from pyenv."""
    candidates = [shutil.which("python3.12"), *sorted(Path.home().glob(".pyenv/versions/3.12*/bin/python3.12"))]
    for candidate in candidates:
        if candidate and subprocess.run([str(candidate), "-c", ""], check=False, capture_output=True).returncode == 0:
            return str(candidate)
    return None
