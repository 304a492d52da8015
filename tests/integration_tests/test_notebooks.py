"""The notebooks run from top to bottom, and the outputs that are committed are what they give.

Texts are compared word for word, and the tables that runs, questions and comparisons show. Of a plot it is compared
that there is one, and its size: its pixels differ from one version of matplotlib to another, and what it shows stands
in the texts too.
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
VARYING = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::[\d.]+Z)?|\d+\.\d{4,}(e-\d+)?")


# How the HTML of runs, results and comparisons begins.
OURS = '<div class="tex2jax_ignore'


def shown(notebook: Any) -> list[tuple[str, str]]:
    """Give each code cell with the text that it put out; a busy kernel may send it in several parts."""
    return [
        (cell.source, VARYING.sub("…", "".join(map(_text_of, cell.outputs))))
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def _text_of(output: Any) -> str:
    data = output.get("data", {})
    html = data.get("text/html", "")
    text = str(output.get("text") or data.get("text/plain", "")) + " (a picture)" * ("image/png" in data)
    return text + html if html.startswith(OURS) else text  # tables of pandas differ from version to version


def outputs_by_cell(path: Path) -> list[list[Any]]:
    """Return the committed outputs of each cell, those of texts included, which have none."""
    return [cell.get("outputs", []) for cell in nbformat.read(path, as_version=4).cells]


def test_there_are_notebooks() -> None:
    assert [path.stem[:2] for path in NOTEBOOKS] == ["01", "02", "03", "04", "05", "06"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_there_is_a_picture_within_the_first_ten_cells(path: Path) -> None:
    assert any("image/png" in output.get("data", {}) for outputs in outputs_by_cell(path)[:10] for output in outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_outputs_tell_of_no_failure_and_no_machine(path: Path) -> None:
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
