"""The contents of a plot as text: titles, labels, legends, and the positions of bars, points and lines."""

from collections.abc import Iterator
from typing import Any


def drawn(ax: Any) -> str:
    """Return the contents of matplotlib axes, one line each."""
    return "".join(f"{line}\n" for line in _lines(ax))


def _lines(ax: Any) -> Iterator[str]:
    yield f"title: {ax.get_title()}"
    yield f"x: {ax.get_xlabel()}; y: {ax.get_ylabel()}"
    yield f"rows: {[label.get_text() for label in ax.get_yticklabels()]}"
    legend = ax.get_legend()
    if legend is not None:
        yield f"legend {legend.get_title().get_text()}: {[text.get_text() for text in legend.get_texts()]}"
    for text in ax.texts:
        yield f"text: {text.get_text()}"
    for patch in ax.patches:
        path = patch.get_path().transformed(patch.get_patch_transform()).get_extents()
        place = [path.x0, path.y0, path.width, path.height]
        yield f"patch {_numbers(place)} colour {_numbers(patch.get_facecolor())} hatch {patch.get_hatch()}"
    for line in ax.lines:
        color = line.get_color()
        yield f"line x {_numbers(line.get_xdata())} y {_numbers(line.get_ydata())} {color} {line.get_marker()}"


def _numbers(values: Any) -> str:
    return "[" + ", ".join(f"{float(value):.9g}" for value in values) + "]"
