"""The notebooks run from top to bottom and reproduce their committed outputs.

Texts and the tables of runs, questions and comparisons are compared word for word. For plots, only their existence and
size are compared: pixels depend on the version of matplotlib, and their values are in the texts, too.
"""

import os
import re
from pathlib import Path
from typing import Any

import matplotlib.font_manager  # noqa: F401  builds its font cache here, as it would print about that in a cell
import nbclient
import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))

# Values that differ between runs: timestamps and durations.
VARYING = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::[\d.]+Z)?|\d+\.\d{4,}(e-\d+)?")


# The beginning of the HTML of runs, results and comparisons.
OURS = '<div class="tex2jax_ignore'


def shown(notebook: Any) -> list[tuple[str, str]]:
    """Return each code cell with its text output, which a busy kernel may send in several parts."""
    return [
        (cell.source, VARYING.sub("…", "".join(map(_text_of, cell.outputs))))
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def _text_of(output: Any) -> str:
    data = output.get("data", {})
    html = data.get("text/html", "")
    text = str(output.get("text") or data.get("text/plain", "")) + " (a picture)" * ("image/png" in data)
    return text + html if html.startswith(OURS) else text  # pandas tables depend on its version


def outputs_by_cell(path: Path) -> list[list[Any]]:
    """Return the committed outputs of each cell; Markdown cells have none."""
    return [cell.get("outputs", []) for cell in nbformat.read(path, as_version=4).cells]


def test_notebooks_exist() -> None:
    assert [path.stem[:2] for path in NOTEBOOKS] == ["01", "02", "03", "04", "05", "06"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_first_ten_cells_have_a_picture(path: Path) -> None:
    assert any("image/png" in output.get("data", {}) for outputs in outputs_by_cell(path)[:10] for output in outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_outputs_contain_no_errors_or_local_paths(path: Path) -> None:
    outputs = [output for outputs in outputs_by_cell(path) for output in outputs]
    assert [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"] == []
    assert re.findall(r"/(?:home|root|tmp|Users)/", path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("name", ["02_benchmark", "03_compare", "05_own_agent_and_graph"])
def test_runs_questions_and_comparisons_show_tables(name: str) -> None:
    (path,) = [path for path in NOTEBOOKS if path.stem == name]
    outputs = [output for outputs in outputs_by_cell(path) for output in outputs]
    assert any(output.get("data", {}).get("text/html", "").startswith(OURS) for output in outputs)


@pytest.mark.full
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_and_reproduces_its_committed_outputs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("MPLBACKEND", raising=False)
    executed = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(executed, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert shown(executed) == shown(nbformat.read(path, as_version=4))
    assert any(outputs for _, outputs in shown(executed))
