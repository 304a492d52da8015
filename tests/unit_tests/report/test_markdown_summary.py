import re
from pathlib import Path
from typing import Any

import pytest
from support.hostile_runs import hostile_run
from support.markdown_rendering import rendered

from graphrag_eval_lc import BenchmarkRun, compare_runs, compute_aggregates, gate_results, load_run, write_summary
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.report.markdown_summary import MOST_BYTES, summary_text

BASE: dict[str, Any] = {"question_text": "How many?", "status": "success"}
OURS = {"h2", "h3", "h4", "p", "strong", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "code", "br", "em"}


def result_of(question_id: str, score: float | None, template_id: str = "t", **more: Any) -> dict[str, Any]:
    """Return a result with a score; None means that it failed."""
    outcome = {"steps_score": score} if score is not None else {"steps_score": 0.0, "error": "ValueError: away"}
    return {**BASE, "template_id": template_id, "question_id": question_id, **outcome, **more}


RESULTS = [
    result_of("q1", 1.0, total_tokens=1500, elapsed_sec=0.5),
    result_of("q2", 0.5, "who", total_tokens=500),
    result_of("q3", None, "who"),
    result_of("q4", 0.0, "who"),
]


def test_verdict_comes_first_then_the_mean_with_failed_questions_as_0() -> None:
    gates = gate_results(RESULTS, ["steps_score=0.3", "who/steps_score=0.5"])
    lines = summary_text(RESULTS, gates).splitlines()
    assert lines[0] == "## ❌ Failed, 1 of 2 gates not passed: Evaluation run"
    assert lines[2].startswith("**1 of 4 right, 1 partly right, 1 wrong, 1 error · steps_score 0.375 (")
    assert lines[4].startswith("95 % interval ")
    assert lines[4].endswith(" · 4 questions in 2 templates · 1 error, counted as 0")
    assert lines[8:10] == [
        "- ✅ Gate passed: steps_score 0.375 ≥ 0.3 (1 failed sample counts as 0)",
        "- ❌ Gate failed: who/steps_score 0.167 &#60; 0.5 (1 failed sample counts as 0)",
    ]


@pytest.mark.parametrize(
    ("gates", "verdict"),
    [
        ([], "ℹ️ Scored, no gates"),
        (["steps_score=0.1"], "✅ Passed, the gate"),
        (["steps_score=0.1", "t/steps_score=0.1"], "✅ Passed, all 2 gates"),
        (["steps_score=0.1", "gone/steps_score=0.1"], "⚠️ Not checked, 1 of 2 gates"),
        (["answer_f1=0.1"], "❌ Failed, 1 of 1 gate not passed"),
    ],
)
def test_verdict_depends_on_the_gates(gates: list[str], verdict: str) -> None:
    assert summary_text(RESULTS, gate_results(RESULTS, gates)).startswith(f"## {verdict}: ")


def test_secret_in_a_gate_is_masked() -> None:
    key = "sk-abcdef1234567890abcdef"
    text = summary_text(RESULTS, gate_results(RESULTS, [f"{key}/steps_score=0.1"]))
    assert "Gate not checked: sk-" in text
    assert key not in text


def test_stopped_or_unanswered_run_has_failed() -> None:
    nothing = summary_text([result_of("q", None)], [])
    assert nothing.startswith("## ❌ Failed, not one question was answered: ")
    stopped = BenchmarkRun(
        compute_aggregates(RESULTS),
        results=list(RESULTS),  # type: ignore[arg-type]
        stopped={"reason": "max_cost", "message": "it cost $2", "left_out": 3},
    )
    assert summary_text(stopped).startswith("## ❌ Stopped before its end (it cost &#36;2): ")


def test_partial_run_is_reported() -> None:
    run = BenchmarkRun(
        compute_aggregates(RESULTS),
        results=list(RESULTS),  # type: ignore[arg-type]
        notes=["4 of 9 questions were scored"],
        warnings=["a line of the journal was set aside"],
    )
    lines = summary_text(run).splitlines()
    assert lines[8:10] == ["- ⚠️ Warning: a line of the journal was set aside", "- Note: 4 of 9 questions were scored"]


def test_summary_lists_templates_and_the_worst_questions_with_reasons() -> None:
    text = summary_text(RESULTS, [])
    assert "| <code>who</code> | 3 | 1 | 0.167 | 500 | – |" in text
    assert "| <code>t</code> | 1 |  | 1.000 | 1,500 | 0.50 s |" in text
    groups = text[text.index("### Why questions failed") : text.index("### Worst")]
    assert "| 1 | ValueError | <code>q3</code><br>ValueError: away |" in groups
    worst = text[text.index("### Worst questions (3 of 3 questions not right)") :]
    ids = re.findall(r"<code>(q\d)</code><br>How many\?", worst)
    assert ids == ["q3", "q4", "q2"]
    assert "| ValueError: away | error |" in worst


