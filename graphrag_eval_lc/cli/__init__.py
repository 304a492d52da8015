"""The command line ``graphrag-eval-lc``: its commands, their options, and what they print."""

from graphrag_eval_lc.cli.main import main
from graphrag_eval_lc.public_names import only_public

__all__ = ["main"]

__dir__ = only_public(globals())
