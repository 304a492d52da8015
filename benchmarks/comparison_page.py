"""The size of a comparison page compared with the report of one of its runs, and how long both take to open.

Run it as ``python benchmarks/comparison_page.py``. Runs of 5,000 questions are derived from the demo's: A with some of
the demo agent's mistakes, B with all of them, and C in which each question has the response to another one, so that
nearly all questions flip. Pages are opened in a headless Chromium (``chromium`` on the PATH), 1280 and 390 pixels wide,
to measure their number of elements, their height, and the median seconds until the list of questions is painted.
Without Chromium only sizes and writing are measured. ``--quick`` uses a tenth of the questions. The exit code is 1 if
the page of A and B, or of A and C, is larger than the largest report of its runs.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from playwright.sync_api import sync_playwright
from report import PAINTED

from graphrag_eval_lc import compare_runs, load_dataset, run_benchmark, score_responses, write_report
from graphrag_eval_lc.demo import DATASET_PATH
from graphrag_eval_lc.demo.agent import create_demo_agent
from graphrag_eval_lc.demo.plans import SLIPS
from graphrag_eval_lc.report.comparison_page import write_comparison

QUESTIONS = 5_000
SOME_MISTAKES = 8
WIDTHS = (1280, 390)
REPEATS = 5
ROW_OF_TABLE = "{:<22}  {:>7}  {:>8}  {:>9}  {:>10}  {:>9}  {:>7}"


class Opened(NamedTuple):
    """A page in a browser: number of elements, height in pixels by width, and seconds until the list is painted."""

    elements: int
    heights: tuple[int, ...]
    seconds: float


def many_questions(templates: list[Any], responses: list[Any], number: int) -> tuple[list[Any], list[Any]]:
    """Return the demo's dataset and responses, with questions repeated up to a number of questions."""
    known = {response["question_id"]: response for response in responses}
    copies = -(-number // len(known))
    left = number
    dataset: list[Any] = []
    answered: list[Any] = []
    for template in templates:
        questions = [
            {**question, "id": f"{question['id']}_{copy:04}"}
            for copy in range(copies)
            for question in template["questions"]
        ][:left]
        left -= len(questions)
        dataset.append({**template, "questions": questions})
        answered += [{**known[question["id"][:-5]], "question_id": question["id"]} for question in questions]
    return dataset, answered


def make_runs(folder: Path, number: int) -> dict[str, Path]:
    """Score the runs, and write their reports."""
    templates = load_dataset(DATASET_PATH)
    runs = {}
    for name, mistakes in (("A", SOME_MISTAKES), ("B", len(SLIPS)), ("C", SOME_MISTAKES)):
        with patch.dict(SLIPS, dict.fromkeys(list(SLIPS)[mistakes:])):
            responses = run_benchmark(create_demo_agent, templates, progress="off").responses
        dataset, answered = many_questions(templates, responses, number)
        if name == "C":
            others = [*answered[number // 2 :], *answered[: number // 2]]
            pairs = zip(answered, others, strict=True)
            answered = [{**other, "question_id": own["question_id"]} for own, other in pairs]
        runs[name] = folder / name
        score_responses(dataset, answered, output_dir=runs[name])
        write_report(runs[name])
    return runs


def opened(browser: Any, path: Path) -> Opened:
    """Open a page several times in new windows."""
    elements, heights, times = 0, [], []
    for width in WIDTHS:
        for _ in range(REPEATS):
            context = browser.new_context(viewport={"width": width, "height": 900})
            page = context.new_page()
            started = time.perf_counter()
            page.goto(path.as_uri(), wait_until="commit")
            page.locator("table.list tr.question").first.wait_for()
            page.evaluate(PAINTED)
            times.append(time.perf_counter() - started)
            elements = page.evaluate("document.querySelectorAll('*').length")
            height = page.evaluate("document.documentElement.scrollHeight")
            context.close()
        heights.append(height)
    return Opened(elements, tuple(heights), statistics.median(times))


def measure(browser: Any, name: str, path: Path, write_sec: float | None = None) -> tuple[float, ...]:
    """Print a row of the table; return the values that must not exceed those of a report."""
    size = path.stat().st_size
    written = "-" if write_sec is None else f"{write_sec:.1f}"
    found = None if browser is None else opened(browser, path)
    cells = ["-"] * 4
    if found is not None:
        cells = [f"{found.elements:,}", *(f"{height:,}" for height in found.heights), f"{found.seconds:.2f}"]
    print(ROW_OF_TABLE.format(name, f"{size / 1e6:.2f}", written, *cells), flush=True)
    return (size,) if found is None else (size, found.elements, *found.heights)


def main() -> int:
    """Measure reports and comparisons; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the questions")
    number = QUESTIONS // (10 if parser.parse_args().quick else 1)
    chromium = shutil.which("chromium")
    heights = [f"px at {width:,}" for width in WIDTHS]
    missed = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium) if chromium else None
        runs = make_runs(Path(folder), number)
        print(f"{number:,} questions")
        print(ROW_OF_TABLE.format("page", "MB", "write s", "elements", *heights, "open s"))
        reports = {name: measure(browser, f"report of {name}", run / "report.html") for name, run in runs.items()}
        for names in ("AB", "AC", "ABC"):
            comparison = compare_runs(*(runs[name] for name in names))
            started = time.perf_counter()
            path = write_comparison(comparison, Path(folder) / f"{names}.html")
            seconds = time.perf_counter() - started
            flips = sum(len(pair.flips) for pair in comparison.pairs)
            page = measure(browser, f"{', '.join(names)}: {flips:,} flips", path, seconds)
            heaviest = map(max, zip(*(reports[name] for name in names), strict=True))
            units = ("bytes", "elements", *heights)
            # With three runs the page has two comparisons.
            if len(names) == 2:
                missed += [
                    f"{names} has {mine:,} {unit}, the report {its:,}"
                    for mine, its, unit in zip(page, heaviest, units, strict=False)
                    if mine > its
                ]
        if browser is not None:
            browser.close()
    for goal in missed:
        print(f"Goal not met: {goal}")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
