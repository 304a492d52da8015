"""The speed of ranking metrics, compared with ranx and pytrec_eval, in whole processes: including start-up and reading.

Run it as ``python benchmarks/ranking.py``. 10,000 queries with 100 retrieved and up to 30 relevant ids each are written
to a JSON file; each library reads it in a separate process, converts it, and computes six measures. Wall time is
measured: the libraries alternate, and the fastest repeat counts. The first run of each does not count; in it ranx
compiles and caches its functions. All must find the same means.

ranx and pytrec_eval are in a separate environment in a temporary folder: ``--venv`` keeps it, ``--no-others`` skips
both, and one that cannot be installed is skipped with a message. ``--quick`` uses a tenth of the queries. The exit code
is 1 if the goal, at most three times the slower of the two, is missed, or if the means differ.
"""

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

QUERIES, RETRIEVED, POOL = 10_000, 100, 200  # half of the relevant ids are retrieved
GOAL = 3.0  # upper limit relative to the slower of the others
PACKAGES = {"ranx": "ranx==0.3.21", "pytrec_eval": "pytrec-eval-terrier==0.5.11"}
OURS = "graphrag_eval_lc"

# Each script prints the means of P@10, R@10, RR, AP, nDCG@10 and nDCG.
SCRIPTS = {
    OURS: """
import json, sys
from graphrag_eval_lc.metrics import parse_measure, ranking_scores
measures = [parse_measure(name) for name in ("P@10", "R@10", "RR", "AP", "nDCG@10", "nDCG")]
with open(sys.argv[1]) as file:
    queries = json.load(file)
scores = [ranking_scores(relevant, retrieved, measures) for relevant, retrieved in queries]
print(json.dumps([sum(each[measure.key] for each in scores) / len(scores) for measure in measures]))
""",
    "ranx": """
import json, sys, warnings
warnings.simplefilter("ignore")
from ranx import Qrels, Run, evaluate
with open(sys.argv[1]) as file:
    queries = json.load(file)
qrels = {str(number): dict.fromkeys(relevant, 1) for number, (relevant, _) in enumerate(queries)}
run = {
    str(number): {identifier: 1.0 - rank / 1000 for rank, identifier in enumerate(retrieved)}
    for number, (_, retrieved) in enumerate(queries)
}
names = ["precision@10", "recall@10", "mrr", "map", "ndcg@10", "ndcg"]
means = evaluate(Qrels(qrels), Run(run), names)
print(json.dumps([float(means[name]) for name in names]))
""",
    "pytrec_eval": """
import json, sys
import pytrec_eval
with open(sys.argv[1]) as file:
    queries = json.load(file)
qrels = {str(number): dict.fromkeys(relevant, 1) for number, (relevant, _) in enumerate(queries)}
run = {
    str(number): {identifier: 1.0 - rank / 1000 for rank, identifier in enumerate(retrieved)}
    for number, (_, retrieved) in enumerate(queries)
}
asked = {"P.10", "recall.10", "recip_rank", "map", "ndcg_cut.10", "ndcg"}
scores = pytrec_eval.RelevanceEvaluator(qrels, asked).evaluate(run).values()
names = ["P_10", "recall_10", "recip_rank", "map", "ndcg_cut_10", "ndcg"]
print(json.dumps([sum(each[name] for each in scores) / len(scores) for name in names]))
""",
}


def write_queries(path: Path, number: int) -> None:
    """Write the relevant and the retrieved ids of each query, drawn from one pool."""
    random_ = random.Random(7)
    pool = [f"urn:uuid:{random_.getrandbits(128):032x}" for _ in range(POOL)]
    queries = [(random_.sample(pool, random_.randint(1, 30)), random_.sample(pool, RETRIEVED)) for _ in range(number)]
    path.write_text(json.dumps(queries), encoding="utf-8")


def installed_pythons(folder: Path) -> dict[str, Path]:
    """Return the interpreter by library, for those installed or installable in the environment."""
    python = folder.absolute() / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    return {library: python for library, package in PACKAGES.items() if is_installed(python, library, package)}


def is_installed(python: Path, library: str, package: str) -> bool:
    """Return whether an environment has a library, installing it if possible."""
    if not subprocess.run([python, "-c", f"import {library}"], capture_output=True, check=False).returncode:
        return True
    print(f"Installing {package} ...", flush=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]
    failed = subprocess.run(install, capture_output=True, text=True, check=False)
    if failed.returncode:
        reason = (failed.stderr.strip().splitlines() or ["no reason given"])[-1]
        print(f"{package} cannot be installed on Python {sys.version.split()[0]} and is left out: {reason}")
    return not failed.returncode


def measured(python: Path, library: str, queries: Path) -> tuple[float, list[float]]:
    """Return the wall time of one process, and the means that it computed."""
    started = time.perf_counter()
    command = [str(python), "-c", SCRIPTS[library], str(queries)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return time.perf_counter() - started, json.loads(done.stdout)


def compare(pythons: dict[str, Path], queries: Path, repeats: int) -> bool:
    """Print the times, and return whether the goal is met and the means are equal."""
    means = {library: measured(python, library, queries)[1] for library, python in pythons.items()}
    times: dict[str, list[float]] = {library: [] for library in pythons}
    for _ in range(repeats):
        for library, python in pythons.items():
            times[library].append(measured(python, library, queries)[0])
    least = {library: min(each) for library, each in times.items()}
    for library, seconds in least.items():
        print(f"{library:17} {seconds:6.2f} s   means {', '.join(f'{mean:.6f}' for mean in means[library])}")
    is_met = True
    for library in means:
        if not all(math.isclose(*pair, rel_tol=1e-6) for pair in zip(means[OURS], means[library], strict=True)):
            print(f"  the means of {library} are not ours")
            is_met = False
    others = [seconds for library, seconds in least.items() if library != OURS]
    if not others:
        print("  neither ranx nor pytrec_eval is there to compare with")
        return is_met
    ratio = least[OURS] / max(others)
    print(f"  goal, at most {GOAL:g} times the slower: {ratio:.2f} times, {'met' if ratio <= GOAL else 'NOT MET'}")
    print(f"  (the faster: {least[OURS] / min(others):.2f} times)")
    return is_met and ratio <= GOAL


def main() -> int:
    """Run the benchmark and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venv", type=Path, help="where the environment of the others is made and kept")
    parser.add_argument("--no-others", action="store_true", help="measure neither ranx nor pytrec_eval")
    parser.add_argument("--repeats", type=int, default=3, help="how often each runs (default: 3)")
    parser.add_argument("--quick", action="store_true", help="take a tenth of the queries")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        others = {} if options.no_others else installed_pythons(options.venv or folder / "venv")
        queries = folder / "queries.json"
        number = QUERIES // (10 if options.quick else 1)
        write_queries(queries, number)
        print(f"{number} queries × {RETRIEVED} ids × 6 measures, whole processes, least of {options.repeats}")
        is_met = compare({OURS: Path(sys.executable), **others}, queries, options.repeats)
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
