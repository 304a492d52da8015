"""The step kind: counts are equal if their numbers are, whatever the surrounding text."""

from graphrag_eval_lc import StepKind, register_step_kind
from graphrag_eval_lc.matching import UnreadableOutput


def number_in(output):
    first, *_ = str(output).split() or [""]
    if not first.isdigit():
        raise UnreadableOutput(f"{output!r} begins with no number")
    return int(first)


def match_counts(reference, actual):
    return float(reference.parsed(number_in) == actual.parsed(number_in))


counts = register_step_kind(
    StepKind(key="counts", title="a count", serves=(("count_rows", None),), matcher=match_counts, parse=number_in)
)
