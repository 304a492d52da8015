"""`doctor --plugins`, and `--plugin` of the commands that load them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag_eval_lc.registry import registered_only_here

Command = Callable[..., int]
CHECKS = """
from graphrag_eval_lc import register_evaluator, register_exporter, register_matcher, register_metric


@register_metric(key="saved_sec", title="seconds saved", unit="seconds", lower_is_better=True)
def saved_sec(question, response):
    return 1.5


@register_matcher(name="lookup")
def match_ends(reference, actual):
    return 1.0


@register_exporter(name="ids", file_name="ids.txt", title="the ids")
def write_ids(run, path=None):
    return path


@register_evaluator(name="manners")
def polite(question, response):
    return True
"""


@pytest.fixture(autouse=True)
def checks(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(files))
    Path("checks.py").write_text(CHECKS)


def test_what_plugins_give_is_shown_with_where_it_is_from(
    exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("config.yaml").write_text("plugins: [checks.py]")
    assert exit_code("doctor", "--plugins", "-c", "config.yaml") == 0
    shown = capsys.readouterr().out
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in shown.splitlines() if "│" in line]
    (plugin, *others) = rows
    assert plugin[:2] == ["checks.py", "config"]
    assert plugin[2].startswith("sha256 ")
    assert plugin[3] == "evaluator manners, exporter ids, metric saved_sec, step kind lookup"
    assert others == [
        ["saved_sec", "seconds saved", "seconds", "less", "checks.py"],
        ["lookup", "lookup", "output", "checks.py"],
        ["manners", "checks.py"],
        ["ids", "the ids", "ids.txt", "checks.py"],
    ]


def test_where_there_are_none_it_says_so(exit_code: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("doctor", "--plugins") == 0
    assert capsys.readouterr().out == "No plugins found. --all shows what the package itself registers.\n"


def test_all_shows_what_the_package_has(exit_code: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("doctor", "--plugins", "--all", "--plugin", "checks.py") == 0
    shown = capsys.readouterr().out
    for name in ("saved_sec", "steps_score", "retrieval_ids_…", "answer_relevance", "report.html", "sparql_query with"):
        assert name in shown


def test_run_and_score_have_what_a_plugin_gives(exit_code: Command, capsys: pytest.CaptureFixture[str]) -> None:
    with registered_only_here():
        exit_code("run", "qa.yaml", "-a", "agent.py:graph", "-o", "run", "--plugin", "checks.py", "-q")
    results = [json.loads(line) for line in Path("run/results.jsonl").read_text().splitlines()]
    assert [result["saved_sec"] for result in results] == [1.5, 1.5, 1.5]
    capsys.readouterr()
    assert exit_code("score", "run") == 2
    assert "Add --plugin checks.py (" in capsys.readouterr().err
    assert exit_code("score", "run", "--plugin", "checks.py") == 0
    assert [json.loads(line) for line in Path("run/results.jsonl").read_text().splitlines()] == results


def test_a_draft_tells_which_plugins_of_step_kinds_the_run_had(
    exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    with registered_only_here():
        exit_code("run", "qa.yaml", "-a", "agent.py:graph", "-o", "run", "--plugin", "checks.py", "-q")
    capsys.readouterr()
    assert exit_code("dataset", "draft", "run", "-o", "without.yaml") == 0
    assert "Note: The run had the step kind lookup of the plugin checks.py, which is missing now: " in (
        capsys.readouterr().err
    )
    assert exit_code("dataset", "draft", "run", "-o", "with.yaml", "--plugin", "checks.py") == 0
    assert "step kind" not in capsys.readouterr().err


@pytest.mark.parametrize("given", [("--plugin", "checks.py"), ("-c", "config.yaml")])
def test_a_least_mean_of_a_plugins_metric_of_which_less_is_better_is_refused_before_an_agent_is_asked(
    given: tuple[str, str], exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("config.yaml").write_text("plugins: [checks.py]")
    gate = ("--fail-under", "saved_sec=3")
    assert exit_code("run", "qa.yaml", "-a", "agent.py:graph", "-o", "run", *given, *gate) == 2
    assert exit_code("score", "qa.yaml", "responses.jsonl", "-o", "run", *given, *gate) == 2
    errors = capsys.readouterr().err
    assert errors.count("less is better for saved_sec, so a least mean makes no sense") == 2
    assert not Path("run").exists()


def test_what_a_run_records_of_a_metric_counts_for_gates_too(
    exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    with registered_only_here():
        for run in ("a", "b"):
            assert exit_code("score", "qa.yaml", "responses.jsonl", "-o", run, "--plugin", "checks.py") == 0
    assert exit_code("compare", "a", "b", "--fail-under", "saved_sec=1") == 2
    assert "less is better for saved_sec" in capsys.readouterr().err