def test_number_of_worst_questions_can_be_set() -> None:
    assert "Worst questions (1 of 3 questions" in summary_text(RESULTS, [], most_questions=1)
    assert "Worst" not in summary_text(RESULTS, [], most_questions=0)


def test_repeats_are_distinguished() -> None:
    results = [result_of("q", 0.5, repeat=1), result_of("q", 0.0, repeat=2)]
    text = summary_text(results, [])
    assert "steps_score 0.250**" in text
    assert "1 question in 1 template" in text
    assert "(2 of 2 samples not right)" in text
    assert "<code>q</code> (repeat 2)<br>" in text


def test_run_without_scores_or_questions_says_so() -> None:
    unscored = [{**BASE, "template_id": "t", "question_id": "q"}]
    assert "No score was measured (1 question in 1 template, 0 errors)." in summary_text(unscored, [])
    assert "No score was measured (0 questions in 0 templates, 0 errors)." in summary_text([], [])


def test_only_the_worst_of_many_templates_are_shown() -> None:
    results = [result_of(f"q{number}", number / 100, f"t{number}") for number in range(80)]
    text = summary_text(list(reversed(results)), [])
    assert "The 30 worst of 80 templates." in text
    shown = re.findall(r"<code>(t\d+)</code>", text)
    assert shown == [f"t{number}" for number in range(30)]


@pytest.mark.parametrize("most", [3_000, 20_000, MOST_BYTES])
def test_summary_is_smaller_than_its_limit(most: int) -> None:
    results = [result_of(f"{'@' * 300}{number}", 0.0, f"{'é|' * 200}{number}") for number in range(300)]
    text = summary_text(results, [], most_questions=200, most_bytes=most)
    assert len(text.encode()) <= most
    assert ("_Shortened: " in text) is (most < MOST_BYTES)


def pair(a: list[float], b: list[float]) -> Any:
    runs = [[result_of(f"q{number}", score, f"t{number}") for number, score in enumerate(scores)] for scores in (a, b)]
    return compare_runs(*runs, labels=["main", "branch|1"])


def test_comparison_has_metrics_with_verdicts_and_lost_and_fixed_questions() -> None:
    comparison = pair([1, 1, 0, 0.5, 0.2], [0, 1, 1, 0.2, 0.5])
    text = summary_text(comparison, comparison.gate_results(["--max-lost 0"]))
    assert text.startswith("## ❌ Failed, 1 of 1 gate not passed\n")
    assert "- B: <code>branch&#124;1</code>, 5 questions" in text
    assert "- ❌ Gate failed: B: steps_score: 1 of " in text
    assert "**B is as good in the mean: steps_score 0.540 → 0.540; 1 broken, 1 fixed, 2 better or worse.**" in text
    row = next(line for line in text.splitlines() if line.startswith("| steps_score |"))
    assert row.split(" | ")[1:4] == ["0.540", "0.540", "0.000"]
    assert text.index("With 5 templates no test can distinguish a difference from chance") > text.index(
        "How sure is this?"
    )
    lost, fixed = text.index("#### Broken: right in A, not right in B (1 of 1)"), text.index("#### Fixed: ")
    assert "<code>q0</code>" in text[lost:fixed]
    assert "<code>q2</code>" in text[fixed:]
    assert "Not right in either run: 1 question is worse, 1 question is better in B." in text


def test_comparison_without_gates_begins_with_the_verdict() -> None:
    assert summary_text(pair([1, 0], [1, 0])).startswith("## ℹ️ B is the same: steps_score 0.500 → 0.500, no gates\n")
    worse = pair([1.0] * 20, [0.0] * 20)
    assert summary_text(worse).startswith("## ℹ️ B is worse: steps_score 1.000 → 0.000; 20 broken, 0 fixed, no gates\n")
    assert "(3 of 20)" in summary_text(worse, most_questions=3)


@pytest.mark.full
def test_hostile_texts_are_escaped(tmp_path: Path) -> None:
    hostile_run(tmp_path / "a")
    run = hostile_run(tmp_path / "b", is_better=True)
    for source in (tmp_path / "a", run, compare_runs(tmp_path / "a", tmp_path / "b")):
        text = summary_text(source)
        assert "injected" in text
        assert set(rendered(text)[0]) <= OURS | {"details", "summary"}
        assert "@" not in text
        assert len(text.encode()) < MOST_BYTES


@pytest.mark.full
def test_file_is_written_to_the_run_folder_or_a_given_path(tmp_path: Path) -> None:
    run = hostile_run(tmp_path / "run")
    assert write_summary(tmp_path / "run") == tmp_path / "run" / "summary.md"
    written = write_summary(load_run(tmp_path / "run"), tmp_path / "other.md")
    assert written.read_text(encoding="utf-8") == (tmp_path / "run" / "summary.md").read_text(encoding="utf-8")
    assert write_summary(run, tmp_path / "other.md").stat().st_size > 0
    with pytest.raises(OptionError, match=r"a comparison has no folder to write the summary to\. Give a path"):
        write_summary(compare_runs(tmp_path / "run", tmp_path / "run"))
