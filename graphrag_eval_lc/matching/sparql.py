"""The old name of ``graphrag_eval_lc.matching.rows``, for one version."""

from graphrag_eval_lc.deprecation import renamed_names
from graphrag_eval_lc.matching import rows

__getattr__ = renamed_names(__name__, {name: f"graphrag_eval_lc.matching.rows:{name}" for name in rows.__all__})
