"""Links planted in a run's folder: no command reads or writes through them or hangs at a pipe."""

import json
import os
import shutil
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from graphrag_eval_lc import run_benchmark, write_report

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs POSIX")

_DATASET = """\
- template_id: where
  questions:
  - {id: q1, question_text: Where is OSLO?, reference_steps: [[{name: lookup, output: "urn:oslo"}]]}
  - {id: q2, question_text: Who runs OSLO?, reference_steps: [[{name: lookup, output: "urn:oslo"}]]}
"""
_AGENT = "def agent(question):\n    return 'In NO1.'\n"
_SECRET = b'{"question_id": "q1", "secret": "of somebody else"}\n'

# Files that runs write, and links that may be planted in their place.
WRITTEN = (
    "run.json", "run.json.new", "responses.jsonl", "responses.jsonl.new", "results.jsonl",
    "results.jsonl.partial", "results.jsonl.new", "aggregates.yaml", "aggregates.yaml.new", "report.html",
    "report.html.new", "judge_cache.jsonl", ".lock",
)  # fmt: skip
RUN = ("run", "qa.yaml", "--agent", "agent.py:agent", "--output", "run", "--quiet")
WRITING = {
    "run": RUN,
    "resume": (*RUN, "--retry-errors"),
    "overwrite": (*RUN, "--overwrite"),
    "score": ("score", "run"),
    "score anew": ("score", "qa.yaml", "other/responses.jsonl", "--output", "run", "--overwrite"),
}
READING = {
    "report": (("report", "run"), ("run.json", "results.jsonl", "report.html", "report.html.new")),
    "compare": (("compare", "other", "run"), ("run.json", "results.jsonl")),
    "page": (("compare", "other", "run", "--html", "run/comparison.html"), ("comparison.html", "comparison.html.new")),
    "junit": ((*RUN, "--junit", "run/junit.xml"), ("junit.xml", "junit.xml.new")),
    "runs": (("runs", "run"), ("run.json", "aggregates.yaml")),
    "trend": (("runs", "--trend", "."), ("run.json", "results.jsonl", "aggregates.yaml")),
    "validate": (("validate", "qa.yaml", "--responses", "run"), ("run.json", "responses.jsonl")),
    "score its responses": (("score", "qa.yaml", "run", "--output", "new"), ("responses.jsonl",)),
    "draft": (("dataset", "draft", "run", "--output", "draft.yaml"), ("run.json", "responses.jsonl")),
}
CASES = [
    *(pytest.param(command, file, id=f"{name}-{file}") for name, command in WRITING.items() for file in WRITTEN),
    *(pytest.param(command, file, id=f"{name}-{file}") for name, (command, files) in READING.items() for file in files),
]


@dataclass(frozen=True)
class Ended:
    code: int
    output: str


@pytest.fixture
def command(
    work: Path, exit_code: Callable[..., int], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ended]:
    """Return a function that runs a command in the folder with both runs."""
    monkeypatch.chdir(work)

    def run(*arguments: str) -> Ended:
        code = exit_code(*arguments)
        captured = capfd.readouterr()
        return Ended(code, captured.out + captured.err)

    return run


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two finished runs, with their dataset and agent."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "qa.yaml").write_text(_DATASET)
    (folder / "agent.py").write_text(_AGENT)
    here = Path.cwd()
    os.chdir(folder)
    try:
        for name in ("run", "other"):
            run = run_benchmark("agent.py:agent", "qa.yaml", output_dir=name, progress="off")
            write_report(run)
    finally:
        os.chdir(here)
    return folder


@pytest.fixture
def work(finished: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished, tmp_path / "work", symlinks=True)
    (tmp_path / "victim").write_bytes(_SECRET)
    return tmp_path / "work"


