"""The old name of ``graphrag_eval_lc.compare``, for one version."""

from graphrag_eval_lc import compare
from graphrag_eval_lc.deprecation import renamed_names
from graphrag_eval_lc.public_names import only_public

_NEW_NAMES = {name: f"graphrag_eval_lc.compare:{name}" for name in compare.__all__}
_NEW_NAMES["Comparison"] = _NEW_NAMES["RunComparison"]
_NEW_NAMES["TurnedQuestion"] = _NEW_NAMES["Flip"]

__all__: list[str] = []  # what goes with the next version is not offered

__getattr__ = renamed_names(__name__, _NEW_NAMES)
__dir__ = only_public(globals())
