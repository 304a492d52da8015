"""Each metric and step name is declared once: a script counts the files of the package that contain it."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full
COUNT_NAMES = Path(__file__).parents[2] / "goldens" / "count_names.py"


def test_metric_and_step_names_are_in_at_most_three_files() -> None:
    counted = subprocess.run([sys.executable, COUNT_NAMES, "--limit", "3"], capture_output=True, text=True, check=False)
    assert counted.returncode == 0, counted.stdout + counted.stderr


def test_names_in_more_files_are_reported(tmp_path: Path) -> None:
    package = tmp_path / "graphrag_eval_lc"
    package.mkdir()
    for name in ("a", "b", "c", "d"):
        (package / f"{name}.py").write_text('KEY = "steps_score"\n', encoding="utf-8")
    counted = subprocess.run(
        [sys.executable, COUNT_NAMES, tmp_path, "--limit", "3"], capture_output=True, text=True, check=False
    )
    assert (counted.returncode, counted.stderr.strip()) == (1, "in more than 3 files: steps_score")