@pytest.mark.full
@pytest.mark.parametrize(("arguments", "name"), CASES)
def test_link_in_place_of_a_file_is_one_error_and_its_target_stays(
    work: Path, command: Callable[..., Ended], arguments: tuple[str, ...], name: str
) -> None:
    victim, planted = work.parent / "victim", work / "run" / name
    planted.unlink(missing_ok=True)
    planted.symlink_to(victim)
    before = {path.name: path.read_bytes() for path in (work / "run").iterdir() if not path.name.startswith(".lock")}
    ended = command(*arguments)
    output = ended.output
    assert output.count("this is a symbolic link, and only regular files are used in a run's folder") == 1, output
    assert f"run/{name}: this is a symbolic link" in output
    assert "Traceback" not in output
    assert "bug in graphrag-eval-lc" not in output
    assert "of somebody else" not in output
    assert ended.code == 2, output
    assert (victim.read_bytes(), planted.readlink()) == (_SECRET, victim)
    if "--junit" not in arguments:  # written after the run's own files
        assert {path: (work / "run" / path).read_bytes() for path in before} == before


@pytest.mark.parametrize("name", ["run.json", "responses.jsonl", "results.jsonl", "aggregates.yaml", ".lock"])
@pytest.mark.parametrize("arguments", [RUN, ("score", "run"), ("report", "run"), ("compare", "other", "run")])
def test_named_pipe_in_place_of_a_file_does_not_hang(
    work: Path, command: Callable[..., Ended], arguments: tuple[str, ...], name: str
) -> None:
    (work / "run" / name).unlink()
    os.mkfifo(work / "run" / name)
    ended = command(*arguments)
    if arguments[0] in ("run", "score"):
        assert ended.code == 2
        assert f"run/{name}: this is a named pipe" in ended.output
    assert "bug in graphrag-eval-lc" not in ended.output


@pytest.mark.parametrize("kind", ["a named pipe", "a socket", "a device", "a file of the system", "not a path"])
@pytest.mark.parametrize("arguments", [("score", "run"), ("merge", "run", "--output", "m"), READING["draft"][0], RUN])
def test_dataset_of_run_json_is_opened_only_if_it_is_a_file(
    work: Path, command: Callable[..., Ended], arguments: tuple[str, ...], kind: str
) -> None:
    places = {"a device": "/dev/zero", "a file of the system": "/proc/self/status", "not a path": 5}
    named: object = places.get(kind, "odd")
    if kind == "a named pipe":
        os.mkfifo(work / "odd")
    elif kind == "a socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("odd")  # next to the run, since socket paths must be short
    run = json.loads((work / "run" / "run.json").read_text())
    run["dataset"]["path"] = named
    (work / "run" / "run.json").write_text(json.dumps(run))
    ended = command(*arguments)
    if arguments == RUN:  # an explicit dataset
        assert ended.code == 0, ended.output
    else:
        assert ended.code == 2, ended.output
        assert ended.output.count("\n") == 1
        assert f"run/run.json: run.json names {named} as the dataset of the run, which is {kind}" in ended.output


def test_pipe_from_the_user_is_read_and_an_endless_device_is_not(work: Path, command: Callable[..., Ended]) -> None:
    os.mkfifo(work / "pipe")
    with ThreadPoolExecutor(1) as writer:
        writing = writer.submit((work / "pipe").write_text, _DATASET)
        assert command("validate", "pipe").code == 0
        writing.result()
    ended = command("validate", "/dev/zero")
    assert (ended.code, "/dev/zero: the reference dataset cannot be read (it is a device" in ended.output) == (2, True)


def test_links_to_the_folder_and_above_it_are_followed(work: Path, command: Callable[..., Ended]) -> None:
    (work / "run").rename(work / "real")
    (work / "run").symlink_to("real")
    for arguments in (("score", "run"), ("report", "run"), ("compare", "other", "run")):
        ended = command(*arguments)
        assert ended.code == 0, ended.output


def test_link_in_a_folder_without_a_run_is_rejected_before_the_agent_is_called(
    work: Path, command: Callable[..., Ended]
) -> None:
    (work / "agent.py").write_text("def agent(question):\n    open('asked', 'w')\n    return 'x'\n")
    shutil.rmtree(work / "run")
    (work / "run").mkdir()
    (work / "run" / "aggregates.yaml").symlink_to(work.parent / "victim")
    ended = command(*RUN)
    assert ended.code == 2
    assert "run/aggregates.yaml: this is a symbolic link" in ended.output
    assert not (work / "asked").exists()
