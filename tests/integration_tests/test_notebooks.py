"""The notebooks run from top to bottom, and the outputs that are committed are what they give.

Texts are compared word for word. Of a plot it is compared that there is one, and its size: its pixels differ from
one version of matplotlib to another, and what it shows stands in the texts too.
"""

import os
import re
from pathlib import Path
from typing import Any

import matplotlib.font_manager  # noqa: F401  it makes its cache here, as a kernel that does so tells of it in a cell
import nbclient
import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))

# What differs from run to run: moments and durations.
VARYING = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z|\d+\.\d{4,}(e-\d+)?")


def shown(notebook: Any) -> list[tuple[str, str]]:
    """Give each code cell with the text that it put out; a busy kernel may send it in several parts."""
    return [
        (cell.source, VARYING.sub("…", "".join(map(_text_of, cell.outputs))))
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def _text_of(output: Any) -> str:
    data = output.get("data", {})
    return str(output.get("text") or data.get("text/plain", "")) + " (a picture)" * ("image/png" in data)


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


DAILY_NOTEBOOKS = ("01_capture",)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[] if path.stem in DAILY_NOTEBOOKS else pytest.mark.full, id=path.stem)
        for path in NOTEBOOKS
    ],
)
def test_notebook_runs_and_its_committed_outputs_are_fresh(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("MPLBACKEND", raising=False)
    executed = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(executed, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert shown(executed) == shown(nbformat.read(path, as_version=4))
    assert any(outputs for _, outputs in shown(executed))
