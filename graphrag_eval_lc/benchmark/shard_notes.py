"""What a user is told of a shard: how much of the run it is, and how much of its limits it has."""

from collections.abc import Iterator, Sequence

from graphrag_eval_lc.benchmark.run_options import CheckedOptions
from graphrag_eval_lc.evaluation.samples import samples_of
from graphrag_eval_lc.prices import dollars
from graphrag_eval_lc.records import Question, Template
from graphrag_eval_lc.texts import counted


def shard_notes(options: CheckedOptions, questions: Sequence[tuple[Template, Question]]) -> list[str]:
    """Return one sentence on a shard; nothing of a whole run.

    Args:
        options: The options of the whole run.
        questions: The questions that it selects.
    """
    shard = options.shard
    if shard is None:
        return []
    number, whole = len(samples_of(questions, options.repeats, shard)), len(questions) * options.repeats
    samples = counted(number, "question" if options.repeats == 1 else "sample")
    limits = ", ".join(_limits(options))
    note = f"this is shard {shard} of a run: {samples} of {whole:,}" + (f", with {limits}" if limits else "")
    bounds = "; the gates are checked where the shards are merged" if options.config.gates else ""
    return [f"{note}{bounds}"]


def _limits(options: CheckedOptions) -> Iterator[str]:
    """Yield what of the run's limits this shard has."""
    part = options.in_shard()
    if options.requests_per_minute is not None and part.requests_per_minute is not None:
        yield f"{part.requests_per_minute:.4g} of its {options.requests_per_minute:.10g} requests a minute"
    if options.max_tokens is not None:
        yield f"{part.max_tokens:,} of its {options.max_tokens:,} tokens"
    if options.max_cost is not None and part.max_cost is not None:
        yield f"{dollars(part.max_cost)} of its {dollars(options.max_cost)}"
    limit = options.failure_limit
    if limit is not None and not limit.is_share:
        yield f"{part.failure_limit} of its {limit} failures"
