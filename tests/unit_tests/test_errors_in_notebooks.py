"""Errors in a notebook with a real kernel: one line, with the traceback available on request."""

from typing import Any

import pytest

# Not installed with the lowest versions of the package's own dependencies.
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

SYNCHRONOUS = "import graphrag_eval_lc\ngraphrag_eval_lc.run_benchmark(lambda question: 'x', 'absent.yaml')"
ASYNCHRONOUS = "await graphrag_eval_lc.arun_benchmark(lambda question: 'x', 'absent.yaml')"
SWITCHED = "import os\nos.environ['GRAPHRAG_EVAL_LC_TRACEBACK'] = '1'\ngraphrag_eval_lc.load_dataset('absent.yaml')"
SENTENCE = "DatasetError: absent.yaml: the reference dataset cannot be read (the file does not exist)."


def errors_of(*sources: str) -> list[str]:
    """Return the errors that cells display, run one after the other in one kernel."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    nbclient.NotebookClient(notebook, timeout=120, allow_errors=True).execute()
    shown: list[Any] = [output for cell in notebook.cells for output in cell.outputs if output.output_type == "error"]
    return ["\n".join(output.traceback) for output in shown]


@pytest.mark.full
def test_unknown_dataset_is_one_line_and_its_traceback_is_available() -> None:
    error, traceback, awaited, switched = errors_of(SYNCHRONOUS, "%tb", ASYNCHRONOUS, SWITCHED)
    for line in (error, awaited):
        assert line.startswith(SENTENCE)
        assert line.endswith("(%tb shows the traceback.)")
        assert "\n" not in line
    for text in (traceback, switched):
        assert text.count("\n") > 20
        assert "FileNotFoundError" in text
