"""Plots of scores, times and differences: each is drawn into given axes or new ones, and gives the axes."""

from graphrag_eval_lc.frames.plots.differences import plot_differences
from graphrag_eval_lc.frames.plots.questions import plot_questions
from graphrag_eval_lc.frames.plots.scores import plot_scores
from graphrag_eval_lc.frames.plots.templates import plot_templates
from graphrag_eval_lc.frames.plots.times import plot_times

__all__ = ["plot_differences", "plot_questions", "plot_scores", "plot_templates", "plot_times"]
