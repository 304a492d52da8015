"""A run's mean is the same everywhere: terminal, notebook, report, gate and comparison."""

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from graphrag_eval_lc import BenchmarkRun, compare_runs, report_html, run_benchmark
from graphrag_eval_lc.compare import gate_results
from graphrag_eval_lc.demo import DATASET_PATH
from graphrag_eval_lc.demo.agent import create_demo_agent
from graphrag_eval_lc.report.summary import summary_tables


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> BenchmarkRun:
    folder: Path = tmp_path_factory.mktemp("runs") / "demo"
    return run_benchmark(create_demo_agent(), DATASET_PATH, output_dir=folder, progress="off")


def terminal(run: BenchmarkRun) -> str:
    printed = io.StringIO()
    Console(file=printed, width=160).print(summary_tables(run.view()))
    return printed.getvalue()


def test_mean_over_all_questions_comes_first_everywhere(run: BenchmarkRun) -> None:
    (gate,) = gate_results(run, {"steps_score": 0.5})
    assert gate.value is not None
    first, answered = f"{gate.value:.3f}", f"{run.aggregates['micro']['steps_score']['mean']:.3f}"
    assert first != answered  # one of the demo's questions fails
    row = next(line for line in terminal(run).splitlines() if "All questions" in line)
    assert re.findall(r"\d\.\d{3}", row)[:2] == [first, answered]
    assert f"steps_score {first} (answered: {answered})" in repr(run)
    assert f"{first} (answered: {answered})" in run._repr_html_()
    assert f"{first} (answered: {answered})" in run.results._repr_html_()
    html = report_html(run)
    tile = html[html.index('class="tiles"') :]
    assert re.findall(r"\d\.\d{3}", tile)[0] == first
    assert f"answered: {answered}" in tile
    metric = compare_runs(run, run).pairs[0].metric("steps_score")
    assert metric is not None
    assert f"{metric.mean_a:.3f}" == first
