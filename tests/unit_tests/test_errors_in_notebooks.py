"""Errors of the package in a notebook, in a real kernel: one line, and the traceback for those who ask for it."""

from typing import Any

import pytest

# Not there with the lowest versions of what the package itself needs.
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

SYNCHRONOUS = "import graphrag_eval_lc\ngraphrag_eval_lc.run_benchmark(lambda question: 'x', 'absent.yaml')"
ASYNCHRONOUS = "await graphrag_eval_lc.arun_benchmark(lambda question: 'x', 'absent.yaml')"
SWITCHED = "import os\nos.environ['GRAPHRAG_EVAL_LC_TRACEBACK'] = '1'\ngraphrag_eval_lc.load_dataset('absent.yaml')"
SENTENCE = "DatasetError: absent.yaml: the reference dataset cannot be read (the file does not exist)."


def errors_of(*sources: str) -> list[str]:
    """Return what the errors of cells show, one after the other in one kernel."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    nbclient.NotebookClient(notebook, timeout=120, allow_errors=True).execute()
    shown: list[Any] = [output for cell in notebook.cells for output in cell.outputs if output.output_type == "error"]
    return ["\n".join(output.traceback) for output in shown]


@pytest.mark.full
def test_an_unknown_dataset_is_one_line_and_its_traceback_stays_reachable() -> None:
    error, traceback, awaited, switched = errors_of(SYNCHRONOUS, "%tb", ASYNCHRONOUS, SWITCHED)
    for line in (error, awaited):
        assert line.startswith(SENTENCE)
        assert line.endswith("(%tb shows the traceback.)")
        assert "\n" not in line
    for text in (traceback, switched):
        assert text.count("\n") > 20
        assert "FileNotFoundError" in text
