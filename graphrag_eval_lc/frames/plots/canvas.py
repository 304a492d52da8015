"""What all plots share: axes with a named row for each thing, and colours that all eyes tell apart."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphrag_eval_lc.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A picture of more rows cannot be read.
MOST_ROWS = 50

BETTER, WORSE, NEUTRAL = "#2c7bb6", "#c2501a", "#666666"

_LONGEST_LABEL = 40


def rows_axes(labels: Sequence[str], ax: "Axes | None") -> "Axes":
    """Give axes with a row for each label, the first one on top; new ones are as high as that takes.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    if ax is None:
        ax = _pyplot().subplots(figsize=(8, 1.3 + 0.3 * len(labels)), layout="constrained")[1]
    # A dollar sign is no formula.
    ax.set_yticks(range(len(labels)), labels=list(labels), parse_math=False)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", alpha=0.3)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    return ax


def label_of(text: str) -> str:
    r"""Give a text as it can stand beside a row: on one line, shortened in the middle, all of it visible.

    Example:
        >>> label_of("transformers\nin " + 40 * "x")
        'transformers�in xxx…xxxxxxxxxxxxxxxxxxxx'
    """
    visible = "".join(character if character.isprintable() else "�" for character in text)
    half = _LONGEST_LABEL // 2
    return visible if len(visible) <= _LONGEST_LABEL else f"{visible[: half - 1]}…{visible[-half:]}"


def more_rows(left_out: int, noun: str) -> str:
    """Give the end of a title that says how many rows were left out; nothing where all are there."""
    return f" ({left_out:,} more {noun} left out)" if left_out else ""


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot
    except ModuleNotFoundError as problem:
        raise MissingExtraError("A plot", "notebook", "matplotlib") from problem
    return matplotlib.pyplot
