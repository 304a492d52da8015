"""The command `compare`, and `--fail-under` of this and other commands."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.registry import MetricSpec, metrics, plugins, registered_only_here

Command = Callable[..., int]
Output = pytest.CaptureFixture[str]
WORSE, BETTER = [0.0] * 6 + [1.0] * 6, [1.0] * 12


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the folders of runs, of which `worse` has lower scores than `better`."""
    monkeypatch.chdir(tmp_path)
    for name, scores in (("worse", WORSE), ("better", BETTER)):
        folder(Path(name), [result(index, score) for index, score in enumerate(scores)], label=f"[b]{name}")


def result(index: int, score: float, **values: Any) -> dict[str, Any]:
    base = {"template_id": f"t{index}", "question_id": f"q{index}", "question_text": f"What of [b]{index}?"}
    return {**base, "status": "success", "steps_score": score, "total_tokens": 1000 + index, **values}


def folder(path: Path, results: list[dict[str, Any]], **record: Any) -> None:
    path.mkdir()
    path.joinpath("results.jsonl").write_text("".join(f"{json.dumps(result)}\n" for result in results))
    path.joinpath("run.json").write_text(json.dumps({"format_version": 2, **record}))


@pytest.mark.usefixtures("runs")
def test_tables_show_metrics_errors_and_flips(exit_code: Command, capsys: Output) -> None:
    assert exit_code("compare", "worse", "better", "--show", "2") == 0
    output = capsys.readouterr()
    assert output.err == ""
    text = " ".join(output.out.split())
    assert "A [b]worse: 12 questions, worse B [b]better: 12 questions, better" in text
    assert "B compared with A (12 common questions, 12 templates)" in text
    assert "steps_score │ 12 │ 0.500 │ 1.000 │ +0.500" in text
    assert "│ 6/6/0 │ better │" in text
    assert "total_tokens │ 12 │ 1,006 │ 1,006 │ 0 │ – │ 1.000 │ 1.000 │ – │ 0/12/0 │ the same" in text
    assert "Failed samples, of which scores count as 0: 0 in A, 0 in B." in text
    assert "Questions that flipped in steps_score (2 of 6)" in text
    assert "What of [b]0? │ │ │" in text
    assert "│ now right │ 0.00 │ 1.00" in text
    assert "B is better in steps_score: 0.500 → 1.000 (+0.500, 95 % interval" in text
    assert max(map(len, output.out.splitlines())) <= 150


@pytest.mark.usefixtures("runs")
def test_no_evidence_is_told_with_the_questions_that_it_takes(exit_code: Command, capsys: Output) -> None:
    folder(Path("like"), [result(index, score) for index, score in enumerate([1.0, *WORSE[1:-1], 0.9])])
    assert exit_code("compare", "worse", "like") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Cannot tell whether B is better in steps_score: 0.500 → 0.575" in text
    assert "only 2 templates differ, and with fewer than 6 no p-value is below 0.05" in text
    assert "; it would take at least 20 questions to decide." in text
    assert re.search(r"│ cannot tell │ ≥ 20 ", text)
    noisy = [0.1, 0.2, 0.1, 0.3, 0.1, 0.2, 0.7, 0.9, 0.8, 0.9, 1.0, 0.9]
    folder(Path("noisy"), [result(index, score) for index, score in enumerate(noisy)])
    assert exit_code("compare", "worse", "noisy") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "No evidence of a difference in steps_score: 0.500 → 0.517" in text
    assert "│ no evidence │" in text


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(("names", "code"), [(("worse", "better"), 0), (("better", "worse"), 1)])
def test_regression_is_a_finding_on_demand(
    exit_code: Command, capsys: Output, names: tuple[str, str], code: int
) -> None:
    assert exit_code("compare", *names) == 0
    capsys.readouterr()
    assert exit_code("compare", *names, "--fail-on-regression") == code
    assert ("Gate failed: B: steps_score 1.000 → 0.500, drop 0.500 > 0.05" in capsys.readouterr().err) is bool(code)


