"""The evaluator: whether the answer is polite, and its number of words."""

from graphrag_eval_lc import register_evaluator


@register_evaluator
def manners(question, response):
    words = response.get("actual_answer", "").split()
    return {"is_polite": "please" in words, "words": len(words)}
