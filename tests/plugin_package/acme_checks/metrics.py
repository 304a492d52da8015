"""The metric: how many seconds longer than with the old form a person would wait."""

from graphrag_eval_lc import register_metric


@register_metric(
    key="extra_wait",
    title="seconds longer than the old form",
    unit="seconds",
    lower_is_better=True,
    range=(0, 60),
)
async def extra_wait(question, response):
    if "form_sec" not in question:
        return None
    return max(0.0, response["elapsed_sec"] - question["form_sec"])
