from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.config import load_config
from graphrag_eval_lc.report.reported_run import ReportedRun


def run_of(record: Any, folder: Path | None = None, config: Any = None) -> ReportedRun:
    return ReportedRun(folder=folder, record=record, config=load_config(config), results=[])


def facts(record: Any, config: Any = None) -> dict[str, str]:
    return {fact["name"]: fact["value"] for fact in run_of(record, config=config).what_ran({})}


def test_only_known_facts_are_listed() -> None:
    record = {
        "label": "monday",
        "agent": "agent.py:graph",
        "dataset": {"path": "qa.yaml", "sha256": "ab", "templates": 2, "questions": 1234},
        "limits": {"timeout": 600, "max_cost": None},
        "times": {"started": "2026-01-05T10:00:00", "elapsed_sec": 1234.56, "sessions": [{}, {}]},
        "versions": {"python": "3.11"},
        "judges": {"generation": "gpt", "prompts": {"a": "digest"}},
        "matchers": [{"name": "count", "media_type": "text/x", "function": "m.py:f"}, {"name": "b", "function": "m:g"}],
        "evaluators": [{"name": "words", "function": "m:words", "metrics": ["words"]}],
        "plugins": [
            {"name": "m", "distribution": "m-package", "version": "1.2"},
            {"name": "m.py", "sha256": "ab" * 32},
        ],
        "capture": {"step_names": {}, "retrieval_documents": ["search_docs"], "keep_artifacts": True},
    }
    assert facts(record, {"steps": {"scoring": "all_groups"}}) == {
        "Label": "monday",
        "Agent": "agent.py:graph",
        "Dataset": "qa.yaml (1,234 questions, 2 templates)",
        "Dataset's digest": "ab",
        "Judges": "generation: gpt",
        "Matchers": "count with text/x: m.py:f, b: m:g",
        "Evaluators": "words: m:words",
        "Plugins": "m (m-package 1.2), m.py (sha256 abababababab)",
        "Capture": 'retrieval_documents: ["search_docs"]',
        "Config": "steps.scoring: all_groups",
        "Limits": "timeout: 600",
        "Started": "2026-01-05T10:00:00",
        "Duration": "1,234.6 s in 2 sessions",
        "Versions": "python 3.11",
    }
    assert facts({}) == {}
    assert facts({"matchers": [], "evaluators": 3, "capture": None}) == {}


def test_recorded_responses_show_the_times_of_scoring() -> None:
    times = {"started": "2026-01-05T10:00:00", "finished": "2026-01-05T10:00:01", "elapsed_sec": 1}
    assert list(facts({"times": times})) == ["Scoring started", "Scoring finished", "Duration of the scoring"]
    source = {"agent": "langgraph.json:b", "agent_source": "./a.py:b"}
    assert list(facts({**source, "times": times}))[:2] == ["Agent", "Agent's source"]
    assert list(facts({"agent": "a.py:b", "times": times})) == ["Agent", "Started", "Finished", "Duration"]


@pytest.mark.parametrize(
    ("href", "is_link"),
    [
        ("https://ci.example/7", True),
        ("javascript:alert(1)", False),
        ("data:text/html,x", False),
        ("http://[", False),
        (7, False),
    ],
)
def test_only_web_urls_are_links(href: object, is_link: bool) -> None:
    (label, *_) = run_of({"label": "monday", "href": href}).what_ran({})
    assert label.get("href") == (href if is_link else None)


def test_link_without_a_label_shows_its_url() -> None:
    assert run_of({"href": "https://x"}).what_ran({}) == [{"name": "Link", "value": "https://x", "href": "https://x"}]


def test_title_is_the_label_or_the_folder(tmp_path: Path) -> None:
    assert run_of({"label": "monday\x00"}).title == "monday␀"
    assert run_of({}, tmp_path / "runs").title == "runs"
    assert run_of({}).title == "Evaluation run"
