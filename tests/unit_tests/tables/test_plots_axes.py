"""What all plots share."""

import sys
import warnings

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from graphrag_eval_lc.errors import MissingExtraError
from graphrag_eval_lc.tables.plots import label_of, more_rows, rows_axes


def test_new_axes_are_as_high_as_their_rows_take() -> None:
    few, many = (rows_axes(["t"] * number, None).figure.get_figheight() for number in (2, 40))  # type: ignore[union-attr]
    assert few < 3 < 12 < many


def test_given_axes_are_drawn_into() -> None:
    ax = Figure().subplots()
    assert rows_axes(["t"], ax) is ax
    assert isinstance(ax, Axes)


def test_first_label_is_on_top() -> None:
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


def test_titles_say_what_was_left_out() -> None:
    assert (more_rows(0, "templates"), more_rows(1200, "templates")) == ("", " (1,200 more templates left out)")


def test_plot_without_matplotlib_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"A plot needs the package matplotlib.*graphrag-eval-lc\[notebook\]"):
        rows_axes(["t"], None)
