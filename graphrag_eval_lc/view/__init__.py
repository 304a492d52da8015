"""The view of a run that every output shows: results come in one at a time, a ``RunView`` of plain data goes out."""

from graphrag_eval_lc.public_names import only_public
from graphrag_eval_lc.view.run_view import RunView, run_view

__all__ = ["RunView", "run_view"]

__dir__ = only_public(globals())
