"""Values of options that a shell completes, beside the commands, options and choices that it finds by itself."""

from graphrag_eval_lc.metrics.measures import MEASURES
from graphrag_eval_lc.registry.metrics import aggregated_metrics


def metric_names(incomplete: str) -> list[str]:
    """Return the metrics of questions that begin so; those of retrieval and of plugins are not known before a run.

    Example:
        >>> metric_names("answer_f")
        ['answer_f1']
    """
    return [spec.key for spec in aggregated_metrics("questions") if spec.key.startswith(incomplete)]


def measures(incomplete: str) -> list[str]:
    """Return the measures of retrieved ids that begin so, after those that a comma closes.

    Example:
        >>> measures("P@5,nD")
        ['P@5,nDCG']
    """
    closed, comma, last = incomplete.rpartition(",")
    return [f"{closed}{comma}{name}" for name in MEASURES if name.startswith(last)]
