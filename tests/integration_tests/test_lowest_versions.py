"""The lower bounds of the dependencies are tested ones: the unit tests pass in an environment that has just these."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# These use the standard library and this package alone.
SAME_WITH_ALL_VERSIONS = ("aggregation", "masking", "registry")
READ_OUR_SOURCES = ("docs", "test_architecture.py", "test_console.py", "test_docstrings.py")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def lowest(requirements: list[str]) -> list[str]:
    """Give requirements with their lower bounds as the only versions."""
    bounds = (re.fullmatch(r"([\w.-]+)>=([\w.]+),<[\w.]+", requirement) for requirement in requirements)
    return [f"{bound[1]}=={bound[2]}" for bound in bounds if bound]


def test_every_dependency_has_a_lower_and_an_upper_bound() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    own = PROJECT["project"]["name"]
    listed = [*PROJECT["project"]["dependencies"], *chain(*extras.values())]
    requirements = [requirement for requirement in listed if not requirement.startswith(own)]
    assert len(lowest(requirements)) == len(requirements)


@pytest.mark.full
def test_unit_tests_pass_with_the_lowest_versions(tmp_path: Path) -> None:
    project = PROJECT["project"]
    extras = project["optional-dependencies"]
    tested = ("demo", "judges", "notebook", "parquet", "pytest", "report", "stats")
    pinned = lowest([*project["dependencies"], *chain.from_iterable(extras[extra] for extra in tested)])
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, *pinned, *PROJECT["dependency-groups"]["test"][1:], str(ROOT)], check=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    left_out = [f"--ignore=tests/unit_tests/{room}" for room in (*SAME_WITH_ALL_VERSIONS, *READ_OUR_SOURCES)]
    options = ["-q", "-p", "no:cacheprovider", "-m", "not full", "--hypothesis-profile=few", *left_out]
    outcome = subprocess.run(
        [python, "-m", "pytest", *options, "tests/unit_tests"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stdout[-4000:] + outcome.stderr[-2000:]


def test_rooms_that_are_left_out_import_nothing_else() -> None:
    own = {*sys.stdlib_module_names, "graphrag_eval_lc"}
    for room in SAME_WITH_ALL_VERSIONS:
        for path in (ROOT / "graphrag_eval_lc" / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
                names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
                assert {name.partition(".")[0] for name in names} <= own, path
