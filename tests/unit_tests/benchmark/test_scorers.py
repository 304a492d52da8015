"""What run.json says of a user's own matchers and evaluators, and how the command line names them."""

import hashlib
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.benchmark.scorers import custom_matchers_for, evaluators_of, load_matchers, scored_with
from graphrag_eval_lc.config import EvaluationConfig, load_config
from graphrag_eval_lc.errors import AgentError, OptionError
from graphrag_eval_lc.matching import StepKind, StepView, register_matcher, register_step_kind
from graphrag_eval_lc.matching.matchers import custom_matchers

pytestmark = pytest.mark.usefixtures("forget_matchers")

MATCHERS = """
from graphrag_eval_lc.matching import register_matcher


@register_matcher(name="count_rows")
def match_counts(reference, actual):
    return 1.0


def is_short(question, response):
    return True
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])


def questions_of(*steps: dict[str, Any]) -> Any:
    return [({"template_id": "t"}, {"id": "q", "question_text": "?", "reference_steps": [list(steps)]})]


def test_only_matchers_of_the_questions_steps_are_recorded() -> None:
    register_matcher(name="count")(lambda reference, actual: 1.0)
    register_matcher(name="other")(lambda reference, actual: 1.0)
    register_matcher(media_type="text/x")(partial(max, 1))  # type: ignore[arg-type]
    function = f"{__name__}:test_only_matchers_of_the_questions_steps_are_recorded.<locals>.<lambda>"
    steps = ({"name": "count"}, {"name": "sparql_query", "output_media_type": "text/x"})
    record = scored_with(questions_of(*steps), EvaluationConfig(), [])
    assert record["matchers"] == [
        {"name": "count", "function": function},
        {"media_type": "text/x", "function": "builtins:max"},
    ]
    assert record["evaluators"] == []
    given = [(plugin["name"], plugin["via"], plugin["gives"]) for plugin in record["plugins"]]
    assert given == [(__name__, "Python", ["step kind count"]), ("builtins", "Python", ["step kind text/x"])]


def test_functions_of_files_are_named_by_their_files_as_they_were_given() -> None:
    Path("checks.py").write_text(MATCHERS)
    load_matchers(["checks.py"])
    record = scored_with(
        questions_of({"name": "count_rows"}), EvaluationConfig(), evaluators_of(["checks.py:is_short"])
    )
    assert record == {
        "matchers": [{"name": "count_rows", "function": "checks.py:match_counts"}],
        "evaluators": [{"name": "is_short", "function": "checks.py:is_short"}],
        "plugins": [
            {
                "name": "checks.py",
                "via": "--matchers",
                "sha256": hashlib.sha256(MATCHERS.encode()).hexdigest(),
                "gives": ["step kind count_rows"],
            }
        ],
    }


def test_no_plugins_are_recorded_where_nothing_is_registered() -> None:
    assert scored_with(questions_of({"name": "count_rows"}), EvaluationConfig(), []) == {
        "matchers": [],
        "evaluators": [],
    }


def test_modules_of_matchers_may_be_packages() -> None:
    Path("matchers_of_the_test.py").write_text(MATCHERS)
    load_matchers(["matchers_of_the_test"])
    assert list(custom_matchers()) == [("count_rows", None)]


@pytest.mark.parametrize(
    ("module", "error", "complaint"),
    [
        ("agent.py:graph", OptionError, r"names an attribute of a module\. Write --matchers agent\.py\."),
        ("package.module:graph", OptionError, r"Write --matchers package\.module\."),
        ("json", OptionError, r"--matchers json registers no matcher\. Let it call register_matcher"),
        ("absent.py", AgentError, r"there is no file absent\.py\. Write package\.module or path/to/file\.py\."),
        ("absent_module_of_the_test", AgentError, r"there is no module absent_module_of_the_test\. Write package"),
    ],
)
def test_module_that_registers_nothing_is_told(module: str, error: type[Exception], complaint: str) -> None:
    with pytest.raises(error, match=complaint):
        load_matchers([module])


def test_evaluators_may_be_functions_and_specs() -> None:
    Path("checks.py").write_text(MATCHERS)
    assert [function.__name__ for function in evaluators_of([len, "checks.py:is_short"])] == ["len", "is_short"]
    assert evaluators_of(None) == ()
    with pytest.raises(AgentError, match="'is_short' is no spec of an evaluator"):
        evaluators_of(["is_short"])


@pytest.mark.parametrize("given", [len, "checks.py:is_short", {"a": len}, [3]])
def test_what_is_no_list_of_functions_is_told(given: Any) -> None:
    with pytest.raises(OptionError, match="Give a list of functions"):
        evaluators_of(given)


def test_custom_matchers_for_steps_are_those_that_may_compare_them() -> None:
    def own(reference: StepView, actual: StepView) -> float:
        return 1.0

    keys: list[tuple[str | None, str | None]] = [
        ("count", None),
        ("count", "text/x"),
        (None, "text/x"),
        ("retrieval", None),
        ("other", None),
    ]
    for name, media_type in keys:
        register_matcher(name=name, media_type=media_type)(own)
    assert set(custom_matchers_for([], EvaluationConfig())) == set()
    assert set(custom_matchers_for([{"name": "count"}, {"name": "count"}], EvaluationConfig())) == {("count", None)}
    typed = {"name": "count", "output_media_type": "text/x"}
    assert set(custom_matchers_for([typed], EvaluationConfig())) == {
        ("count", None),
        ("count", "text/x"),
        (None, "text/x"),
    }
    searched = {"name": "search_docs", "relevant_ids": ["a"]}
    assert set(custom_matchers_for([searched], EvaluationConfig())) == set()
    retrieval = load_config({"retrieval": {"steps": ["search_docs"]}})
    assert set(custom_matchers_for([searched], retrieval)) == {("retrieval", None)}


def test_kinds_of_users_that_are_named_are_recorded() -> None:
    def match(reference: Any, actual: Any) -> float:
        return 0.5

    register_step_kind(StepKind(key="half", serves=(("half_step", None),), matcher=match))
    named = load_config({"steps": {"kinds": {"graph": "half"}}})
    assert custom_matchers_for([{"name": "graph"}], named) == {("half_step", None): match}
    as_text = load_config({"steps": {"kinds": {"half_step": "text"}}})
    assert custom_matchers_for([{"name": "half_step"}], as_text) == {}