@pytest.mark.usefixtures("runs")
def test_regression_in_a_metric_that_a_run_lacks_is_nothing_to_compare(exit_code: Command, capsys: Output) -> None:
    unscored = [{**result(index, 0.0), "answer_f1": 0.0} for index in range(12)]
    for each in unscored:
        del each["steps_score"]
    folder(Path("unscored"), unscored)
    assert exit_code("compare", "better", "unscored") == 0
    options = ["--fail-on-regression", "--html", "page.html", "--fail-under", "answer_f1=0"]
    assert exit_code("compare", "better", "unscored", *options) == 3
    output = capsys.readouterr()
    assert "Gate not checked: B: steps_score cannot be compared: B has not measured it" in output.err
    assert "Gate passed: B: answer_f1 0.000 ≥ 0." in output.out
    assert Path("page.html").is_file()


@pytest.mark.usefixtures("runs")
def test_where_too_few_templates_differ_the_effect_decides_and_that_is_said(exit_code: Command, capsys: Output) -> None:
    folder(Path("few"), [result(index, 0.0) for index in range(5)])
    folder(Path("five"), [result(index, float(index > 4)) for index in range(12)])
    for name in ("few", "five"):
        assert exit_code("compare", "better", name) == 0
        capsys.readouterr()
        assert exit_code("compare", "better", name, "--fail-on-regression") == 1
        errors = capsys.readouterr().err
        assert "Gate failed: B: steps_score 1.000 → " in errors
        assert (
            "(the effect decided: only 5 templates differ, and with fewer than 6 no p-value is below 0.05)." in errors
        )


@pytest.mark.usefixtures("runs")
def test_drop_that_is_allowed_is_the_callers(exit_code: Command, capsys: Output) -> None:
    folder(Path("one"), [result(index, float(index > 0)) for index in range(12)])
    command = ["compare", "better", "one", "--fail-on-regression"]
    assert exit_code(*command) == 1
    assert exit_code(*command, "--max-drop", "0.08") == 1
    capsys.readouterr()
    assert exit_code(*command, "--max-drop", "0.09") == 0
    output = capsys.readouterr()
    assert "Gate passed: B: steps_score 1.000 → 0.917, drop 0.083 ≤ 0.09 (the effect decided" in output.out
    assert "Gate" not in output.err


@pytest.mark.usefixtures("runs")
def test_gates_of_runs_that_pass_are_told_too(exit_code: Command, capsys: Output) -> None:
    assert exit_code("compare", "worse", "worse", "better", "--fail-on-regression", "--max-drop", "0") == 0
    output = capsys.readouterr().out
    assert "Gate passed: B: steps_score is the same for each question.\n" in output
    assert "Gate passed: C: steps_score 0.500 → 1.000, no drop" in output


