"""The memory that merging shards needs: at most 0.6 KB per question above the loaded dataset.

``python benchmarks/merge.py [--questions 30000] [--shards 8]``, on Linux: shards of an agent that does nothing are run
and then merged in a separate process, whose peak resident memory is compared with that of one that only loads the
dataset. The memory needed for 1,000 questions, such as modules, is subtracted from both. Exit code 1: it needs more.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from graphrag_eval_lc import merge_runs, run_benchmark
from graphrag_eval_lc.dataset.loading import read_dataset

_MOST_KB = 0.6
_FEW = 1000


def main() -> int:
    """Run the shards, measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=30_000)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--only", choices=["load", "merge"], help="do this in the folder, and print the peak in MB")
    parser.add_argument("folder", nargs="?", type=Path)
    options = parser.parse_args()
    if options.only is not None:
        print(_peak_of(options.only, options.folder))
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        peaks: dict[tuple[str, int], float] = {}
        for questions in (_FEW, options.questions):
            folder = Path(temporary, str(questions))
            _run_shards(folder, questions, options.shards)
            for what in ("load", "merge"):
                start = time.perf_counter()
                peaks[what, questions] = _measured(what, folder)
                seconds = time.perf_counter() - start
                print(f"{questions:,} questions, {what}: {peaks[what, questions]:.1f} MB, {seconds:.1f} s")
    more = {what: peaks[what, options.questions] - peaks[what, _FEW] for what in ("load", "merge")}
    each = (more["merge"] - more["load"]) * 1024 / (options.questions - _FEW)
    print(f"a merge takes {each:.2f} KB a question above the dataset (at most {_MOST_KB:g})")
    return 0 if each <= _MOST_KB else 1


def _run_shards(folder: Path, questions: int, shards: int) -> None:
    folder.mkdir()
    steps = [[{"name": "look_up", "output": "1"}]]
    templates = [
        {
            "template_id": f"t{start // 100}",
            "questions": [
                {"id": f"q{number}", "question_text": f"What is {number}?", "reference_steps": steps}
                for number in range(start, min(start + 100, questions))
            ],
        }
        for start in range(0, questions, 100)
    ]
    (folder / "qa.json").write_text(json.dumps(templates), encoding="utf-8")
    for number in range(1, shards + 1):
        run_benchmark(
            _answer,
            folder / "qa.json",
            output_dir=folder / f"night-{number}-of-{shards}",
            shard=f"{number}/{shards}",
            max_concurrency=32,
            progress="off",
        )


async def _answer(question: str) -> str:
    return "fine"


def _measured(what: str, folder: Path) -> float:
    command = [sys.executable, __file__, "--only", what, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


def _peak_of(what: str, folder: Path) -> float:
    if what == "load":
        dataset = read_dataset(folder / "qa.json")
        assert dataset.templates
    else:
        merged = merge_runs(sorted(folder.glob("night-*")), output_dir=folder / "night")
        assert merged.stopped is None
    # resource.getrusage would include the parent process.
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024


if __name__ == "__main__":
    sys.exit(main())
