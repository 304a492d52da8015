"""``dir()`` of each package lists its public names but not its imports."""

import importlib
import pkgutil
import subprocess
import sys

import pytest

import graphrag_eval_lc

ROOMS = [each.name for each in pkgutil.walk_packages(graphrag_eval_lc.__path__, "graphrag_eval_lc.") if each.ispkg]
PACKAGES = [
    name
    for name in ["graphrag_eval_lc", *ROOMS, "graphrag_eval_lc.errors"]
    if hasattr(importlib.import_module(name), "__all__")
]
PUBLIC_PACKAGES = {"matching", "metrics", "judges", "compare", "dataset", "graph", "registry", "errors", "demo"}


def shown_names(package: str) -> set[str]:
    return {name for name in dir(importlib.import_module(package)) if not name.startswith("__")}


@pytest.mark.parametrize("package", [name for name in PACKAGES if name != "graphrag_eval_lc"])
def test_dir_of_a_package_lists_only_public_names(package: str) -> None:
    module = importlib.import_module(package)
    assert shown_names(package) == set(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


def test_dir_of_the_root_package_lists_only_public_names_and_packages() -> None:
    shown = shown_names("graphrag_eval_lc")
    assert shown <= {*graphrag_eval_lc.__all__, *PUBLIC_PACKAGES}
    assert shown >= {*graphrag_eval_lc.__all__, "errors"}


def test_dir_lists_python_module_attributes() -> None:
    assert {"__doc__", "__file__", "__name__", "__version__"} <= set(dir(graphrag_eval_lc))


@pytest.mark.full
def test_packages_are_listed_once_loaded() -> None:
    code = (
        "import graphrag_eval_lc\nprint('compare' in dir(graphrag_eval_lc))\n"
        "import graphrag_eval_lc.compare\nprint('compare' in dir(graphrag_eval_lc))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_all_errors_are_public() -> None:
    errors = importlib.import_module("graphrag_eval_lc.errors")

    found = {
        name for name, value in vars(errors).items() if isinstance(value, type) and value.__module__ == errors.__name__
    }
    assert found == set(errors.__all__)
