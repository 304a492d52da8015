"""Gates of a comparison in Python: their forms, names that are checked, and those of each run's own configuration."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import compare_runs
from graphrag_eval_lc.compare.baseline_texts import gates_of_drops, gates_of_lost
from graphrag_eval_lc.config import GateConfig, load_config
from graphrag_eval_lc.errors import ConfigError, GraphRAGEvalError, OptionError, RunFolderError
from graphrag_eval_lc.registry import plugins, registered_only_here

Results = list[dict[str, Any]]


def run_of(*scores: float, **values: Any) -> Results:
    return [
        {"template_id": f"t{index}", "question_id": f"q{index}", "steps_score": score, "total_tokens": 100, **values}
        for index, score in enumerate(scores)
    ]


A, B = run_of(1.0, 1.0, 1.0), run_of(1.0, 1.0, 0.0)


def folder(path: Path, results: Results, gates: Any = None) -> Path:
    path.mkdir()
    path.joinpath("results.jsonl").write_text("".join(f"{json.dumps(result)}\n" for result in results))
    config = {} if gates is None else {"gates": gates}
    path.joinpath("run.json").write_text(json.dumps({"format_version": 2, "config": config}))
    return path


def test_gates_are_texts_mappings_or_gates_of_the_config() -> None:
    comparison = compare_runs(A, B)
    gates = ["--max-drop=0.05", "steps_score=0.5", {"max_lost": 1}, GateConfig(metric="total_tokens", over="+10%")]
    results = comparison.gate_results(gates)
    assert [(gate.has_passed, gate.is_comparable) for gate in results] == [
        (False, True),
        (True, True),
        (True, True),
        (True, True),
    ]
    assert str(results[1]) == "B: steps_score 0.667 reaches 0.5 (3 questions)"
    assert comparison.gate_results("--max-lost 1")[0].has_passed
    assert not comparison.gate_results({"steps_score": 0.9})[0].has_passed


def test_gates_hold_for_each_run_but_the_baseline() -> None:
    results = compare_runs(A, B, A).gate_results(["--max-drop 0.1", "--max-lost 0"])
    assert [str(gate)[:2] for gate in results] == ["B:", "B:", "C:", "C:"]
    assert [gate.has_passed for gate in results] == [False, False, True, True]


@pytest.mark.parametrize(
    ("gate", "problem"),
    [
        ("--max-drop step_score=0.1", r"there is no metric step_score\. Did you mean steps_score\?"),
        ("--max-drop t/steps_score=0.1", r"the runs have no template t\. "),
        ({"template": "t7", "max_lost": 1}, r"the runs have no template t7\. There are t0, t1, t2"),
        ("--max-drop steps_score.p95=0.1", r"--max-drop is of the mean, and steps_score\.p95 names another statistic"),
        ("--max-drop total_tokens.p95=0.1", r"Bound how much it may rise: --fail-over total_tokens\.p95=\+20%"),
        ("--max-drop 5", r"'5' is no drop that can be allowed\. Give one number from 0 to 1"),
        ("--max-drop steps_score=-1", r"'steps_score=-1' is no drop that can be allowed"),
        ({"max_drop": 1.5}, r"1\.5 is no drop that can be allowed"),
        ("--max-drop-per-template t0/steps_score=0.1", r"names a template.*Write --max-drop t0/steps_score=0\.1"),
        ("--max-lost 1.5", r"'1\.5' is no number of lost questions\. Write it as --max-lost 2"),
        ("--max-lost -1", r"'-1' is no number of lost questions"),
        ("--max-lost 1/", r"'1/' is no number of lost questions"),
        ("--max-drops 1", r"'--max-drops 1' is no gate\. There are --max-drop"),
        ("steps_score=+10%", r"steps_score is a metric of which more is better"),
        ({"max_lost": 1, "confident": True}, r"confident is of max_drop and max_drop_per_template"),
        ({"max_lost_per_template": 1, "template": "t0"}, r"max_lost_per_template holds in each template"),
        (7, r"7 is no gate"),
    ],
)
def test_wrong_gates_are_told(gate: Any, problem: str) -> None:
    with pytest.raises(OptionError, match=problem):
        compare_runs(A, B).gate_results([gate])


def test_same_limit_given_twice_is_told() -> None:
    with pytest.raises(OptionError, match="--max-drop limits steps_score twice"):
        gates_of_drops(["steps_score=0.05", "steps_score=0.1"])
    with pytest.raises(OptionError, match="--max-lost limits the main metric of the template notes twice"):
        gates_of_lost(["1/notes", "2/notes"])


def test_gates_of_a_configuration_are_checked_with_their_place() -> None:
    comparison = compare_runs(A, B)
    assert not comparison.gate_results(load_config({"gates": [{"max_drop": 0.1}]}))[0].has_passed
    config = load_config({"gates": [{"max_lost": 1}, {"metric": "step_score", "max_drop": 0.1}]})
    with pytest.raises(ConfigError, match=r"key gates\.1\.metric: there is no metric step_score"):
        comparison.gate_results(config)


def test_without_gates_those_in_the_record_of_each_run_are_checked(tmp_path: Path) -> None:
    gates = [{"metric": "steps_score", "max_drop": 0.05}, {"metric": "total_tokens", "over": 200}]
    a, b = folder(tmp_path / "a", A, [{"max_lost": 0}]), folder(tmp_path / "b", B, gates)
    results = compare_runs(a, b, a).gate_results()
    assert [str(gate) for gate in results] == [
        "B: steps_score is worse by 0.333, and only 0.05 is allowed (1.000 → 0.667, 3 questions in 3 templates)",
        "B: total_tokens 100 stays within 200 (3 questions)",
        "C: steps_score has 0 lost questions, and 0 may be (3 of 3 questions were right in A)",
    ]
    assert compare_runs(A, B, config={"gates": gates}).gate_results() == results[:2]
    assert compare_runs(A, B).gate_results() == []


def test_template_that_a_record_names_may_have_no_question_now(tmp_path: Path) -> None:
    b = folder(tmp_path / "b", B, [{"template": "notes", "max_lost": 0}, {"metric": "own", "max_drop": 0.1}])
    results = compare_runs(A, b).gate_results()
    assert [gate.is_comparable for gate in results] == [False, False]


@pytest.mark.parametrize(
    ("gates", "problem"),
    [
        ([{"max_regret": 1}], r"run\.json, key config\.gates\.0\.max_regret: there is no key gates"),
        ([{"max_lost": 1}, {"max_drop": 2}], r"run\.json, key config\.gates\.1\.max_drop: 2 is no drop"),
        (
            [{"metric": "steps_score", "over": "+10%"}],
            r"run\.json, key config\.gates\.0\.over: steps_score is a metric",
        ),
        ("many", r"run\.json, key config\.gates"),
    ],
)
def test_gate_in_a_record_that_cannot_be_read_is_told(tmp_path: Path, gates: Any, problem: str) -> None:
    with pytest.raises(RunFolderError, match=problem):
        compare_runs(A, folder(tmp_path / "b", B, gates)).gate_results()


def test_declaration_in_a_record_says_which_way_is_better(tmp_path: Path) -> None:
    declares = {"unit": "score", "lower_is_better": True, "range": [0.0, 1.0]}
    paths = [folder(tmp_path / name, run_of(1.0, 1.0, noise=noise)) for name, noise in (("a", 0.2), ("b", 0.8))]
    for path in paths:
        record = {"format_version": 2, "evaluators": [{"name": "noise", "declares": declares}]}
        path.joinpath("run.json").write_text(json.dumps(record))
    comparison = compare_runs(*paths, metrics=["noise"])
    worse, bounded = comparison.gate_results(["--max-drop noise=0.1", "--fail-over noise=+0.1"])
    assert (worse.has_passed, bounded.has_passed) == (False, False)


def test_comparison_keeps_its_forms(tmp_path: Path) -> None:
    comparison = compare_runs(A, folder(tmp_path / "b", B))
    assert set(comparison.to_dict()) == {"baseline", "pairs", "metric", "warnings"}
    again = pickle.loads(pickle.dumps(comparison))
    assert again == comparison
    assert [*map(str, again.gate_results(["--max-lost 0"]))] == [*map(str, comparison.gate_results(["--max-lost 0"]))]


def test_comparison_without_results_has_nothing_to_check_gates_on() -> None:
    comparison = compare_runs(A, B)
    bare = type(comparison)(comparison.baseline, comparison.pairs, comparison.metric, ())
    with pytest.raises(GraphRAGEvalError, match="no results to check gates on"):
        bare.gate_results(["--max-lost 0"])


def test_broken_plugin_of_an_installed_package_does_not_keep_gates_from_being_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(plugins._installed, plugins.GROUP, raising=False)  # as in a new process
    (tmp_path / "broken_of_acme.py").write_text("import absent_of_the_test")
    info = tmp_path / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[graphrag_eval_lc]\nacme = broken_of_acme\n")
    b = folder(tmp_path / "b", B, [{"max_lost": 0}])
    with registered_only_here():
        comparison = compare_runs(A, b)
        assert any("acme" in warning for warning in comparison.warnings)
        assert [gate.has_passed for gate in comparison.gate_results()] == [False]
        assert [gate.has_passed for gate in comparison.gate_results(["--max-drop steps_score=0.5"])] == [True]


@pytest.mark.parametrize("named", [{"max_drop": 0.05}, {"max_drop_per_template": 0.05}, {"max_lost": 0}])
def test_mean_may_be_named_as_the_statistic_that_it_is(named: dict[str, Any]) -> None:
    (gate,) = compare_runs(A, B).gate_results([{"metric": "steps_score.mean", **named}])
    (plain,) = compare_runs(A, B).gate_results([{"metric": "steps_score", **named}])
    assert gate == plain
    assert gate.is_comparable
    assert not gate.has_passed
