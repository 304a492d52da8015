"""Gates in all forms, parsed and checked on a single run and in a comparison."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.scored_runs import run_folder

from graphrag_eval_lc import compare_runs, compute_aggregates, register_metric, run_evaluation, score_responses
from graphrag_eval_lc.compare import gate_results, read_gates
from graphrag_eval_lc.compare.gates import GateOption, gates_of_option
from graphrag_eval_lc.config import GateConfig, load_config
from graphrag_eval_lc.errors import ConfigError, GraphRAGEvalError, OptionError, RunFolderError

Results = list[dict[str, Any]]
Scored = Callable[..., Results]


def run_of(*scores: float, **values: Any) -> Results:
    return [
        {"template_id": f"t{index}", "question_id": f"q{index}", "steps_score": score, "total_tokens": 100, **values}
        for index, score in enumerate(scores)
    ]


A, B = run_of(1.0, 1.0, 1.0), run_of(1.0, 1.0, 0.0)


def folder(path: Path, results: Results, gates: Any = None) -> Path:
    return run_folder(path, results, config={} if gates is None else {"gates": gates})


# A gate in each form, and its config.
FORMS: list[tuple[Any, dict[str, Any]]] = [
    ("steps_score=0.9", {"metric": "steps_score", "under": 0.9}),
    ("steps_score = .9", {"metric": "steps_score", "under": 0.9}),
    ("custom=-1e2", {"metric": "custom", "under": -100.0}),
    ("notes/steps_score=0.8", {"template": "notes", "metric": "steps_score", "under": 0.8}),
    ("a/b=c/steps_score=.8", {"template": "a/b=c", "metric": "steps_score", "under": 0.8}),
    ("how many?/answer_f1=1", {"template": "how many?", "metric": "answer_f1", "under": 1.0}),
    ("elapsed_sec.p95=30", {"metric": "elapsed_sec.p95", "over": 30.0}),
    ("total_tokens=+10%", {"metric": "total_tokens", "over": "+10%"}),
    ("--fail-under steps_score=0.9", {"metric": "steps_score", "under": 0.9}),
    ("--fail-over notes/agent_cost=+0.05", {"template": "notes", "metric": "agent_cost", "over": "+0.05"}),
    ("--max-drop 0.05", {"max_drop": 0.05}),
    ("--max-drop=notes/steps_score=0.1", {"template": "notes", "metric": "steps_score", "max_drop": 0.1}),
    ("--max-drop-per-template answer_f1=0.2", {"metric": "answer_f1", "max_drop_per_template": 0.2}),
    ("--max-lost 5", {"max_lost": 5}),
    ("--max-lost 2/template", {"max_lost_per_template": 2}),
    ("--max-lost 1/notes", {"template": "notes", "max_lost": 1}),
    ("--fail-on-regression", {"regression": 0.05}),
    ("--fail-on-regression=0.02", {"regression": 0.02}),
    ({"metric": "steps_score", "under": 0.9}, {"metric": "steps_score", "under": 0.9}),
    (GateConfig(max_lost=1), {"max_lost": 1}),
]


@pytest.mark.parametrize(("form", "gate"), FORMS)
def test_gate_is_parsed_from_each_form(form: Any, gate: dict[str, Any]) -> None:
    assert read_gates([form], has_baseline=True) == [GateConfig(**gate)]


def test_minimum_means_a_string_and_a_config_are_gates_too() -> None:
    wanted = [GateConfig(metric="steps_score", under=0.9)]
    assert read_gates({"steps_score": 0.9}) == read_gates("steps_score=0.9") == wanted
    assert read_gates(load_config({"gates": [{"metric": "steps_score", "under": 0.9}]})) == wanted
    assert read_gates(None) == []


@given(
    template=st.none() | st.text(min_size=1),
    metric=st.from_regex(r"[a-z_][a-z0-9_.@-]*", fullmatch=True),
    value=st.floats(0, 1e9),
)
def test_template_ends_at_the_last_slash_and_the_value_starts_at_the_last_equals_sign(
    template: str | None, metric: str, value: float
) -> None:
    (gate,) = gates_of_option(
        "fail-under", [f"{metric}={value}" if template is None else f"{template}/{metric}={value}"]
    )
    assert (gate.template, gate.metric, gate.under) == (template, metric, value)


@pytest.mark.parametrize(
    ("option", "texts"),
    [
        ("fail-under", ["steps_score", "=0.9", "/steps_score=1", "t/=1", "steps_score=", "steps_score=+0.9", "a=high"]),
        ("fail-under", ["a=nan", "a=inf", "steps_score>=0.9", "steps_score<=0.9", "steps score=0.9", "a=1_0"]),
        (
            "fail-over",
            ["elapsed_sec", "elapsed_sec=fast", "total_tokens=10%", "total_tokens=+", "a=+ten", "a=+-1", "a=+_1"],
        ),
        ("max-drop", ["", "5", "5%", "-0.1", "nan", "inf", "0_1", "0,05", "steps_score=-1", "steps_score=2"]),
        ("max-drop-per-template", ["2", "a=x"]),
        ("max-lost", ["1.5", "-1", "1/", "many", "1 / ", "1_0"]),
        ("fail-on-regression", ["2", "x"]),
    ],
)
def test_malformed_gate_is_rejected_with_the_right_form(option: GateOption, texts: list[str]) -> None:
    for text in texts:
        with pytest.raises(OptionError, match=rf"is not a value of --{option}\. Write --{option}"):
            gates_of_option(option, [text], has_baseline=True)


@pytest.mark.parametrize(
    ("gate", "problem"),
    [
        ("--max-drop step_score=0.1", r"unknown metric step_score\. Did you mean steps_score\?"),
        ("--max-drop t/steps_score=0.1", r"the runs have no template t\. "),
        ({"template": "t7", "max_lost": 1}, r"the runs have no template t7\. There are t0, t1, t2"),
        ("--max-drop steps_score.p95=0.1", r"max_drop is about the mean, and steps_score\.p95 names another statistic"),
        ("--max-drop total_tokens.p95=0.1", r"Name over: \+20% \(--fail-over total_tokens\.p95=\+20%\)"),
        ({"max_drop": 1.5}, r"1\.5 is not a drop from 0 to 1"),
        ({"metric": "total_tokens", "max_lost": 1}, r"total_tokens has no best value, so no question is right in it"),
        ("--max-drop-per-template t0/steps_score=0.1", r"names a template.*Write --max-drop t0/steps_score=0\.1"),
        ("--max-drops 1", r"'--max-drops 1' is not a gate\. The options of gates are --fail-under"),
        ("steps_score=+10%", r"more is better for steps_score.*--max-drop steps_score=0\.05"),
        ({"max_lost": 1, "confident": True}, r"confident is about drops, and max_lost limits none"),
        ({"max_lost_per_template": 1, "template": "t0"}, r"max_lost_per_template holds in each template"),
        ({"max_regret": 1}, r"is not a gate: unknown key gates\.0\.max_regret"),
        (7, r"7 is not a gate"),
    ],
)
def test_invalid_gate_is_rejected_with_a_hint(gate: Any, problem: str) -> None:
    with pytest.raises(OptionError, match=problem):
        compare_runs(A, B).gate_results([gate])


def test_duplicate_bound_is_rejected() -> None:
    for option in get_args(GateOption):
        text = {"max-lost": "1/notes", "max-drop-per-template": "a=0.1"}.get(option, "notes/a=0.1")
        with pytest.raises(OptionError, match=rf"--{option} bounds .* twice"):
            gates_of_option(option, [text, text])
    assert len(gates_of_option("fail-over", ["notes/elapsed_sec.p95=3", "elapsed_sec.p95=4", "elapsed_sec=2"])) == 3


@pytest.mark.parametrize(
    ("gate", "problem"),
    [
        (
            "--fail-over total_tokens=+10%",
            r"one run has no baseline.*compare RUN_A RUN_B --fail-over total_tokens=\+10%",
        ),
        ("--max-drop 0.05", r"max_drop compares a run with a baseline, and one run has no baseline"),
        ({"max_lost": 0}, "max_lost compares a run with a baseline"),
    ],
)
def test_gate_that_needs_a_baseline_is_rejected_for_a_single_run(gate: Any, problem: str) -> None:
    with pytest.raises(OptionError, match=problem):
        gate_results(A, [gate])
    if isinstance(gate, dict):
        with pytest.raises(OptionError, match=problem):
            gate_results(A, load_config({"gates": [gate]}))


# Results, gate, state, value, message.
ABSOLUTE: list[tuple[Results, Any, str, float | None, str]] = [
    (B, "steps_score=0.5", "passed", 2 / 3, "steps_score 0.667 ≥ 0.5"),
    (B, "steps_score=0.8", "failed", 2 / 3, "steps_score 0.667 < 0.8"),
    (run_of(0.9, 0.9, 0.9), "steps_score=0.9", "passed", 0.9, "steps_score 0.900 ≥ 0.9"),
    # The mean is 0.6999999999999998.
    (run_of(0.7, 0.7, 0.7), "steps_score=0.7", "passed", 0.7, "steps_score 0.7 ≥ 0.7"),
    (run_of(0.8999), "steps_score=0.9", "failed", 0.8999, "steps_score 0.8999 < 0.9"),
    (run_of(0.89999), "steps_score=0.9", "failed", 0.89999, "steps_score 0.89999 < 0.9"),
    (B, "total_tokens=200", "passed", 100, "total_tokens 100 ≤ 200"),
    (B, "total_tokens.sum=200", "failed", 300, "total_tokens.sum 300 > 200"),
    (B, "t2/steps_score=0.5", "failed", 0.0, "t2/steps_score 0.000 < 0.5"),
    (B, "t9/steps_score=0.5", "not checked", None, "t9/steps_score: the run has no question of the template t9"),
    (B, "answer_f1=0", "failed", None, "answer_f1 was not measured (≥ 0 is required)"),
    ([], "answer_f1=0", "failed", None, "answer_f1 was not measured (≥ 0 is required)"),
    (B, "agent_cost=1", "failed", None, "agent_cost was not measured (≤ 1 is required)"),
    (
        [*run_of(1.0), {**run_of(1.0, 1.0)[1], "error": "away"}],
        "steps_score=0.9",
        "failed",
        0.5,
        "steps_score 0.500 < 0.9 (1 failed sample counts as 0)",
    ),
    (
        [*run_of(1.0, answer_f1=0.5), *run_of(1.0, 1.0)[1:]],
        "answer_f1=0.8",
        "failed",
        0.5,
        "answer_f1 0.500 < 0.8 (1 question without it)",
    ),
    (
        run_of(0.5, steps_score_upper=1.0),
        "steps_score=0.6",
        "failed",
        0.5,
        "steps_score 0.500 < 0.6 (1.000 if all undecided steps matched)",
    ),
    (run_of(1.0, polite=True), "polite=1", "passed", 1.0, "polite 1.000 ≥ 1"),
    (run_of(1.0), {"metric": "of\x1b[2J\nnobody", "under": 0.5}, "failed", None, "of␛[2J␊nobody was not measured"),
]


@pytest.mark.parametrize(("results", "gate", "state", "value", "sentence"), ABSOLUTE)
def test_state_value_and_message_for_a_single_run(
    results: Results, gate: Any, state: str, value: float | None, sentence: str
) -> None:
    (result,) = gate_results(results, [gate])
    assert (result.state, result.has_passed) == (state, state == "passed")
    assert result.value == pytest.approx(value)
    assert result.sentence.startswith(sentence)
    assert result.letter == ""


@pytest.mark.parametrize(
    ("gate", "title"),
    [
        ("notes/steps_score=0.9", "notes/steps_score ≥ 0.9"),
        ("total_tokens.sum=1000000", "total_tokens.sum ≤ 1,000,000"),
        ("total_tokens=+10%", "total_tokens +10%"),
        ("--max-drop 0.05", "steps_score max_drop 0.05"),
        ("--fail-on-regression", "steps_score regression 0.05"),
    ],
)
def test_title_of_a_result_stays_the_same_from_run_to_run(gate: str, title: str) -> None:
    results = [*A, {**A[0], "template_id": "notes", "question_id": "n"}]
    for scores in (results, [{**each, "steps_score": 0.0} for each in results]):
        assert compare_runs(results, scores).gate_results([gate])[0].title == title


def test_minimum_of_a_lower_is_better_metric_is_rejected(scored: Scored) -> None:
    gates = read_gates(["detour=3"])
    register_metric(key="detour", unit="km", lower_is_better=True)(lambda question, response: 12.0)
    with pytest.raises(OptionError, match=r"less is better for detour, .*: --fail-over detour=3"):
        gate_results(scored(1.0, detour=12.0), gates)


ZERO: dict[str, Any] = {"retrieval": {"missing": "zero", "measures": ["R"]}}
FOUND = {"name": "retrieval", "args": {}, "id": "c", "status": "success", "output": '[{"id": "a"}]'}
STEP = {"name": "retrieval", "relevant_ids": ["a"]}
QUESTIONS = [{"id": name, "question_text": "?", "reference_steps": [[STEP]]} for name in ("q1", "q2")]
RETRIEVAL: list[Any] = [{"template_id": "t", "questions": QUESTIONS}]
RESPONSES: list[Any] = [{"question_id": "q1", "actual_steps": []}, {"question_id": "q2", "actual_steps": [FOUND]}]


def test_missing_retrieval_counts_as_in_the_aggregates(tmp_path: Path) -> None:
    metric = "retrieval_ids_recall"
    score_responses(RETRIEVAL, RESPONSES, output_dir=tmp_path / "run", config=ZERO)
    results = run_evaluation(RETRIEVAL, RESPONSES, ZERO)
    assert compute_aggregates(results, ZERO)["micro"][metric]["mean"] == 0.5
    assert gate_results(tmp_path / "run", {metric: 0.9})[0].value == 0.5
    assert gate_results(results, {metric: 0.9}, ZERO)[0].value == 0.5
    compared = compare_runs(tmp_path / "run", results, metrics=[metric], config=ZERO).pairs[0].metric(metric)
    assert compared is not None
    assert (compared.mean_a, compared.mean_b) == (0.5, 0.5)


def test_config_gates_are_reported_with_their_place() -> None:
    comparison = compare_runs(A, B)
    assert not comparison.gate_results(load_config({"gates": [{"max_drop": 0.1}]}))[0].has_passed
    config = load_config({"gates": [{"max_lost": 1}, {"metric": "step_score", "max_drop": 0.1}]})
    with pytest.raises(ConfigError, match=r"key gates\.1\.metric: unknown metric step_score"):
        comparison.gate_results(config)


def test_gates_of_the_run_record_are_checked_by_default(tmp_path: Path) -> None:
    gates = [{"metric": "steps_score", "max_drop": 0.05}, {"metric": "total_tokens", "over": 200}]
    a, b = folder(tmp_path / "a", A, [{"max_lost": 0}]), folder(tmp_path / "b", B, gates)
    results = compare_runs(a, b, a).gate_results()
    assert [str(gate) for gate in results] == [
        "B: steps_score 1.000 → 0.667, drop 0.333 > 0.05",
        "B: total_tokens 100 ≤ 200",
        "C: steps_score: 0 of 3 right questions broken ≤ 0",
    ]
    assert compare_runs(A, B, config={"gates": gates}).gate_results() == results[:2]
    assert compare_runs(A, B).gate_results() == []
    assert [str(gate) for gate in gate_results(b)] == ["total_tokens 100 ≤ 200"]


def test_template_of_a_recorded_gate_may_have_no_questions(tmp_path: Path) -> None:
    b = folder(tmp_path / "b", B, [{"template": "notes", "max_lost": 0}, {"metric": "own", "max_drop": 0.1}])
    assert [gate.state for gate in compare_runs(A, b).gate_results()] == ["not checked", "not checked"]


@pytest.mark.parametrize(
    ("gates", "problem"),
    [
        ([{"max_regret": 1}], r"run\.json, key config\.gates\.0\.max_regret: unknown key gates"),
        ([{"max_lost": 1}, {"max_drop": 2}], r"run\.json, key config\.gates\.1\.max_drop: 2 is not a drop"),
        ([{"metric": "steps_score", "over": "+10%"}], r"run\.json, key config\.gates\.0\.over: more is better"),
        ("many", r"run\.json, key config\.gates"),
    ],
)
def test_unreadable_gate_in_a_record_is_an_error(tmp_path: Path, gates: Any, problem: str) -> None:
    with pytest.raises(RunFolderError, match=problem):
        compare_runs(A, folder(tmp_path / "b", B, gates)).gate_results()


def test_recorded_declaration_defines_the_direction(tmp_path: Path) -> None:
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
    assert again.gate_results(["--max-lost 0"]) == comparison.gate_results(["--max-lost 0"])


def test_comparison_without_results_cannot_check_gates() -> None:
    comparison = compare_runs(A, B)
    bare = type(comparison)(comparison.baseline, comparison.pairs, comparison.metric, ())
    with pytest.raises(GraphRAGEvalError, match="no results to check gates on"):
        bare.gate_results(["--max-lost 0"])


@pytest.mark.parametrize("named", [{"max_drop": 0.05}, {"max_drop_per_template": 0.05}, {"max_lost": 0}])
def test_mean_may_be_named_explicitly(named: dict[str, Any]) -> None:
    plain, named_gate = compare_runs(A, B).gate_results(
        [{"metric": name, **named} for name in ("steps_score", "steps_score.mean")]
    )
    assert (plain.sentence, plain.state) == (named_gate.sentence, "failed")
