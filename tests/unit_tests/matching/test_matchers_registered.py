import pytest

from graphrag_eval_lc.errors import MatcherError
from graphrag_eval_lc.matching import StepScore, StepView, match_steps, register_matcher
from graphrag_eval_lc.matching.json_and_text import match_texts
from graphrag_eval_lc.matching.matchers import comparison_of, custom_matchers
from graphrag_eval_lc.registry.step_kinds import shown_as, step_kind_for

pytestmark = pytest.mark.usefixtures("forget_matchers")


def constant(score: object) -> object:
    return lambda reference, actual: score


def test_most_specific_matcher_wins() -> None:
    by_type = register_matcher(media_type="text/x")(constant(0.1))  # type: ignore[type-var]
    assert step_kind_for("lookup", "text/x").matcher is by_type
    by_name = register_matcher(name="lookup")(constant(0.2))  # type: ignore[type-var]
    assert step_kind_for("lookup", "text/x").matcher is by_name
    by_both = register_matcher(name="lookup", media_type="text/x")(constant(0.3))  # type: ignore[type-var]
    assert step_kind_for("lookup", "text/x").matcher is by_both
    assert step_kind_for("lookup", "text/y").matcher is by_name
    assert step_kind_for("other", None).matcher is match_texts


def test_registered_matcher_scores_steps_of_its_name() -> None:
    @register_matcher(name="count")
    def match_counts(reference: StepView, actual: StepView) -> float:
        return 1.0 if int(reference["output"]) == int(actual["output"]) else 0.25

    step = {"name": "count", "args": {}, "id": "c1", "status": "success", "output": " 7"}
    match = match_steps([[{"name": "count", "output": "7"}]], [step])
    assert match.steps_score == 1.0
    assert match.matches[0].reason == "the score of match_counts is 1"


def test_matcher_needs_a_name_or_a_media_type() -> None:
    with pytest.raises(MatcherError, match="a name or a media type"):
        register_matcher()


def test_matcher_reads_outputs_or_args() -> None:
    with pytest.raises(MatcherError, match='Give reads="output" or reads="args"'):
        register_matcher(name="count", reads="artifact")  # type: ignore[arg-type]


def test_matcher_does_not_change_how_steps_are_shown() -> None:
    results = "application/sparql-results+json"
    register_matcher(name="sparql_query")(constant(1.0))  # type: ignore[type-var]
    register_matcher(name="run_sparql", media_type=results)(constant(1.0))  # type: ignore[type-var]
    register_matcher(media_type=results)(constant(1.0))  # type: ignore[type-var]
    assert [shown_as(name, step_kind_for(name, results)) for name in ("sparql_query", "run_sparql", "ask")] == [
        "rows",
        "text",
        "rows",
    ]


def test_exception_in_a_matcher_scores_0_with_the_reason() -> None:
    def broken(reference: StepView, actual: StepView) -> float:
        raise KeyError("rows")

    comparison = comparison_of(broken, StepView({}), StepView({}))
    assert isinstance(comparison, StepScore)
    assert comparison.score == 0.0
    assert comparison.reason() == "the comparison failed with KeyError: 'rows'"


def test_custom_matchers_include_replacements_of_built_in_ones() -> None:
    assert custom_matchers() == {}
    registered = register_matcher(name="count")(constant(1.0))  # type: ignore[type-var]
    instead = register_matcher(name="sparql_query", media_type="application/sparql-results+json")(constant(1.0))  # type: ignore[type-var]
    assert custom_matchers() == {
        ("count", None): registered,
        ("sparql_query", "application/sparql-results+json"): instead,
    }
