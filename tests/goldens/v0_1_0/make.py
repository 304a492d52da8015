"""Make the runs of version 0.1.0 anew: its package, from its commit, runs the agent of this folder over the stub."""

import os
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path
from shutil import copy, copytree, rmtree

from judgements import judgement
from openai_stub import OpenAIStub
from produce import MAIN

HERE = Path(__file__).resolve().parent
COMMIT = "25a0a7e"
GIVEN = ("agent.py", "config.yaml", "dataset.yaml")
RUNS = {
    "first": ("make_agent", ()),
    "second": ("make_better_agent", ()),
    "stopped": ("make_agent", ("--repeats", "2", "--max-tokens", "9000")),
}


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary, OpenAIStub() as stub:
        stub.answer = judgement
        tree, work = Path(temporary, "tree"), Path(temporary, "work")
        archive = subprocess.run(
            ["git", "archive", COMMIT, "graphrag_eval_lc"], cwd=HERE.parents[2], capture_output=True, check=True
        )
        with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
            files.extractall(tree, filter="data")
        work.mkdir()
        for name in GIVEN:
            copy(HERE / name, work)
        environment = {
            **os.environ,
            "PYTHONPATH": str(tree),
            "JUDGE_KEY": "none",
            "HTTP_PROXY": stub.base_url.removesuffix("/v1"),
        }
        check = "import graphrag_eval_lc; print(graphrag_eval_lc.__file__)"
        imported = subprocess.check_output([sys.executable, "-c", check], cwd=work, env=environment, text=True)
        if not imported.startswith(str(tree)):
            sys.exit(f"the package comes from {imported}")
        for run, (agent, options) in RUNS.items():
            command = [
                "run",
                "dataset.yaml",
                "--agent",
                f"agent.py:{agent}",
                "--output",
                run,
                "--config",
                "config.yaml",
            ]
            command += ["--max-concurrency", "1", "--no-report", "--quiet", *options]
            subprocess.run([sys.executable, "-c", MAIN, *command], cwd=work, env=environment, check=False)
            (work / run / ".lock").unlink(missing_ok=True)
            rmtree(HERE / run, ignore_errors=True)
            copytree(work / run, HERE / run)


if __name__ == "__main__":
    main()
