"""The memory per question that a dataset, a run and a report need; on Linux.

Run it as ``python benchmarks/memory.py``. A dataset of 50,000 short questions is loaded from YAML and JSON, and its
memory is compared with plain dicts from ``json.load``. A run with an agent that answers immediately is written to a
folder, resumed with nothing left to run, and scored again: the peak above the memory used once the dataset is loaded,
per question. Reports of 1,000 and 20,000 questions show the memory per additional question. Each figure is measured in
a separate process. ``--quick`` uses a tenth. The exit code is 1 if a goal is missed.
"""

import argparse
import json
import multiprocessing
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from graphrag_eval_lc import load_dataset, run_benchmark, score_run, write_report

QUESTIONS, OF_A_TEMPLATE = 50_000, 100
DATASET_GOAL = 1.5  # relative to the dicts of json.load
RUN_GOAL_KB = REPORT_GOAL_KB = 0.6  # per question


async def agent(question: str) -> str:
    """Answer immediately."""
    return "yes"


def dataset_of(questions: int) -> list[dict[str, Any]]:
    """Return short questions in templates."""
    asked = [
        {
            "id": f"q{number}",
            "question_text": f"Which lines start at substation {number}?",
            "reference_answer": f"Line {number}.",
            "reference_steps": [[{"name": "sparql_query", "args": {"query": f"SELECT {number}"}, "output": "{}"}]],
        }
        for number in range(questions)
    ]
    return [
        {"template_id": f"t{start}", "questions": asked[start : start + OF_A_TEMPLATE]}
        for start in range(0, questions, OF_A_TEMPLATE)
    ]


def _mb(what: str) -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition(f"{what}:")[2].split()[0]) / 1024


def _now_mb() -> float:
    return _mb("VmRSS")


def _peak_mb() -> float:
    return _mb("VmHWM")  # ru_maxrss would be that of the parent process


def plain_mb(path: str) -> float:
    """Return the MB that the dicts of a JSON file need."""
    before = _now_mb()
    values = json.loads(Path(path).read_bytes())
    assert values
    return _now_mb() - before


def loaded_mb(path: str) -> float:
    """Return the MB that a loaded dataset needs."""
    before = _now_mb()
    values = load_dataset(path)
    assert values
    return _now_mb() - before


def run_kb(path: str, output_dir: str, what: str) -> float:
    """Return the peak KB per question of a run, its resumption or its scoring, above the loaded dataset."""
    one: Any = dataset_of(1)
    run_benchmark(agent, one, progress="off")  # imports are not counted
    dataset: Any = load_dataset(path)
    before = _now_mb()
    if what == "score":
        score_run(output_dir, dataset=dataset, progress="off", report=False)
    else:
        run_benchmark(agent, dataset, output_dir=output_dir, progress="off", max_concurrency=64, report=False)
    questions = sum(len(template["questions"]) for template in dataset)
    return (_peak_mb() - before) * 1024 / questions


def report_mb(output_dir: str) -> float:
    """Return the peak MB of a process that writes a report."""
    write_report(output_dir)
    return _peak_mb()


def measured(function: Any, *arguments: Any) -> float:
    """Call a function in a separate process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return float(process.submit(function, *arguments).result())


def main() -> int:
    """Print the figures, and return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the questions")
    questions = QUESTIONS // 10 if parser.parse_args().quick else QUESTIONS
    is_met = True

    def show(what: str, text: str, *, met: bool) -> None:
        nonlocal is_met
        is_met &= met
        sys.stdout.write(f"{what:44}{text:>34}  {'goal met' if met else 'goal missed'}\n")
        sys.stdout.flush()

    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder, f"qa.{name}") for name in ("json", "yaml")}
        paths["json"].write_text(json.dumps(dataset_of(questions)), encoding="utf-8")
        with paths["yaml"].open("w", encoding="utf-8") as file:
            yaml.dump(
                dataset_of(questions), file, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False
            )
        plain = measured(plain_mb, str(paths["json"]))
        for name, path in paths.items():
            loaded = measured(loaded_mb, str(path))
            text = f"{loaded:.0f} MB, {loaded / plain:.2f} times its dicts"
            show(f"{questions:,} questions from {name.upper()}", text, met=loaded <= DATASET_GOAL * plain)
        for what in ("run", "resume", "score"):
            kb = measured(run_kb, str(paths["json"]), f"{folder}/run", what)
            show(what, f"{kb:.2f} KB a question", met=kb <= RUN_GOAL_KB)
        sizes = (questions // 50, questions * 2 // 5)
        peaks = []
        for size in sizes:
            small: Any = dataset_of(size)
            run_benchmark(agent, small, output_dir=f"{folder}/{size}", progress="off", max_concurrency=64, report=False)
            peaks.append(measured(report_mb, f"{folder}/{size}"))
        kb = (peaks[1] - peaks[0]) * 1024 / (sizes[1] - sizes[0])
        show(f"report of {sizes[1]:,} beside {sizes[0]:,}", f"{kb:.2f} KB a question", met=kb <= REPORT_GOAL_KB)
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
