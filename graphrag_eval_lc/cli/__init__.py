"""The command ``graphrag-eval-lc``."""

from graphrag_eval_lc.cli.main import main

__all__ = ["main"]
