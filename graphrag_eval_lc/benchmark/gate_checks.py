"""The gates of a run, checked before anything is asked or paid for."""

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING

from graphrag_eval_lc.compare.gate_names import KnownMetrics, check_gates
from graphrag_eval_lc.config import locate
from graphrag_eval_lc.errors import ConfigError
from graphrag_eval_lc.records import Template

if TYPE_CHECKING:
    from graphrag_eval_lc.benchmark.run_options import ScoredBy


def check_gates_of(options: "ScoredBy", templates: Sequence[Template], source: object) -> list[str]:
    """Check the names in the gates of the configuration and in those beside it.

    Args:
        options: The options of the run.
        templates: The whole dataset, of which perhaps not all questions are selected.
        source: What the configuration was loaded from.

    Returns:
        What is to be told of names that only evaluators can give.

    Raises:
        ConfigError: A gate of the config names a metric or template that there is not, or bounds a metric on the wrong
            side; with its line, where the source is a file.
        OptionError: The same of another gate.
    """
    gates = (options.config.gates, options.gates)
    if not any(gates):
        return []
    known = KnownMetrics.of(
        options.config,
        options.evaluators,
        has_llm=options.llm is not None,
        has_embeddings=options.embeddings is not None,
    )
    ids = [str(template["template_id"]) for template in templates]
    try:
        doubts = [
            doubt
            for of_config, each in zip((True, False), gates, strict=True)
            for doubt in check_gates(each, known, ids, of_config=of_config)
        ]
    except ConfigError as problem:
        if isinstance(source, str | PathLike):
            locate(problem, source)
        raise
    return list(dict.fromkeys(doubts))
