"""The page of a trend, and the comparisons that it links to."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import run_benchmark, trend, write_report
from graphrag_eval_lc.report.runs import write_trend

STEPS = [[{"name": "s", "output": "1"}]]
DATASET: list[Any] = [
    {
        "template_id": f"t{index}",
        "questions": [{"id": f"q{index}", "question_text": f"{index}?", "reference_steps": STEPS}],
    }
    for index in range(3)
]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a folder of three runs; the first has a report."""
    for name in ("first", "second one", "<third>"):
        options: Any = {"label": name, "progress": "off", "report": False}
        run_benchmark(lambda question: "1", DATASET, output_dir=tmp_path / "runs" / name, **options)
    write_report(tmp_path / "runs" / "first")
    return tmp_path / "runs"


def links(page: Path) -> list[str]:
    return re.findall(r'<a href="([^"#]+)"', page.read_text())


def test_page_links_to_existing_reports_and_comparisons(store: Path, tmp_path: Path) -> None:
    page = write_trend(trend(store), tmp_path / "trend.html")
    found = sorted(set(links(page)))
    assert len(found) == 3
    assert "runs/first/report.html" in found
    for address in found:
        assert (tmp_path / address).is_file()
    assert sum(address.startswith("trend_comparisons/") for address in found) == 2
    comparison = next(address for address in found if "first__second_one" in address)
    assert "../runs/first/report.html" in links(tmp_path / comparison)


def test_texts_of_runs_are_escaped(store: Path, tmp_path: Path) -> None:
    text = write_trend(trend(store), tmp_path / "trend.html").read_text()
    assert "&lt;third&gt;" in text
    assert "<third>" not in text


@pytest.mark.full
@pytest.mark.parametrize("seconds", [60, -3600], ids=["later", "after the clock was set back"])
def test_comparisons_are_rewritten_only_if_a_run_was_rescored(store: Path, tmp_path: Path, seconds: int) -> None:
    write_trend(trend(store), tmp_path / "trend.html")
    pages = sorted((tmp_path / "trend_comparisons").iterdir())
    for page in pages:
        os.utime(page, (1, 1))
    scored = (store / "first" / "results.jsonl").stat().st_mtime + seconds
    os.utime(store / "first" / "results.jsonl", (scored, scored))
    write_trend(trend(store), tmp_path / "trend.html")
    assert sorted(page.stat().st_mtime == 1 for page in pages) == [False, True]


def test_comparisons_can_be_disabled(store: Path, tmp_path: Path) -> None:
    page = write_trend(trend(store), tmp_path / "trend.html", comparisons=False)
    assert not (tmp_path / "trend_comparisons").exists()
    assert set(links(page)) == {"runs/first/report.html"}


def test_single_run_has_a_page(store: Path, tmp_path: Path) -> None:
    text = write_trend(trend(store, last=1), tmp_path / "trend.html").read_text()
    assert "<h1>1 run in" in text
    assert 'class="mean"' not in text
    assert text.count('class="point ') == 4


def test_line_connects_only_runs_with_common_questions(store: Path, tmp_path: Path) -> None:
    path = store / "second one" / "results.jsonl"
    path.write_text(path.read_text().replace('"question_id": "', '"question_id": "z'))
    text = write_trend(trend(store), tmp_path / "trend.html", comparisons=False).read_text()
    assert 'class="mean"' not in text
