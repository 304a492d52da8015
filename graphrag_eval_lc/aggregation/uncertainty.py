"""What to say of undecided steps and cut outputs beside a mean that counts them as 0."""

from graphrag_eval_lc.registry.metrics import STEPS_SCORE
from graphrag_eval_lc.texts import counted

_MOST_DIGITS = 9


def uncertainty_texts(
    undecided: int, outputs_cut: int, score: float | None = None, upper: float | None = None
) -> list[str]:
    """Return a sentence on undecided steps and one on cut outputs, each only where there are any.

    Args:
        undecided: The number of undecided reference steps.
        outputs_cut: The number of cut outputs.
        score: The mean of ``steps_score``.
        upper: The mean of ``steps_score_upper``.

    Example:
        >>> uncertainty_texts(2, 0, 0.9, 0.95)
        ['2 reference steps are undecided and count 0: steps_score is between 0.900 and 0.950.']
    """
    texts = []
    between = bounds_text(score, upper)
    if undecided or between:
        # Without such steps, a step that may fit would fit better than another or leave more room before it.
        steps = counted(undecided, "reference step is undecided and counts", "reference steps are undecided and count")
        text = f"{steps if undecided else 'some comparisons are undecided and count'} 0"
        texts.append(f"{text}: {STEPS_SCORE} is {between}." if between else f"{text}.")
    if outputs_cut:
        text = f"{counted(outputs_cut, 'output ends', 'outputs end')} before the end, and what stood there is not known"
        texts.append(f"{text}; raise the length limit of the tool, or of the capture (max_output_chars).")
    return texts


def bounds_text(score: float | None, upper: float | None) -> str:
    """Return between what a mean lies, as text that tells both apart; empty where that is not known or all the same.

    Example:
        >>> bounds_text(0.9, 0.95), bounds_text(0.9, 0.9001), bounds_text(0.9, None)
        ('between 0.900 and 0.950', 'between 0.9000 and 0.9001', '')
    """
    if score is None or upper is None or upper <= score:
        return ""
    digits = next((digits for digits in range(3, _MOST_DIGITS) if f"{score:.{digits}f}" != f"{upper:.{digits}f}"), 0)
    return f"between {score:.{digits}f} and {upper:.{digits}f}" if digits else ""
