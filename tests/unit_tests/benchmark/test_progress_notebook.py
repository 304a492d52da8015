"""The progress bar in a notebook, with a real kernel without ipywidgets."""

from typing import Any

import pytest

# Not installed with the lowest versions of the package's own dependencies.
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

CELL = """
import threading
import time
from graphrag_eval_lc.evaluation.events import RunEvent
from graphrag_eval_lc.benchmark.progress import progress_display

def run():
    with progress_display() as observer:
        observer(RunEvent("run_started", {"total": 3000, "done": 0, "errors": 0, "max_concurrency": 4}))
        for number in range(3000):
            fields = {"question_id": number, "repeat": None, "status": "success", "total_tokens": 5}
            observer(RunEvent("response_ended", fields))
        time.sleep(1.2)
        observer(RunEvent("warning", {"message": "<b> & co \\x1b[2J"}))
"""


@pytest.mark.full
def test_one_output_is_updated_occasionally_and_only_messages_remain() -> None:
    sources = (f"{CELL}\nrun()", f"{CELL}\nthread = threading.Thread(target=run)\nthread.start()\nthread.join()")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    client = Recording(notebook, timeout=120)
    client.execute()
    for cell in notebook.cells:
        (output,) = cell.outputs
        assert output.data["text/plain"] == "Warning: <b> & co ␛[2J"
    assert any("3,000 of 3,000 done" in text for text in client.updates)
    assert len(client.updates) < 100  # 6,000 events


class Recording(nbclient.NotebookClient):
    """A client that records output updates."""

    def process_message(self, message: dict[str, Any], cell: Any, cell_index: int) -> Any:
        if message["msg_type"] == "update_display_data":
            self.updates.append(message["content"]["data"]["text/plain"])
        return super().process_message(message, cell, cell_index)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.updates: list[str] = []
