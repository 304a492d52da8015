"""Runs with plugins: recorded, re-scored identically, rejected without them, with a warning if they changed."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from support.scored_runs import record_in

from graphrag_eval_lc import compare_runs, run_benchmark, score_responses, score_run
from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.registry import registered_only_here
from graphrag_eval_lc.registry.plugins import load_plugins, registered_now

PLUGIN_PACKAGE = Path(__file__).parents[2] / "plugin_package"
COUNTS = {"q1": "7", "q2": "8"}
DATASET: list[Any] = [
    {
        "template_id": "t",
        "questions": [
            {
                "id": key,
                "question_text": "How many?",
                "form_sec": 1.0,
                "reference_steps": [[{"name": "count_rows", "output": count}]],
            }
            for key, count in COUNTS.items()
        ],
    }
]
METRIC = """
from graphrag_eval_lc import register_metric


@register_metric(key="words", kind="count", unit="words")
def words(question, response):
    return len(response["actual_answer"].split())
"""


def responses(seconds: float) -> list[Any]:
    step = {"name": "count_rows", "args": {}, "id": "c", "status": "success", "output": "7 rows"}
    return [
        {"question_id": q, "actual_answer": "7 please", "elapsed_sec": seconds, "actual_steps": [step]} for q in COUNTS
    ]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(PLUGIN_PACKAGE), *sys.path])
    Path("qa.json").write_text(json.dumps(DATASET))


def scored(folder: str, *plugins: str, seconds: float = 3.0, **options: Any) -> Path:
    """Score a folder's responses with plugins, and then unregister them, as in a separate process."""
    with registered_only_here():
        load_plugins(plugins, via="--plugin")
        score_responses("qa.json", responses(seconds), output_dir=folder, **options)
    assert not registered_now()
    return Path(folder)


def files_in(folder: Path) -> dict[str, bytes]:
    """Return the files, without the creation time of pages."""
    made = rb"(Made by graphrag-eval-lc [\d.]+), [\dT:+-]+"
    return {path.name: re.sub(made, rb"\1", path.read_bytes()) for path in folder.iterdir()}


def test_run_records_the_plugins_it_used_and_their_contents() -> None:
    record = record_in(scored("run", "acme_checks"))
    (plugin,) = record["plugins"]
    assert (plugin["name"], plugin["via"], len(plugin["sha256"])) == ("acme_checks", "--plugin", 64)
    assert plugin["gives"] == ["metric extra_wait", "evaluator manners", "step kind count_rows"]
    metric, evaluator = record["evaluators"]
    assert metric == {
        "name": "extra_wait",
        "function": "acme_checks.metrics:extra_wait",
        "plugin": "acme_checks",
        "declares": {
            "title": "seconds longer than the old form",
            "kind": "score",
            "unit": "seconds",
            "lower_is_better": True,
            "range": [0, 60],
        },
        "metrics": ["extra_wait"],
    }
    assert (evaluator["plugin"], evaluator["metrics"]) == ("acme_checks", ["is_polite", "words"])


def test_missing_plugins_are_rejected_with_the_command_to_fix_it() -> None:
    folder = scored("run", "acme_checks")
    before = files_in(folder)
    with pytest.raises(RunFolderError) as caught:
        score_run(folder)
    assert str(caught.value) == (
        "run: what scored the run is missing now: the matcher for count_rows (acme_checks.step_kinds:match_counts), "
        "the metric extra_wait (acme_checks.metrics:extra_wait) and the evaluator manners "
        "(acme_checks.evaluators:manners); without them its scores would change or go. "
        "Add --plugin acme_checks (in Python, import or pass them); or --drop-missing (drop_missing=True) to score "
        "without."
    )
    assert files_in(folder) == before
    assert "acme_checks" not in sys.modules


def test_missing_plugins_are_dropped_on_request_and_reported() -> None:
    folder = scored("run", "acme_checks")
    run = score_run(folder, drop_missing=True)
    assert [warning.partition(" (")[0] for warning in run.warnings] == ["scored without the matcher for count_rows"]
    assert "plugins" not in record_in(folder)
    assert "extra_wait" not in run.results[0]


def test_opening_a_folder_does_not_import_plugins_of_its_config() -> None:
    Path("words_of_the_test.py").write_text(METRIC)
    folder = scored("run", config={"plugins": ["words_of_the_test"]})
    assert record_in(folder)["config"]["plugins"] == ["words_of_the_test"]
    assert record_in(folder)["plugins"][0]["via"] == "config"
    with pytest.raises(RunFolderError, match="Add --plugin words_of_the_test"):
        score_run(folder)
    compare_runs(folder, folder)
    score_run(folder, drop_missing=True)
    assert "words_of_the_test" not in sys.modules
    with registered_only_here():
        assert score_run(folder, config={"plugins": ["words_of_the_test"]}).results[0]["words"] == 2


def test_run_resumes_only_with_its_plugins() -> None:
    options: Any = {"output_dir": "run", "progress": "off"}
    Path("words.py").write_text(METRIC)
    with registered_only_here():
        load_plugins(["words.py"], via="--plugin")
        run_benchmark(lambda question: "one two", DATASET, **options, limit=1)
    with pytest.raises(RunFolderError, match=r"the metric words \(words\.py:words\); .* Add --plugin words\.py"):
        run_benchmark(lambda question: "one two", DATASET, **options, limit=1)
    with registered_only_here():
        Path("words.py").write_text(METRIC + "\n")
        load_plugins(["words.py"], via="--plugin")
        again = run_benchmark(lambda question: "one two", DATASET, **options, limit=1)
        assert again.results[0]["words"] == 2
        assert [each for each in again.warnings if "words.py" in each]
    assert run_benchmark(lambda question: "one two", DATASET, **options, limit=1, force=True).warnings
