"""The step kind: counts, which are equal whatever is written around the number."""

from graphrag_eval_lc import register_matcher


@register_matcher(name="count_rows")
def match_counts(reference, actual):
    return float(str(reference["output"]).split()[0] == str(actual["output"]).split()[0])
