"""The command `compare` on narrow terminals and with plugin metrics. Its other sessions are in sessions/."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.scored_runs import run_folder

from graphrag_eval_lc.registry import MetricSpec, metrics, plugins, registered_only_here

Command = Callable[..., int]
Output = pytest.CaptureFixture[str]
WORSE, BETTER = [0.0] * 6 + [1.0] * 6, [1.0] * 12


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Create run folders; `worse` has lower scores than `better`."""
    monkeypatch.chdir(tmp_path)
    for name, scores in (("worse", WORSE), ("better", BETTER)):
        run_folder(Path(name), [result(index, score) for index, score in enumerate(scores)], label=f"[b]{name}")


def result(index: int, score: float, **values: Any) -> dict[str, Any]:
    base = {"template_id": f"t{index}", "question_id": f"q{index}", "question_text": f"What of [b]{index}?"}
    return {**base, "status": "success", "steps_score": score, "total_tokens": 1000 + index, **values}


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("width", [80, 100, 119])
def test_narrow_terminals_omit_columns_and_do_not_truncate_numbers(
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


@pytest.mark.parametrize(("is_declared", "code"), [(False, 0), (True, 1)])
def test_regression_follows_the_declared_direction(
    is_declared: bool, code: int, tmp_path: Path, exit_code: Command, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_declared:
        spec = MetricSpec(key="saved_sec", unit="seconds", lower_is_better=True, range=(0.0, None))
        monkeypatch.setitem(metrics.metrics_of_users, "saved_sec", metrics.RegisteredMetric(spec, lambda *_: None))
    monkeypatch.chdir(tmp_path)
    for name, seconds in (("less", 10.0), ("more", 20.0)):
        run_folder(Path(name), [result(index, 1.0, saved_sec=seconds + index) for index in range(8)])
    assert exit_code("compare", "less", "more", "--metric", "saved_sec", "--fail-on-regression") == code
    output = capsys.readouterr()
    assert ("saved_sec (less is better) │" in output.out) is is_declared
    assert f"B is {'worse' if is_declared else 'better'} in saved_sec: 13.50 → 23.50 (+10.00" in output.out
    assert exit_code("compare", "less", "more", "--fail-under", "saved_sec=5") == (2 if is_declared else 0)


@pytest.mark.usefixtures("runs")
def test_broken_plugin_is_one_error(exit_code: Command, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
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
