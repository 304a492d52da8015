"""The size of a run's report, how long it takes to write, and how long a browser takes to open it.

Run it as ``python benchmarks/report.py``. Runs of 1,000 and 20,000 questions are derived from the demo's results,
repeated under new ids. A report is written in a separate process; the memory is the peak above the memory used after
importing the package. Opening it is measured in a headless Chromium (``chromium`` on the PATH), from the navigation
until the list of questions is painted, and so is opening one question; medians count. Without Chromium only size and
writing are measured. ``--quick`` uses a tenth of the questions. The exit code is 1 if a goal is missed: 8 seconds and
200 MB to write 20,000 questions, 1.5 seconds to the list.
"""

import argparse
import json
import multiprocessing
import resource
import shutil
import statistics
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import sync_playwright

from graphrag_eval_lc import run_benchmark, write_report
from graphrag_eval_lc.demo import DATASET_PATH
from graphrag_eval_lc.demo.agent import create_demo_agent

QUESTIONS = (1_000, 20_000)
REPEATS = 3
OPENING_GOAL_SEC = 1.5
WRITING_GOAL_SEC = 8.0
MEMORY_GOAL_MB = 200.0

ROW_OF_TABLE = "{:>9}  {:>10}  {:>9}  {:>7}  {:>7}  {:>6}  {:>10}"

PAINTED = "() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))"


class Written(NamedTuple):
    """The result of writing a report: its file, seconds and MB."""

    path: Path
    seconds: float
    memory_mb: float


class Opened(NamedTuple):
    """Seconds until the list of questions was painted, and until one of them was open."""

    page_sec: float
    question_sec: float


def many_questions(demo: Path, folder: Path, number: int) -> None:
    """Create a run folder with a number of questions from the demo's."""
    folder.mkdir()
    shutil.copy(demo / "run.json", folder)
    results = [json.loads(line) for line in (demo / "results.jsonl").open(encoding="utf-8")]
    with (folder / "results.jsonl").open("w", encoding="utf-8") as file:
        for place in range(number):
            result = results[place % len(results)]
            file.write(
                json.dumps({**result, "question_id": f"{result['question_id']}_{place // len(results):04}"}) + "\n"
            )


def written(folder: Path) -> Written:
    """Write the report of a run folder."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    path = write_report(folder)
    seconds = time.perf_counter() - started
    return Written(path, seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)


def opened(browser: Any, path: Path) -> Opened:
    """Open a report in a new window, then its first question."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    started = time.perf_counter()
    page.goto(path.as_uri(), wait_until="commit")
    row = page.locator("table.list .question-button").first
    row.wait_for()
    page.evaluate(PAINTED)
    page_sec = time.perf_counter() - started
    started = time.perf_counter()
    row.click()
    page.locator(".detail h3").first.wait_for()
    page.evaluate(PAINTED)
    question_sec = time.perf_counter() - started
    context.close()
    return Opened(page_sec, question_sec)


def measure(browser: Any, folder: Path, number: int) -> list[str]:
    """Print a row of the table; return the missed goals."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        report = pool.submit(written, folder).result()
    results_mb = (folder / "results.jsonl").stat().st_size / 1e6
    cells = [f"{number:,}", f"{results_mb:.1f}", f"{report.path.stat().st_size / 1e6:.1f}"]
    cells += [f"{report.seconds:.1f}", f"{report.memory_mb:.0f}"]
    found = [(report.memory_mb, MEMORY_GOAL_MB, "MB to write"), (report.seconds, WRITING_GOAL_SEC, "s to write")]
    if browser is not None:
        times = [opened(browser, report.path) for _ in range(REPEATS)]
        page_sec = statistics.median(each.page_sec for each in times)
        cells += [f"{page_sec:.2f}", f"{statistics.median(each.question_sec for each in times):.2f}"]
        found.append((page_sec, OPENING_GOAL_SEC, "s to the list"))
    print(ROW_OF_TABLE.format(*cells, *["-"] * (7 - len(cells))), flush=True)
    return [f"{number:,} questions: {value:.2f} {what}, not {goal:g}" for value, goal, what in found if value > goal]


def main() -> int:
    """Measure all sizes; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the questions")
    divisor = 10 if parser.parse_args().quick else 1
    chromium = shutil.which("chromium")
    missed = []
    print(ROW_OF_TABLE.format("questions", "results MB", "report MB", "write s", "peak MB", "open s", "question s"))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        demo = Path(folder) / "demo"
        run_benchmark(create_demo_agent, DATASET_PATH, output_dir=demo, progress="off", report=False)
        browser = playwright.chromium.launch(executable_path=chromium) if chromium else None
        for number in (each // divisor for each in QUESTIONS):
            many_questions(demo, Path(folder) / str(number), number)
            missed += measure(browser, Path(folder) / str(number), number)
        if browser is not None:
            browser.close()
    for goal in missed:
        print(f"Goal not met: {goal}")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