@pytest.mark.usefixtures("runs")
def test_page_shows_the_gates(exit_code: Command) -> None:
    assert exit_code("compare", "better", "worse", "--html", "page.html", "--fail-on-regression") == 1
    page = Path("page.html").read_text(encoding="utf-8")
    assert "<h2>Gates</h2>" in page
    assert "Failed: <bdi>B: steps_score 1.000 → 0.500, drop 0.500 &gt; 0.05 (the effect decided" in page
    assert exit_code("compare", "better", "worse", "--html", "page.html") == 0
    assert "<h2>Gates</h2>" not in Path("page.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("runs")
def test_spending_more_is_a_regression_where_it_is_named(exit_code: Command, capsys: Output) -> None:
    folder(Path("dear"), [result(index, 1.0, total_tokens=5000) for index in range(12)])
    assert exit_code("compare", "better", "dear", "--fail-on-regression") == 0
    assert exit_code("compare", "better", "dear", "--metric", "total_tokens", "--fail-on-regression") == 1
    assert "Gate failed: B: total_tokens 1,006 → 5,000, rise 397.3 % > 5 %" in capsys.readouterr().err


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("width", [80, 100, 119])
def test_narrow_terminals_leave_columns_out_and_keep_numbers_whole(
    exit_code: Command, capsys: Output, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    assert exit_code("compare", "worse", "better", "--show", "0") == 0
    output = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert not any(heading in output for heading in ("d_z", "Needed", "p (Holm)", " n "))
    assert "steps_score" in output.split("B compared with A")[1].split("Failed samples")[0]
    assert max(len(line) for line in output.splitlines() if "│" in line) <= width
    (row,) = (line for line in output.splitlines() if "6/6/0" in line)
    assert re.search(r"│0\.500│1\.000│\+0\.500│\+0\.\d{3} to \+0\.\d{3}│ *0\.031│ *6/6/0│better", row)


@pytest.mark.usefixtures("runs")
def test_gates_hold_for_every_run_but_the_baseline(exit_code: Command, capsys: Output) -> None:
    assert exit_code("compare", "worse", "better", "--fail-under", "steps_score=0.9") == 0
    assert exit_code("compare", "better", "better", "worse", "--fail-under", "steps_score=0.9") == 1
    output = capsys.readouterr()
    assert output.err == "Gate failed: C: steps_score 0.500 < 0.9.\n"
    assert "Gate passed: B: steps_score 1.000 ≥ 0.9.\n" in output.out


@pytest.mark.usefixtures("runs")
def test_metrics_labels_and_files_are_the_callers(exit_code: Command, capsys: Output) -> None:
    options = ["--metric", "total_tokens", "--label", "old", "--label", "new", "--csv", "metrics.csv"]
    assert exit_code("compare", "worse", "better", *options) == 0
    output = capsys.readouterr().out
    assert "A  old: 12 questions" in output
    assert "steps_score" not in output
    assert "Written to metrics.csv." in output
    assert len(Path("metrics.csv").read_text().splitlines()) == 2


@pytest.mark.usefixtures("runs")
def test_page_is_written(exit_code: Command, capsys: Output) -> None:
    assert exit_code("compare", "worse", "better", "--html", "page.html") == 0
    assert "Written to page.html." in capsys.readouterr().out
    assert "steps_score" in Path("page.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("runs")
def test_warnings_go_to_standard_error(exit_code: Command, capsys: Output) -> None:
    folder(Path("few"), [result(index, 1.0) for index in range(7)])
    assert exit_code("compare", "worse", "few") == 0
    assert capsys.readouterr().err.splitlines() == [
        "Warning: A and B have 7 questions in common; 5 of A and 0 of B are left out.",
        "Warning: There are 7 templates; with fewer than 10 intervals and p-values say little.",
    ]


@pytest.mark.usefixtures("runs")
def test_runs_without_a_common_question_are_nothing_to_compare(exit_code: Command, capsys: Output) -> None:
    folder(Path("other"), [result(99, 1.0)])
    assert exit_code("compare", "worse", "other") == 3
    output = capsys.readouterr()
    assert "runs A and B have no question in common" in output.err
    assert output.out == ""


@pytest.mark.full
@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["worse"], "only one run is given to compare. Write: compare RUN_A RUN_B."),
        (["worse", "absent"], "absent: the folder does not exist"),
        (["worse", "better", "--metric", "f1"], "no result has the metric f1"),
        (["worse", "better", "--label", "one"], "1 labels for 2 runs"),
        (["worse", "better", "--fail-under", "0.9"], "'0.9' is not a value of --fail-under"),
        (["worse", "better", "--fail-on-regression", "--max-drop", "5"], "'5' is not a value of --max-drop. Write"),
        (["worse", "better", "--fail-on-regression", "--max-drop", "-0.1"], "'-0.1' is not a value of --max-drop"),
        (["worse", "better", "--max-drop", "0.1", "--max-drop", "0.2"], "--max-drop bounds the main metric twice"),
        (["worse", "better", "--html", "worse"], "worse: this is a folder, not a file."),
    ],
)
def test_wrong_usage_is_told(exit_code: Command, capsys: Output, arguments: list[str], complaint: str) -> None:
    assert exit_code("compare", *arguments) == 2
    output = capsys.readouterr()
    assert complaint in output.err
    assert output.out == ""


@pytest.mark.parametrize(
    "command",
    [
        ["run", "qa.yaml", "-a", "agent.py:sometimes", "-o", "run", "-q", "--no-report"],
        ["score", "qa.yaml", "responses.jsonl", "-o", "run", "--no-report"],
    ],
)
def test_gates_of_a_run(files: Path, exit_code: Command, capsys: Output, command: list[str]) -> None:
    assert exit_code(*command, "--overwrite", "--fail-under", "steps_score=0.0") == 0
    capsys.readouterr()
    gates = ["--fail-under", "steps_score=0", "--fail-under", "retrieval_text_f1=0.8"]
    assert exit_code(*command, "--overwrite", *gates) == 1
    output, errors = capsys.readouterr()
    assert "Gate passed: steps_score " in output
    assert "≥ 0 (2 questions without it)." in output
    assert "Gate failed: retrieval_text_f1 was not measured (≥ 0.8 is required)." in errors


