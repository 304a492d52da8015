"""Custom matchers and evaluators in run.json, and their names on the command line."""

import hashlib
import sys
from functools import partial
from pathlib import Path

import pytest

from graphrag_eval_lc.benchmark.options import checked_evaluators
from graphrag_eval_lc.benchmark.run_manifest import scored_with
from graphrag_eval_lc.errors import AgentError
from graphrag_eval_lc.matching import register_matcher
from graphrag_eval_lc.registry.plugins import load_plugins

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


def test_matchers_are_recorded_with_their_plugins() -> None:
    register_matcher(name="count")(lambda reference, actual: 1.0)
    register_matcher(media_type="text/x")(partial(max, 1))  # type: ignore[arg-type]
    function = f"{__name__}:test_matchers_are_recorded_with_their_plugins.<locals>.<lambda>"
    record = scored_with([])
    assert record["matchers"] == [
        {"name": "count", "function": function},
        {"media_type": "text/x", "function": "builtins:max"},
    ]
    assert record["evaluators"] == []
    given = [(plugin["name"], plugin["via"], plugin["gives"]) for plugin in record["plugins"]]
    assert given == [(__name__, "Python", ["step kind count"]), ("builtins", "Python", ["step kind text/x"])]


def test_functions_of_files_are_recorded_with_the_given_path() -> None:
    Path("checks.py").write_text(MATCHERS)
    load_plugins(["checks.py"], via="--plugin")
    record = scored_with(checked_evaluators(["checks.py:is_short"]))
    assert record == {
        "matchers": [{"name": "count_rows", "function": "checks.py:match_counts"}],
        "evaluators": [{"name": "is_short", "function": "checks.py:is_short"}],
        "plugins": [
            {
                "name": "checks.py",
                "via": "--plugin",
                "sha256": hashlib.sha256(MATCHERS.encode()).hexdigest(),
                "gives": ["step kind count_rows"],
            }
        ],
    }


def test_evaluators_may_be_functions_and_specs() -> None:
    Path("checks.py").write_text(MATCHERS)
    assert [function.__name__ for function in checked_evaluators([len, "checks.py:is_short"])] == ["len", "is_short"]
    assert checked_evaluators(None) == ()
    with pytest.raises(AgentError, match="'is_short' is not the spec of an evaluator"):
        checked_evaluators(["is_short"])
