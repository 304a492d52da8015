"""``python -m graphrag_eval_lc`` is the command ``graphrag-eval-lc``, even if that is not on the path."""

from graphrag_eval_lc.cli import main

if __name__ == "__main__":
    main()
