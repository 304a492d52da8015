"""What all plots have in common."""

import sys
import warnings

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from graphrag_eval_lc.errors import MissingExtraError
from graphrag_eval_lc.tables.plots import label_of, more_rows, rows_axes


def test_height_of_new_axes_follows_the_rows() -> None:
    few, many = (rows_axes(["t"] * number, None).figure.get_figheight() for number in (2, 40))  # type: ignore[union-attr]
    assert few < 3 < 12 < many


def test_existing_axes_are_used() -> None:
    ax = Figure().subplots()
    assert rows_axes(["t"], ax) is ax
    assert isinstance(ax, Axes)


def test_first_label_is_at_the_top() -> None:
    ax = rows_axes(["first", "second"], None)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["first", "second"]
    assert ax.yaxis_inverted()


@pytest.mark.parametrize("text", ["costs $x_", "$\\frac{", "a\nb\x00\x1b[31m", "\ud800", "\u202eabc", "%s {0} \\"])
def test_any_text_can_be_drawn(text: str) -> None:
    ax = rows_axes([label_of(text)], None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax.figure.canvas.draw()


def test_long_texts_keep_both_ends() -> None:
    label = label_of("template_list_c7a70c0b8203742bf6437567335459a1")
    assert len(label) == 40
    assert label.startswith("template_list_c7a70")
    assert label.endswith("6437567335459a1")


def test_titles_report_omissions() -> None:
    assert (more_rows(0, "templates"), more_rows(1200, "templates")) == ("", " (1,200 more templates left out)")


def test_missing_matplotlib_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"A plot needs the package matplotlib.*graphrag-eval-lc\[notebook\]"):
        rows_axes(["t"], None)