def test_wrong_gate_is_told_before_anything_is_asked(files: Path, exit_code: Command, capsys: Output) -> None:
    command = ["run", "qa.yaml", "-a", "agent.py:sometimes", "-o", "run"]
    assert exit_code(*command, "--fail-under", "elapsed_sec=3") == 2
    assert "less is better for elapsed_sec" in capsys.readouterr().err
    assert not Path("run").exists()


def test_gates_of_a_folder_that_is_scored_again(files: Path, exit_code: Command) -> None:
    assert exit_code("score", "qa.yaml", "responses.jsonl", "-o", "run", "--no-report") == 0
    assert exit_code("score", "run", "--no-report", "--fail-under", "steps_score=1") == 0
    Path("qa.yaml").write_text(Path("qa.yaml").read_text().replace("urn:oslo", "urn:bergen"))
    assert exit_code("score", "run", "--no-report", "--fail-under", "steps_score=1") == 1


@pytest.mark.parametrize(("is_declared", "code"), [(False, 0), (True, 1)])
def test_regression_is_the_way_that_the_metric_declares(
    is_declared: bool, code: int, tmp_path: Path, exit_code: Command, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_declared:
        spec = MetricSpec(key="saved_sec", unit="seconds", lower_is_better=True, range=(0.0, None))
        monkeypatch.setitem(metrics.metrics_of_users, "saved_sec", metrics.RegisteredMetric(spec, lambda *_: None))
    monkeypatch.chdir(tmp_path)
    for name, seconds in (("less", 10.0), ("more", 20.0)):
        folder(Path(name), [result(index, 1.0, saved_sec=seconds + index) for index in range(8)])
    assert exit_code("compare", "less", "more", "--metric", "saved_sec", "--fail-on-regression") == code
    output = capsys.readouterr()
    assert ("saved_sec (less is better) │" in output.out) is is_declared
    assert f"B is {'worse' if is_declared else 'better'} in saved_sec: 13.50 → 23.50 (+10.00" in output.out
    assert exit_code("compare", "less", "more", "--fail-under", "saved_sec=5") == (2 if is_declared else 0)


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(
    ("gate", "complaint"),
    [
        ("step_score=0.9", "unknown metric step_score. Did you mean steps_score?"),
        ("t0x/steps_score=0.9", "the runs have no template t0x. "),
        (
            "steps_score.avg=0.9",
            "unknown statistic avg of steps_score. There are mean, median, p95, min, max, sum.",
        ),
    ],
)
def test_wrong_name_in_a_gate_is_told_before_the_tables(
    exit_code: Command, capsys: Output, gate: str, complaint: str
) -> None:
    assert exit_code("compare", "worse", "better", "--fail-under", gate) == 2
    output = capsys.readouterr()
    assert complaint in output.err
    assert output.out == ""


@pytest.mark.usefixtures("runs")
def test_gate_of_a_template_that_only_the_baseline_has_cannot_be_checked(exit_code: Command, capsys: Output) -> None:
    folder(Path("other"), [{**result(index, 1.0), "template_id": "notes"} for index in range(3)])
    assert exit_code("compare", "other", "better", "--fail-under", "notes/steps_score=0.9") == 3
    assert "B: notes/steps_score: the run has no question of the" in capsys.readouterr().err


@pytest.mark.usefixtures("runs")
def test_a_broken_plugin_of_an_installed_package_is_one_error(
    exit_code: Command, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(".")
    monkeypatch.delitem(plugins._installed, plugins.GROUP, raising=False)  # as in a new process
    Path("broken_of_acme.py").write_text("import absent_of_the_test")
    info = Path("acme-1.0.dist-info")
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[graphrag_eval_lc]\nacme = broken_of_acme\n")
    with registered_only_here():
        assert exit_code("compare", "worse", "better", "--fail-under", "steps_score=0.1") == 2
        assert "Error: the plugin acme (broken_of_acme) of the package acme cannot be" in capsys.readouterr().err
        assert exit_code("doctor", "--plugins") == 2
