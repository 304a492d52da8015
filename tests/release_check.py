"""Checks before a release, run by `make release-check`.

Builds the package, checks its metadata, and tries the wheel in a clean environment of each supported Python. The core
must not exceed the number of packages and the size declared below.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
# Supported but not available everywhere: a release that did not check one of them says so.
OPTIONAL = ("3.14",)
# The core: number of packages (including this one), and MiB of their files without bytecode.
MOST_PACKAGES, MOST_MIB = 50, 74

_SIZE = """
import os
from importlib.metadata import distributions
own = [each for each in distributions() if each.name not in ("pip", "setuptools", "wheel")]
files = {os.path.realpath(each.locate_file(file)) for each in own for file in each.files or ()}
print(len(own), sum(os.path.getsize(file) for file in files if os.path.isfile(file) and not file.endswith(".pyc")))
"""
_USE = """
import graphrag_eval_lc
from graphrag_eval_lc import run_evaluation
step = {"name": "add", "args": {}, "id": "1", "status": "success", "output": "3"}
question = {"id": "q", "question_text": "1 + 2?", "reference_steps": [[{"name": "add", "output": "3"}]]}
response = {"question_id": "q", "actual_steps": [step]}
[result] = run_evaluation([{"template_id": "t", "questions": [question]}], [response])
assert result["steps_score"] == 1, result
for name in graphrag_eval_lc.__all__:
    getattr(graphrag_eval_lc, name)
"""


def main() -> int:
    """Run all checks and return the number of failures."""
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        dist = Path(folder) / "dist"
        run(sys.executable, "-m", "build", "--outdir", str(dist), str(ROOT))
        files = sorted(map(str, dist.iterdir()))
        run(sys.executable, "-m", "twine", "check", "--strict", *files)
        [wheel] = [file for file in files if file.endswith(".whl")]
        for version in PYTHONS:
            python = find_python(version)
            if python is None and version in OPTIONAL:
                print(f"Python {version} is not here and was not checked.")
                continue
            if python is None:
                failures.append(f"there is no Python {version}; pyenv install {version} gives one")
                continue
            failures += (f"Python {version}: {problem}" for problem in check(python, wheel, Path(folder) / version))
    for failure in failures:
        print(f"FAILED: {failure}")
    print("Not ready." if failures else "Ready for a release.")
    return len(failures)


def check(python: str, wheel: str, folder: Path) -> Iterator[str]:
    """Yield the problems of the wheel in a clean environment."""
    run(python, "-m", "venv", str(folder))
    own = str(folder / "bin" / "python")
    run(own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    packages, size = map(int, run(own, "-c", _SIZE, cwd=folder).split())
    print(f"{python}: {packages} packages, {size / 2**20:.1f} MiB")
    if packages > MOST_PACKAGES:
        yield f"the core has {packages} packages, more than {MOST_PACKAGES}"
    if round(size / 2**20) > MOST_MIB:
        yield f"the core has {size / 2**20:.1f} MiB, more than {MOST_MIB}"
    commands = {
        "the package": (own, "-c", _USE),
        "the command": (str(folder / "bin" / "graphrag-eval-lc"), "--version"),
        "the module": (own, "-m", "graphrag_eval_lc", "run", "--help"),
    }
    for what, command in commands.items():
        try:
            run(*command, cwd=folder)
        except subprocess.CalledProcessError as problem:
            yield f"{what} fails: {(problem.stderr or problem.stdout).strip()[-400:]}"
    run(own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{wheel}[demo]")
    try:
        run(str(folder / "bin" / "graphrag-eval-lc"), "demo", "--quiet", cwd=folder)
    except subprocess.CalledProcessError as problem:
        yield f"the demo fails: {problem.stderr.strip()[-400:]}"


def find_python(version: str) -> str | None:
    """Return a working Python of a version, from PATH or pyenv."""
    pyenv = Path.home() / ".pyenv" / "versions"
    candidates = [f"python{version}", *map(str, sorted(pyenv.glob(f"{version}.*/bin/python")))]
    for candidate in candidates:
        try:
            run(candidate, "-c", "")
        except (OSError, subprocess.CalledProcessError):
            continue
        return candidate
    return None


def run(*command: str, cwd: Path = ROOT) -> str:
    """Run a command outside our environments and return its output."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
