"""A registered metric appears wherever a report or the terminal shows scores."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.page_data import page_data
from support.report_samples import console_text

from graphrag_eval_lc import compute_aggregates, report_html
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.registry import MetricSpec
from graphrag_eval_lc.registry.metrics import RegisteredMetric, metrics_of_users, own_metrics
from graphrag_eval_lc.report.reported_run import ReportedRun
from graphrag_eval_lc.report.run_report import report_data
from graphrag_eval_lc.report.summary import summary_tables
from graphrag_eval_lc.view import run_view

DETOUR = MetricSpec(key="detour", title="way for nothing", unit="km", lower_is_better=True, range=(0.0, 20.0))
EFFORT = MetricSpec(
    key="effort", title="minutes of people", kind="spent", unit="min", lower_is_better=True, range=(0, None)
)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for spec in (DETOUR, EFFORT):
        monkeypatch.setitem(metrics_of_users, spec.key, RegisteredMetric(spec, lambda question, response: None))


def results(*detours: float | None) -> list[dict[str, Any]]:
    """Return one result per detour; None means that it failed."""
    base = {"template_id": "t", "question_text": "?", "actual_steps": []}
    return [
        {**base, "question_id": f"q{at}", "status": "error", "error": "away"}
        if detour is None
        else {**base, "question_id": f"q{at}", "status": "success", "detour": detour, "custom_metrics": ["detour"]}
        for at, detour in enumerate(detours)
    ]


def data_of(found: list[dict[str, Any]]) -> dict[str, Any]:
    return report_data(ReportedRun(folder=None, record={}, config=EvaluationConfig(), results=found))


def test_distribution_covers_the_metrics_range() -> None:
    (line,) = data_of(results(2.0, 12.0))["view"].scores
    assert (line.metric, line.range, line.mean_answered) == ("detour", (0.0, 20.0), 7.0)
    assert line.bins == (0, 1, 0, 0, 0, 0, 1, 0, 0, 0)


def test_page_has_title_unit_and_what_a_failure_counts_as() -> None:
    html = report_html(results(2.0, 12.0, None))
    rows = re.findall(r'<th scope="row" title="([^"]*)">', html)
    assert rows == ["way for nothing; less is better"]
    assert "an error counts as 20.0 km" in html
    assert '<small class="nowrap">less is better</small>' in html
    assert '<td class="number">7.00\N{NO-BREAK SPACE}km</td>' in html
    assert re.search(
        r'<th scope="col" class="metric" data-sort="number" aria-sort="descending" '
        r'title="way for nothing; less is better">',
        html,
    )
    lists = page_data(html)["lists"]
    assert (lists["metrics"], lists["ranges"]) == (["detour"], {"detour": [0.0, 20.0]})
    assert lists["displays"]["detour"]["best"] == 0.0


def test_built_in_scores_need_no_display_settings() -> None:
    html = report_html([{"template_id": "t", "question_id": "q", "steps_score": 1.0, "status": "success"}])
    assert "displays" not in page_data(html)["lists"]


def test_measured_but_failed_sample_counts_as_the_worst() -> None:
    failed = {**results(3.0)[0], "status": "error", "error": "away"}
    rows = json.loads("".join(data_of([failed])["index_json"]))
    assert rows[0]["m"] == {"detour": 20.0}


def test_spent_metric_is_listed_with_costs() -> None:
    found = [{**result, "effort": 4.0, "custom_metrics": ["effort"]} for result in results(1.0, 1.0)]
    rows = [row for row in data_of(found)["view"].spent if row.name == "minutes of people"]
    assert [(row.unit, row.total, row.mean) for row in rows] == [("min", 8.0, 4.0)]
    assert "effort" not in [line.metric for line in data_of(found)["view"].scores]


def test_terminal_lists_it_under_own_scores_with_unit_and_title() -> None:
    found = results(2.0, 12.0)
    text = console_text(summary_tables(run_view(found, metrics=own_metrics(compute_aggregates(found)["micro"]))))
    assert "Own scores by template (means)" in text
    assert "Judged" not in text
    rows = [line.replace("│", " ").split() for line in text[text.index("Own scores") :].splitlines()]
    assert ["t", "7.00", "km"] in rows
    assert "detour: way for nothing; less is better" in " ".join(text.split())


def test_report_of_a_folder_shows_it(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").write_text("".join(f"{json.dumps(result)}\n" for result in results(2.0)))
    assert "way for nothing; less is better" in report_html(tmp_path)
