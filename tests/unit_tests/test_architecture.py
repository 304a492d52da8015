"""ARCHITECTURE.md matches the code: its rooms are import-linter's layers, and the files it names exist."""

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[2]
PACKAGE = PROJECT / "graphrag_eval_lc"
TEXT = (PROJECT / "ARCHITECTURE.md").read_text(encoding="utf-8")
MOST_LINES = 500


def floors() -> list[str]:
    """Return import-linter's layers from top to bottom, each with its rooms."""
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = (
        contract["layers"] for contract in settings["tool"]["importlinter"]["contracts"] if "layers" in contract
    )
    return list(layers)


def described_rooms() -> list[str]:
    """Return the rooms of the table, in order."""
    return re.findall(r"^\| `(\w+)` \| \S.*\|$", TEXT, flags=re.MULTILINE)


def test_table_lists_each_room_once_from_top_to_bottom() -> None:
    assert described_rooms() == [room for floor in floors() for room in floor.split(" | ")]


def test_every_package_and_module_is_a_room() -> None:
    found = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert found - {"__init__"} == set(described_rooms())


def named_files() -> list[str]:
    """Return all ``room/file.py`` references in the text, with or without a name in the file."""
    return re.findall(r"`([\w/]+\.py)(?:::[\w.]+)?`", TEXT)


def test_walkthroughs_name_files() -> None:
    assert len(named_files()) > 30


def test_named_files_exist() -> None:
    assert {name for name in named_files() if not ((PACKAGE / name).is_file() or (PROJECT / name).is_file())} == set()


def test_named_objects_exist() -> None:
    named = {
        (name, part) for name, symbol in re.findall(r"`([\w/]+\.py)::([\w.]+)`", TEXT) for part in symbol.split(".")
    }
    definition = r"^\s*(?:async )?(?:def|class) {0}\b|^{0}\b.*="
    missing = {
        (name, part)
        for name, part in named
        if not re.search(definition.format(part), (PACKAGE / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
    }
    assert missing == set()


def test_files_are_short() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in PACKAGE.rglob("*.py")}
    assert {path: count for path, count in lines.items() if count > MOST_LINES} == {}
