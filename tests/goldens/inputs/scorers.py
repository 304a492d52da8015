"""A custom matcher and custom evaluators, using names that every version has."""

from graphrag_eval_lc.matching import register_matcher


@register_matcher(name="count_rows")
def match_counts(reference, actual):
    return float(str(actual["output"]).startswith(str(reference["output"])))


def answer_words(question, response):
    return len(response["actual_answer"].split())


def saved_sec(question, response):
    """Return the saved seconds. Higher is better, although the name ends like a duration."""
    return {"saved_sec": 1.5 * len(response["actual_steps"]), "remark": "by hand"}


def is_short(inputs, outputs, reference_outputs):
    return {"key": "is_short", "score": len(str(outputs)) < 2000, "comment": "counted"}


def broken(question, response):
    if question["id"] == "flow_feda":
        raise KeyError("no such thing")
    return 1.0
