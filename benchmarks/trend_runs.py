"""The cost of a trend over 20 runs of 5,000 questions, compared with reading their files: at most 3 times as much.

``python benchmarks/trend_runs.py [--runs 20] [--questions 5000] [--templates 500] [--comparisons]``: the questions are
the demo's, repeated, with a score between 0 and 1 that differs in each run, and each run has the aggregates of all its
templates. Reading is ``json.loads`` of each line of each results.jsonl. Both are measured alternately, three times, in
CPU time of this process; the lowest of each counts. With ``--comparisons`` the page with all comparisons of
neighbouring runs is timed too. Exit code 1: the trend costs more.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graphrag_eval_lc import compute_aggregates, run_benchmark, trend
from graphrag_eval_lc.demo import DATASET_PATH
from graphrag_eval_lc.demo.agent import create_demo_agent
from graphrag_eval_lc.files.writing import yaml_text
from graphrag_eval_lc.report.runs import write_trend

_MOST = 3.0
_TIMES = 3


def main() -> int:
    """Write the runs, measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--questions", type=int, default=5000)
    parser.add_argument("--templates", type=int, default=500)
    parser.add_argument("--comparisons", action="store_true", help="time the page with its comparisons too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "runs"
        files = _written(store, options.runs, options.questions, options.templates)
        size = sum(file.stat().st_size for file in files)
        print(f"{options.runs} runs of {options.questions:,} questions, {size / 1e6:,.0f} MB of results")
        reading, trending = [], []
        for _ in range(_TIMES):
            reading.append(_seconds(lambda: _read(files)))
            trending.append(_seconds(lambda: trend(store)))
        ratio = min(trending) / min(reading)
        print(f"reading {min(reading):.2f} s, trend {min(trending):.2f} s: {ratio:.2f} times (at most {_MOST:g})")
        if options.comparisons:
            found, page = trend(store), Path(folder) / "trend.html"
            plain = _seconds(lambda: write_trend(found, page, comparisons=False))
            whole = _seconds(lambda: write_trend(found, page))
            again = _seconds(lambda: write_trend(found, page))
            pages = list((Path(folder) / "trend_comparisons").iterdir())
            megabytes = (page.stat().st_size + sum(each.stat().st_size for each in pages)) / 1e6
            print(
                f"the page alone {plain:.2f} s, with {len(pages)} comparisons {whole:.2f} s ({megabytes:.1f} MB), "
                f"written again {again:.2f} s"
            )
    return 0 if ratio <= _MOST else 1


def _written(store: Path, number: int, questions: int, templates: int) -> list[Path]:
    first = store / "run00"
    run_benchmark(create_demo_agent, DATASET_PATH, output_dir=first, progress="off")
    known = [json.loads(line) for line in (first / "results.jsonl").open(encoding="utf-8")]
    record: dict[str, Any] = json.loads((first / "run.json").read_text(encoding="utf-8"))
    chance = random.Random(0)
    files = []
    for at in range(number):
        folder = store / f"run{at:02}"
        folder.mkdir(exist_ok=True)
        results = []
        for index in range(questions):
            told = {"template_id": f"t{index % templates}", "question_id": f"q{index}", "steps_score": chance.random()}
            results.append({**known[index % len(known)], **told})
        started = {"started": f"2030-01-{at + 1:02}T00:00:00+00:00"}
        texts = {
            "results.jsonl": "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in results),
            "aggregates.yaml": yaml_text(compute_aggregates(results)),
            "run.json": json.dumps({**record, "times": started}),
        }
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
        files.append(folder / "results.jsonl")
    return files


def _read(files: list[Path]) -> None:
    for file in files:
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                json.loads(line)


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    sys.exit(main())
