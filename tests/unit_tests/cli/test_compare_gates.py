"""The gates of the command `compare` beside its baseline, and the exit codes that they give."""

import json
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., int]
Output = pytest.CaptureFixture[str]


def result(index: int, score: float, **values: Any) -> dict[str, Any]:
    base = {"template_id": f"t{index % 4}", "question_id": f"q{index}", "question_text": f"What of {index}?"}
    return {**base, "status": "success", "steps_score": score, "total_tokens": 1000, **values}


def folder(name: str, results: list[dict[str, Any]], gates: Any = None) -> None:
    path = Path(name)
    path.mkdir()
    path.joinpath("results.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in results))
    record = {"format_version": 2} | ({} if gates is None else {"config": {"gates": gates}})
    path.joinpath("run.json").write_text(json.dumps(record))


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the folders of runs: `worse` lost two questions of `good` and took more tokens."""
    monkeypatch.chdir(tmp_path)
    folder("good", [result(index, 1.0) for index in range(12)])
    folder("worse", [result(index, float(index not in (0, 4)), total_tokens=1200) for index in range(12)])
    folder("part", [result(index, 1.0) for index in range(12) if index % 4])


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--max-drop", "0.1"], 1),
        (["--max-drop", "0.17"], 0),
        (["--max-drop", "steps_score=0.2", "--max-drop", "t0/steps_score=0.5"], 1),
        (["--max-drop", "steps_score=0.1", "--confident"], 0),
        (["--max-drop-per-template", "0.2"], 1),
        (["--max-drop-per-template", "steps_score=0.7"], 0),
        (["--max-lost", "2"], 0),
        (["--max-lost", "1/template"], 1),
        (["--max-lost", "0/t1"], 0),
        (["--fail-over", "total_tokens=+10%"], 1),
        (["--fail-over", "total_tokens=+200", "--fail-over", "total_tokens=1300"], 0),
        (["--fail-over", "total_tokens=1100"], 1),
        (["--fail-over", "total_tokens.p95=+20%", "--max-drop", "total_tokens=0.2"], 0),
        (["--fail-on-regression", "--max-drop", "0.2"], 0),
        (["--fail-on-regression", "--max-drop", "0.2", "--max-drop", "steps_score=0.1"], 1),
        (["--fail-on-regression", "--confident"], 0),
        (["--fail-on-regression"], 1),
        (["--max-drop", "answer_f1=0.1"], 3),
        (["--max-drop", "answer_f1=0.1", "--max-lost", "0"], 1),
        (["--max-drop", "answer_f1=0.1", "--max-lost", "2"], 3),
    ],
)
def test_exit_codes(exit_code: Command, options: list[str], code: int) -> None:
    assert exit_code("compare", "good", "worse", *options) == code
    assert exit_code("compare", "good", "good", *options) == (3 if code == 3 or "answer_f1=0.1" in options else 0)


def test_template_without_a_common_question_is_nothing_to_compare(exit_code: Command, capsys: Output) -> None:
    assert exit_code("compare", "good", "part", "--max-drop", "t0/steps_score=0.1", "--max-lost", "0") == 3
    output = capsys.readouterr()
    assert (
        "Gate not checked: B: t0/steps_score cannot be compared: A and B have no question of the template t0 in "
        "common.\n"
    ) in output.err
    assert "Gate passed: B: steps_score: 0 of 9 right questions lost ≤ 0" in output.out


def test_gates_are_told_in_one_form_in_the_terminal_and_on_the_page(exit_code: Command, capsys: Output) -> None:
    options = [
        "--fail-on-regression",
        "--max-lost",
        "2",
        "--fail-under",
        "steps_score=0.5",
        "--max-drop",
        "answer_f1=1",
    ]
    options += ["--html", "page.html"]
    assert exit_code("compare", "good", "worse", *options) == 1
    output = capsys.readouterr()
    texts = [line for line in (output.out + output.err).splitlines() if line.startswith("Gate ")]
    assert sorted(text.partition(":")[0] for text in texts) == [
        "Gate failed",
        "Gate not checked",
        "Gate passed",
        "Gate passed",
    ]
    page = Path("page.html").read_text(encoding="utf-8")
    for text in texts:
        state, _, found = text.removeprefix("Gate ").partition(": ")
        assert f"{state.capitalize()}: <bdi>{escape(found)}" in page


def test_effect_that_decides_says_how_often_the_test_would_see_a_drop(exit_code: Command, capsys: Output) -> None:
    noisy = [result(index, float(index % 3 > 0), template_id=f"t{index}") for index in range(12)]
    folder("noisy", noisy)
    folder("other", [{**each, "steps_score": float(index % 2)} for index, each in enumerate(noisy)])
    assert exit_code("compare", "noisy", "other", "--fail-on-regression") == 1
    errors = capsys.readouterr().err
    assert "(the effect decided: the test finds a drop of 0.05 in only " in errors
    assert " % of such comparisons).\n" in errors


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--max-drop", "step_score=0.1"], "unknown metric step_score. Did you mean steps_score?"),
        (["--max-lost", "1/notes"], "the runs have no template notes. There are t0, t1, t2, t3."),
        (["--fail-over", "total_token=+10%"], "Did you mean total_tokens?"),
        (["--fail-over", "total_tokens=10%"], "is not a value of --fail-over. Write"),
        (["--confident"], "--confident needs --max-drop or --max-drop-per-template or --fail-on-regression: it limits"),
        (["--max-drop", "0.1", "--max-drop", "0.2"], "--max-drop bounds the main metric twice"),
        (["-c", "gates.yaml"], "gates.yaml, line 2, key gates.1.metric: unknown metric step_score"),
    ],
)
def test_names_are_checked_before_anything_is_printed(
    exit_code: Command, capsys: Output, options: list[str], complaint: str
) -> None:
    Path("gates.yaml").write_text("gates: [{max_lost: 1},\n  {metric: step_score, max_drop: 0.1}]\n")
    assert exit_code("compare", "good", "worse", *options) == 2
    output = capsys.readouterr()
    assert complaint in output.err
    assert output.out == ""


def test_gates_of_a_file_hold_beside_those_of_options(exit_code: Command, capsys: Output) -> None:
    Path("gates.yaml").write_text(
        "gates:\n- {metric: steps_score, under: 0.8}\n- {max_lost: 2}\n- {metric: total_tokens, over: +10%}\n"
    )
    assert exit_code("compare", "good", "worse", "-c", "gates.yaml", "--max-drop", "0.1") == 1
    output = capsys.readouterr()
    assert "3 gates of gates.yaml are checked, and none of run.json.\n" in output.out
    assert output.out.count("Gate passed") == 2
    assert "Gate failed: B: total_tokens 1,000 → 1,200, +20.0 % > +10%" in output.err
    assert "Gate failed: B: steps_score 1.000 → 0.833, drop 0.167 > 0.1" in output.err


def test_without_a_file_the_gates_of_each_run_are_checked_and_that_is_said(exit_code: Command, capsys: Output) -> None:
    folder("strict", [result(index, float(index > 0)) for index in range(12)], [{"max_lost": 0}])
    assert exit_code("compare", "strict", "good", "strict") == 0
    assert exit_code("compare", "good", "good", "strict") == 1
    output = capsys.readouterr()
    told = "1 gate of the config in strict/run.json is checked; --config FILE replaces them.\n"
    assert output.out.count(told) == 2
    unlike = "The config in good/run.json has no gates, unlike that of strict; --config FILE adds some.\n"
    assert output.out.count(unlike) == 2
    assert exit_code("compare", "good", "worse") == 0
    assert "no gates" not in capsys.readouterr().out
    assert "Gate failed: C: steps_score: 1 of " in output.err
    Path("none.yaml").write_text("steps: {}\n")
    assert exit_code("compare", "good", "strict", "--config", "none.yaml") == 0


def test_gate_of_another_version_is_one_error(exit_code: Command, capsys: Output) -> None:
    folder("newer", [result(0, 1.0)], [{"metric": "steps_score", "max_regret": 0.1}])
    assert exit_code("compare", "good", "newer") == 2
    output = capsys.readouterr()
    assert output.err.startswith("Error: newer/run.json, key config.gates.0.max_regret: unknown key")
    assert output.err.count("\n") == 1
    assert output.out == ""
    Path("none.yaml").write_text("gates: []\n")
    assert exit_code("compare", "good", "newer", "-c", "none.yaml") == 0
