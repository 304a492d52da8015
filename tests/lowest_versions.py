"""Print the lowest version of each dependency as pip constraints, for `make test-lowest`."""

import re
import tomllib
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

PROJECT: dict[str, Any] = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = ("demo", "graph", "judges", "neo4j", "notebook", "parquet", "pytest", "report", "sql", "stats")


def lowest(requirements: Iterable[str]) -> list[str]:
    """Return requirements pinned to their lower bounds. Requirements without both bounds are left out."""
    bounds = (re.fullmatch(r"([\w.-]+)>=([\w.]+),<[\w.]+", requirement) for requirement in requirements)
    return [f"{bound[1]}=={bound[2]}" for bound in bounds if bound]


if __name__ == "__main__":
    extras = PROJECT["project"]["optional-dependencies"]
    print("\n".join(lowest([*PROJECT["project"]["dependencies"], *chain.from_iterable(extras[key] for key in EXTRAS)])))
