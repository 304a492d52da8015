"""Compare the outputs of two commits: results, reports, comparisons, frames, help texts, public names.

``python tests/goldens/compare_commits.py BASE [NEW]``: BASE and NEW are commits; NEW defaults to the working tree. Both
sides are produced by this tree's ``produce.py``. Intended differences are listed in this tree's
``meant_differences.yaml``.

Exit codes: 0 only intended differences, 1 others, 2 wrong usage or a side that cannot be produced.
"""

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from io import BytesIO
from pathlib import Path
from shutil import copy

import yaml

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
CONFORMANCE = "GRAPHRAG_EVAL_LC_CONFORMANCE_DIR"
_CONTEXT = 2
_MOST_CHANGED_LINES = 40
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass
class MeantDifference:
    """Lines that may differ, and why.

    Attributes:
        artefact: A glob of artefact names.
        lines: Regular expressions. A place is intended if each of its changed lines matches one of them.
        reason: The reason, in one line.
        places: The number of places that it matched.
    """

    artefact: str
    lines: list[re.Pattern[str]]
    reason: str
    places: int = field(default=0)


@dataclass(frozen=True)
class Place:
    """Adjacent lines that differ.

    Attributes:
        line: The number of the first line, in the new text.
        old: The lines of the base.
        new: The lines of the new commit.
    """

    line: int
    old: list[str]
    new: list[str]


