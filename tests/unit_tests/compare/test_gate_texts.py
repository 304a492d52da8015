"""Gates as texts of the command line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc import register_metric
from graphrag_eval_lc.compare.gate_texts import GateText, gate_text, gates_over, gates_under, metric_and_statistic
from graphrag_eval_lc.errors import OptionError

EXAMPLE = "--fail-under steps_score=0.9"


@given(
    template=st.none() | st.text(min_size=1),
    metric=st.from_regex(r"[a-z_][a-z0-9_.@-]*", fullmatch=True),
    value=st.from_regex(r"[+]?[0-9.]+%?", fullmatch=True),
)
def test_parts_of_a_text_are_those_that_it_was_made_of(template: str | None, metric: str, value: str) -> None:
    text = f"{metric}={value}" if template is None else f"{template}/{metric}={value}"
    assert gate_text(text, EXAMPLE) == GateText(metric, value, template)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("transformers_in_substation/steps_score=0.8", ("transformers_in_substation", "steps_score", 0.8)),
        ("a/b=c/steps_score = .8", ("a/b=c", "steps_score", 0.8)),
        ("how many?/answer_f1=1", ("how many?", "answer_f1", 1.0)),
        ("answer_relevance=-0.5", (None, "answer_relevance", -0.5)),
    ],
)
def test_template_stands_before_the_last_slash(text: str, parts: tuple[str | None, str, float]) -> None:
    (gate,) = gates_under([text])
    assert (gate.template, gate.metric, gate.under) == parts


@pytest.mark.parametrize("text", ["steps_score", "=0.9", "/steps_score=1", "t/=1", "steps_score=", "steps_score=+0.9"])
def test_text_that_is_no_requirement_is_told_with_an_example(text: str) -> None:
    with pytest.raises(OptionError, match=r"is no requirement. Write it as --fail-under steps_score=0.9\."):
        gates_under([text])


@pytest.mark.parametrize(
    "text", ["elapsed_sec", "elapsed_sec=fast", "total_tokens=10%", "total_tokens=+", "a=+ten", "a=+-1", "a=+_1"]
)
def test_text_that_is_no_bound_is_told_with_an_example(text: str) -> None:
    with pytest.raises(OptionError, match=r"is no bound. Write it as --fail-over elapsed_sec.p95=30\."):
        gates_over([text])


def test_increase_needs_a_baseline() -> None:
    with pytest.raises(OptionError, match=r"one run has none. .*: compare RUN_A RUN_B --fail-over total_tokens=\+10%"):
        gates_over(["total_tokens=+10%"])
    share, difference, bound = gates_over(
        ["total_tokens=+10%", "notes/agent_cost=+0.05", "total_tokens=5000"], has_baseline=True
    )
    assert (share.metric, share.over, share.needs_baseline) == ("total_tokens", "+10%", True)
    assert (difference.template, difference.over) == ("notes", "+0.05")
    assert (bound.over, bound.needs_baseline) == (5000.0, False)


def test_same_bound_twice_is_refused() -> None:
    with pytest.raises(OptionError, match=r"notes/elapsed_sec\.p95 is bounded twice"):
        gates_over(["notes/elapsed_sec.p95=3", "notes/elapsed_sec.p95=4"])
    assert len(gates_over(["notes/elapsed_sec.p95=3", "elapsed_sec.p95=4", "elapsed_sec=2"])) == 3


def test_end_of_a_name_is_a_statistic_unless_a_metric_is_declared_so() -> None:
    assert metric_and_statistic("tone.max") == ("tone", "max")
    assert metric_and_statistic("tone.p99") == ("tone.p99", "mean")
    assert metric_and_statistic(".p95") == (".p95", "mean")
    register_metric(key="tone.max")(lambda question, response: 1.0)
    assert metric_and_statistic("tone.max") == ("tone.max", "mean")
