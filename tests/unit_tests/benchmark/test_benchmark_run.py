"""The results of a run, in memory or from its folder."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool
from matplotlib.figure import Figure

from graphrag_eval_lc import run_benchmark
from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.errors import OptionError, RunFolderError

DATASET: list[Any] = [
    {
        "template_id": "t",
        "questions": [
            {"id": "q0", "question_text": "good", "reference_steps": [[{"name": "s", "output": "1"}]]},
            {"id": "q1", "question_text": "bad"},
        ],
    }
]


async def agent(question: str) -> str:
    if question == "bad":
        raise ValueError("no")
    return "yes"


@pytest.fixture(params=["memory", "folder"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> BenchmarkRun:
    output_dir = tmp_path / "run" if request.param == "folder" else None
    return run_benchmark(agent, DATASET, output_dir=output_dir, repeats=2, progress="off")


def test_results_and_responses_are_by_question_then_repeat(run: BenchmarkRun) -> None:
    expected = [("q0", 1), ("q0", 2), ("q1", 1), ("q1", 2)]
    assert [(result["question_id"], dict(result)["repeat"]) for result in run.results] == expected
    assert [(response["question_id"], dict(response)["repeat"]) for response in run.responses] == expected
    assert list(run.iter_results()) == run.results


def test_one_result_or_response_is_found_by_its_question(run: BenchmarkRun) -> None:
    assert dict(run.result("q0"))["repeat"] == 1
    assert dict(run.response("q1", 2))["repeat"] == 2
    assert run.response("q0")["actual_answer"] == "yes"


@pytest.mark.parametrize(("question_id", "repeat"), [("absent", 1), ("q0", 3)])
def test_missing_questions_are_reported(run: BenchmarkRun, question_id: str, repeat: int) -> None:
    with pytest.raises(RunFolderError, match=f"question {question_id}: .*no result for repeat {repeat}.*The ids are"):
        run.result(question_id, repeat)
    with pytest.raises(RunFolderError, match="no response for repeat"):
        run.response(question_id, repeat)


def test_nearest_id_is_suggested(run: BenchmarkRun) -> None:
    with pytest.raises(RunFolderError, match=r"Did you mean q1\?"):
        run.show("Q1")


def test_repr_shows_a_summary(run: BenchmarkRun) -> None:
    text = repr(run)
    assert text.startswith("<BenchmarkRun 2 answered, 2 failed, steps_score 0.000")
    assert str(run.output_dir or "0.000") in text


def test_stopped_run_shows_the_reason() -> None:
    run = run_benchmark(agent, DATASET, question_ids=["q1"], repeats=3, max_failures=0, max_concurrency=1)
    assert run.stopped == {
        "reason": "max_failures",
        "message": "1 question failed in this session, and no more than 0 may",
        "left_out": 2,
    }
    assert "stopped: max_failures" in repr(run)


def test_removed_folder_is_reported(tmp_path: Path) -> None:
    run = run_benchmark(agent, DATASET, output_dir=tmp_path / "run", progress="off")
    (tmp_path / "run").rename(tmp_path / "moved")
    with pytest.raises(RunFolderError, match=r"results\.jsonl"):
        run.results  # noqa: B018


def test_run_without_files_has_none() -> None:
    run = BenchmarkRun({"micro": {"number_of_success_samples": 0, "number_of_error_samples": 0}})
    assert (run.results, run.responses, run.output_dir) == ([], [], None)


def test_frames_contain_questions_steps_or_aggregates(run: BenchmarkRun) -> None:
    assert run.to_pandas()[["question_id", "repeat"]].values.tolist() == [["q0", 1], ["q0", 2], ["q1", 1], ["q1", 2]]
    assert run.to_pandas("steps").empty
    assert set(run.to_pandas("aggregates")["scope"]) == {"template", "micro", "macro", "totals", "repeats"}
    with pytest.raises(OptionError, match=r"unknown kind of frame 'answers'\. Give questions, steps, aggregates"):
        run.to_pandas("answers")  # type: ignore[arg-type]


def test_files_contain_the_frames(run: BenchmarkRun, tmp_path: Path) -> None:
    files = run.to_csv(tmp_path / "some" / "tables")
    assert [file.name for file in files] == ["questions.csv", "steps.csv", "aggregates.csv"]
    assert [len(file.read_text(encoding="utf-8").splitlines()) - 1 for file in files[:2]] == [4, 0]
    assert "micro,,steps_score,mean,0.0" in files[2].read_text(encoding="utf-8")


def test_folder_that_cannot_be_created_is_reported(run: BenchmarkRun, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunFolderError, match="cannot be written"):
        run.to_csv(tmp_path / "file" / "tables")


def test_notebook_shows_a_small_text_table(run: BenchmarkRun) -> None:
    run.stopped = {"message": "<script>"}
    run.notes = ["of \x1b[2J\u202e"]
    html = run._repr_html_()
    assert "of ␛[2J⟨U+202E⟩" in html
    assert all(f'<td style="text-align: left">{text}</td>' in html for text in ("2", "0.000", "&lt;script&gt;"))
    assert str(run.output_dir or "") in html


STEPS = [[{"name": "lookup", "output": "1"}]]
LOOKED_UP: list[Any] = [
    {
        "template_id": "t",
        "questions": [
            {"id": "q0", "question_text": "good", "reference_steps": STEPS},
            {"id": "q1", "question_text": "bad", "reference_steps": STEPS},
        ],
    }
]


@tool
def lookup(name: str) -> str:
    """Look a name up."""
    return "1"


async def half_right(question: str) -> str:
    return await agent(str(await lookup.ainvoke({"name": question}) and question))


@pytest.mark.parametrize("errors", ["exclude", "include"])
def test_first_mean_counts_failed_questions_as_0_unlike_the_aggregates(errors: str, tmp_path: Path) -> None:
    config = {"aggregates": {"errors": errors}}
    run = run_benchmark(half_right, LOOKED_UP, output_dir=tmp_path / "run", config=config, progress="off")
    assert "Benchmark run (means over all questions, failed ones count as 0)" in run._repr_html_()
    assert "0.500 (answered: 1.000)" in run._repr_html_()
    assert "steps_score 0.500 (answered: 1.000)" in repr(run)


def test_run_with_only_aggregates_can_be_shown() -> None:
    run = BenchmarkRun({"micro": {"number_of_success_samples": 0, "number_of_error_samples": 0}})
    assert "answered" in run._repr_html_()
    with pytest.raises(OptionError, match="no question has the metric steps_score"):
        run.plot_templates(ax=Figure().subplots())


def test_notebook_shows_only_means_of_scores() -> None:
    figures = dict.fromkeys(("steps_score", "saved_sec", "elapsed_sec", "tone_cost"), 0.5)
    result: Any = {"template_id": "t", "question_id": "q", "question_text": "?", "status": "success", **figures}
    counts = {"number_of_success_samples": 1, "number_of_error_samples": 0}
    micro = {**counts, **{metric: {"mean": value} for metric, value in figures.items()}}
    html = BenchmarkRun({"micro": micro}, results=[result])._repr_html_()
    assert [f"mean {metric}" in html for metric in figures] == [True, True, False, False]


def test_means_of_templates_count_each_question_once_and_failed_ones_as_0() -> None:
    scores = {("q0", 1): 1.0, ("q0", 2): 0.0, ("q1", 1): 1.0}
    results: list[Any] = [
        {"template_id": "t", "question_id": question, "repeat": repeat, "status": "success", "steps_score": score}
        for (question, repeat), score in scores.items()
    ]
    results[2]["error"] = "lost"
    ax = BenchmarkRun({}, results=results).plot_templates(ax=Figure().subplots())
    assert [label.get_text() for label in ax.get_yticklabels()] == ["t · 2"]
    assert list(ax.get_lines()[-1].get_xdata()) == [0.25, 0.25]  # type: ignore[arg-type]


def test_run_with_a_removed_folder_shows_known_values(tmp_path: Path) -> None:
    run = run_benchmark(agent, DATASET, output_dir=tmp_path / "run", progress="off")
    shutil.rmtree(tmp_path / "run")
    assert "answered" in repr(run)
    html = run._repr_html_()
    assert "not read</th>" in html
    assert "answered</th>" in html


def test_empty_run_is_shown_without_an_error() -> None:
    assert "This BenchmarkRun cannot be shown: KeyError" in BenchmarkRun({})._repr_html_()


def test_notebook_shows_failed_gates() -> None:
    config = {"gates": [{"metric": "steps_score", "under": 0.9}, {"metric": "elapsed_sec", "over": 1000}]}
    html = run_benchmark(half_right, LOOKED_UP, config=config, progress="off")._repr_html_()
    assert "1 of 2 passed" in html
    assert "steps_score 0.500 &lt; 0.9" in html
