"""From graphrag-eval to this package: its config in, this package's config and a check on its old responses out."""

from graphrag_eval_lc.migration.figures import Difference
from graphrag_eval_lc.migration.migrating import Migration, migrate
from graphrag_eval_lc.public_names import only_public

__all__ = ["Difference", "Migration", "migrate"]

__dir__ = only_public(globals())