def main() -> None:
    """Compare the commits, and exit with 0, 1 or 2."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("base", help="a commit")
    parser.add_argument("new", nargs="?", help="another commit; without it the working tree")
    parser.add_argument("--keep", metavar="DIR", help="keep what both sides gave in this new folder")
    parser.add_argument("--all", action="store_true", help="show all lines of large differences")
    arguments = parser.parse_args()
    meant = _meant_differences(HERE / "meant_differences.yaml")
    if CONFORMANCE not in os.environ:
        print(f"{CONFORMANCE} is not set: recorded runs and vectors are left out.")
    with tempfile.TemporaryDirectory(prefix="goldens-") as temporary:
        folder = Path(arguments.keep or temporary).resolve()
        if arguments.keep and folder.exists():
            parser.error(f"{folder} is there already")
        _made_sides(folder, arguments.base, arguments.new)
        unmeant = _report(folder / "base" / "artefacts", folder / "new" / "artefacts", meant, shows_all=arguments.all)
    sys.exit(1 if unmeant else 0)


# --- both sides ------------------------------------------------------------------------------------------------------


def _made_sides(folder: Path, base: str, new: str | None) -> None:
    """Produce the artefacts of both commits in parallel."""
    processes = []
    for name, commit in (("base", base), ("new", new)):
        # Paths of equal length, as tables are as wide as their contents.
        side = folder / name
        tree = folder / "trees" / name.ljust(4, "_") / "tree"
        tree.mkdir(parents=True)
        _lay_out(tree, commit)
        log = (folder / f"{name}.log").open("w+", encoding="utf-8")
        path = os.pathsep.join([str(tree), str(HERE.parent)])  # for the tests' OpenAI stub
        environment = {**os.environ, "PYTHONPATH": path, "MPLBACKEND": "Agg", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, str(HERE / "produce.py"), str(tree), str(side)]
        processes.append((name, log, subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)))
    for name, log, process in processes:
        if process.wait():
            log.seek(0)
            _refuse(f"the side {name} cannot be made:\n{log.read()[-3000:]}")
        log.close()


def _lay_out(tree: Path, commit: str | None) -> None:
    """Write the package of a commit, or of the working tree, into a folder."""
    if commit is not None:
        archive = subprocess.run(
            ["git", "archive", commit, "graphrag_eval_lc", "pyproject.toml"],
            cwd=REPOSITORY,
            capture_output=True,
            check=False,
        )
        if archive.returncode:
            _refuse(archive.stderr.decode().strip())
        with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
            files.extractall(tree, filter="data")
        return
    command = ["git", "ls-files", "-z", "-co", "--exclude-standard", "graphrag_eval_lc", "pyproject.toml"]
    names = subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (REPOSITORY / name).exists():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            copy(REPOSITORY / name, tree / name)


# --- differences -----------------------------------------------------------------------------------------------------


def _report(base: Path, new: Path, meant: list[MeantDifference], *, shows_all: bool) -> int:
    """Print the unintended differences and a summary of the intended ones; return the number of unintended ones."""
    names = sorted({str(path.relative_to(side)) for side in (base, new) for path in side.rglob("*") if path.is_file()})
    unmeant = 0
    for name in names:
        places = [place for place in _places(base / name, new / name) if not _is_meant(name, place, meant)]
        unmeant += len(places)
        if places:
            print(f"=== {name}: {len(places)} differences")
            _show(places, _lines_of(new / name), shows_all=shows_all)
    print(f"{len(names)} artefacts compared, {unmeant} differences that are not meant.")
    for entry in meant:
        print(f"meant, {entry.places or 'NO'} differences in {entry.artefact}: {entry.reason}")
    return unmeant


def _places(base: Path, new: Path) -> Iterator[Place]:
    if not (base.exists() and new.exists()):
        yield Place(1, [] if new.exists() else ["(only in the base)"], ["(only in the new)"] if new.exists() else [])
        return
    if base.read_bytes() == new.read_bytes():
        return
    command = ["git", "diff", "--no-index", "--no-color", "--no-ext-diff", "--text", "-U0", str(base), str(new)]
    lines = subprocess.run(command, capture_output=True, check=False, text=True).stdout.split("\n")
    number = next(index for index, line in enumerate(lines) if line.startswith("@@"))
    while number < len(lines) and (hunk := _HUNK.match(lines[number])):
        number += 1
        changed = []
        while number < len(lines) and lines[number][:1] in ("-", "+", "\\"):
            changed.append(lines[number])
            number += 1
        old, added = ([line[1:] for line in changed if line[0] == sign] for sign in "-+")
        yield from _split(Place(int(hunk[3]), old, added))


def _split(place: Place) -> Iterator[Place]:
    """Yield the lines of a place one by one if as many were removed as added."""
    if len(place.old) != len(place.new):
        yield place
        return
    for offset, (old, new) in enumerate(zip(place.old, place.new, strict=True)):
        if old != new:
            yield Place(place.line + offset, [old], [new])


def _is_meant(name: str, place: Place, meant: list[MeantDifference]) -> bool:
    entries = [entry for entry in meant if fnmatch(name, entry.artefact)]
    found = {}
    for line in (*place.old, *place.new):
        entry = next((each for each in entries if any(pattern.search(line) for pattern in each.lines)), None)
        if entry is None:
            return False
        found[id(entry)] = entry
    for entry in found.values():
        entry.places += 1
    return bool(found)


def _show(places: list[Place], lines: list[str], *, shows_all: bool) -> None:
    shown = 0
    for place in places:
        if shown >= _MOST_CHANGED_LINES and not shows_all:
            print("  … more of them; --all shows all")
            return
        print(f"@@ line {place.line}{_question_at(lines, place.line)}")
        for line in lines[max(0, place.line - 1 - _CONTEXT) : place.line - 1]:
            print(f"  {line[:200]}")
        for sign, changed in (("-", place.old), ("+", place.new)):
            for line in changed if shows_all else changed[:_MOST_CHANGED_LINES]:
                print(f"{sign} {line if shows_all else line[:600]}")
        shown += len(place.old) + len(place.new)


def _question_at(lines: list[str], number: int) -> str:
    """Return the question or vector of a line, if it is in JSON that names it."""
    for line in reversed(lines[:number]):
        if found := re.match(r'^ ?"question_id": "(.*)",?$|^ "([^"]+)": [\[{]$', line):
            return f" ({found[1] or found[2]})"
    return ""


def _lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n") if path.exists() else []


def _meant_differences(path: Path) -> list[MeantDifference]:
    entries = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    try:
        return [
            MeantDifference(entry["artefact"], [re.compile(line) for line in entry["lines"]], entry["reason"])
            for entry in entries
        ]
    except (KeyError, TypeError, re.error) as problem:
        _refuse(f"{path.name}: each entry has artefact, lines (a list of regular expressions) and reason: {problem!r}")
    raise AssertionError


def _refuse(message: str) -> None:
    print(message, file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
