"""An environment with graphrag-eval, which needs Python 3.12, for the benchmarks that compare with it."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

GRAPHRAG_EVAL = "graphrag-eval==6.6.1"
PACKAGES = (GRAPHRAG_EVAL, "pyyaml>=6.0.2,<7")  # graphrag-eval reads its config with PyYAML without declaring it
# Its judges need more than its extra declares; ragas is installed as well.
LLM_PACKAGES = ("graphrag-eval[llm]==6.6.1", *PACKAGES[1:], "litellm>=1.80,<2", "langchain-community<0.4.2")


def graphrag_eval_python(folder: Path, wanted: str | None, *, has_judges: bool = False) -> Path:
    """Return the interpreter of an environment with graphrag-eval, creating the environment if it does not exist.

    Args:
        folder: The environment's folder.
        wanted: A Python 3.12. None looks on the PATH, then in pyenv, and finally asks uv for one.
        has_judges: Whether to install what judged metrics need, including ragas.
    """
    python = folder.absolute() / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not python.exists():
        _make_environment(folder, wanted)
    packages, modules = (LLM_PACKAGES, ", litellm, ragas.metrics.collections") if has_judges else (PACKAGES, "")
    installed = [str(python), "-c", f"import graphrag_eval, yaml{modules}"]
    if subprocess.run(installed, capture_output=True, check=False).returncode:
        print(f"Installing {GRAPHRAG_EVAL} ...", flush=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
    return python


def _make_environment(folder: Path, wanted: str | None) -> None:
    base = next(filter(_is_python_312, _pythons(wanted)), None)
    uv = shutil.which("uv")
    if base is not None:
        subprocess.run([base, "-m", "venv", folder], check=True)
    elif uv and not wanted:
        subprocess.run([uv, "venv", "--seed", "--python", "3.12", folder], check=True)
    else:
        raise SystemExit("No Python 3.12 found: give one with --python, or use --no-graphrag-eval.")


def _pythons(wanted: str | None) -> Iterator[Path]:
    found = [wanted] if wanted else [shutil.which("python3.12")]
    yield from (Path(path) for path in found if path)
    if not wanted:
        yield from sorted(Path.home().glob(".pyenv/versions/3.12*/bin/python"))


def _is_python_312(python: Path) -> bool:
    asked = [str(python), "-c", "import sys; print(sys.version_info[:2] == (3, 12))"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip() == "True"
    except OSError:
        return False
