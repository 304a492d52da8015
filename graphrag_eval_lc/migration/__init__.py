"""From graphrag-eval to this package: old responses scored, published figures compared, the config written."""

from graphrag_eval_lc.migration.findings import Difference, Migration, Trial
from graphrag_eval_lc.migration.migrating import migrate
from graphrag_eval_lc.public_names import only_public

__all__ = ["Difference", "Migration", "Trial", "migrate"]

__dir__ = only_public(globals())
