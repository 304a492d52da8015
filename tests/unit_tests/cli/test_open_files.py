"""File modes of command output: private to the owner, or according to the umask."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs POSIX")

RUN = ("run", "qa.yaml", "--agent", "agent.py:graph", "--output", "run", "--quiet")
Command = Callable[..., int]


@pytest.fixture(autouse=True, params=[0o000, 0o022])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    """Return the modes of a folder, as ".", and of everything in it."""
    paths = [folder, *folder.rglob("*")]
    return {str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode) for path in paths}


def assert_private(folder: Path, *names: str) -> None:
    found = modes(folder)
    assert found.keys() >= {*names, "run.json", "responses.jsonl", "results.jsonl", "aggregates.yaml", ".lock"}
    assert {name for name, mode in found.items() if mode & 0o077} == set()


def assert_open(folder: Path, umask: int, *names: str) -> None:
    found = modes(folder)
    assert found.keys() >= {*names, "run.json", "responses.jsonl", "results.jsonl", "aggregates.yaml", ".lock"}
    wrong = {name for name, mode in found.items() if mode != (0o777 if (folder / name).is_dir() else 0o666) & ~umask}
    assert wrong == set()


def test_run_folder_and_its_files_are_private(files: Path, exit_code: Command) -> None:
    assert exit_code(*RUN, "--junit", "run/junit.xml", "--summary", "run/summary.md") == 0
    assert_private(files / "run", "report.html", "junit.xml", "summary.md")
    exit_code("score", "run")
    exit_code("report", "run")
    exit_code("compare", "run", "run", "--html", "run/page.html", "--csv", "run/metrics.csv")
    assert_private(files / "run", "report.html", "page.html", "metrics.csv")


def test_open_files_follow_the_umask(files: Path, exit_code: Command, umask: int) -> None:
    assert exit_code(*RUN, "--open-files", "--junit", "run/junit.xml") == 0
    assert_open(files / "run", umask, "report.html", "junit.xml")
    exit_code("report", "run")
    exit_code("compare", "run", "run", "--html", "run/page.html")
    assert_open(files / "run", umask, "report.html", "page.html")


@pytest.mark.full
def test_later_session_uses_its_own_setting(files: Path, exit_code: Command, umask: int) -> None:
    assert exit_code(*RUN, "--open-files") == 0
    assert exit_code(*RUN) == 0
    found = modes(files / "run")
    assert {name for name, mode in found.items() if mode & 0o077} == {"."}  # the folder is not created again
    assert exit_code("score", "run", "--open-files") == 0
    assert modes(files / "run")["results.jsonl"] == 0o666 & ~umask


def test_existing_folder_keeps_its_mode(files: Path, exit_code: Command, umask: int) -> None:
    (files / "run").mkdir()
    assert exit_code(*RUN) == 0
    found = modes(files / "run")
    assert found.pop(".") == 0o777 & ~umask
    assert not {name for name, mode in found.items() if mode & 0o077}


@pytest.mark.full
def test_score_of_recorded_responses_with_a_torn_line(files: Path, exit_code: Command) -> None:
    assert exit_code("score", "qa.yaml", "responses.jsonl", "--output", "run") == 0
    with (files / "run" / "responses.jsonl").open("ab") as file:
        file.write(b'{"question_id": "q')
    (files / "run" / "results.jsonl").chmod(0o644)
    assert exit_code("score", "run") == 0
    assert_private(files / "run", "results.jsonl")


@pytest.mark.full
def test_outputs_outside_the_folder_follow_the_umask(files: Path, exit_code: Command, umask: int) -> None:
    assert exit_code(*RUN, "--junit", "out/junit.xml") == 0
    exit_code("report", "run", "--output", "report.html")
    for name in ("out/junit.xml", "report.html"):
        assert stat.S_IMODE((files / name).stat().st_mode) == 0o666 & ~umask
