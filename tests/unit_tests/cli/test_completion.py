"""Shell completion of commands, options and some values, in a real bash."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.terminals import open_terminal, read_all

COMMAND = "graphrag-eval-lc"


def completed(*words: str) -> list[str]:
    """Return bash's completions for the last word of a line."""
    environment = {
        **os.environ,
        "COMP_WORDS": " ".join((COMMAND, *words)),
        "COMP_CWORD": str(len(words)),
        "_GRAPHRAG_EVAL_LC_COMPLETE": "complete_bash",
    }
    python = [sys.executable, "-m", "graphrag_eval_lc"]
    return subprocess.run(python, env=environment, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.full
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("dat",), ["dataset"]),
        (("dataset", "dr"), ["draft"]),
        (("run", "--max-c"), ["--max-cost", "--max-concurrency"]),
        (("run", "--sam"), ["--sample"]),  # also if the short help omits it
        (("run", "--help-a"), ["--help-all"]),
        (("judge", "agreement", "--metric", ""), ["answer_f1", "answer_recall"]),
        (("compare", "--metric", "answer_f"), ["answer_f1"]),
        (("score", "--measures", "P@5,nD"), ["P@5,nDCG"]),
    ],
)
def test_words_are_completed(words: tuple[str, ...], expected: list[str]) -> None:
    assert completed(*words) == expected


@pytest.mark.full
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_installed_completion_works_in_bash(tmp_path: Path) -> None:
    program = tmp_path / "bin" / COMMAND
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m graphrag_eval_lc "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "HOME": str(tmp_path), "PATH": path, "TERM": "dumb", "PS1": "$ "}
    # The trailing command keeps bash as the parent process, where the option looks up the shell's name.
    install = ["bash", "-c", f"{COMMAND} --install-completion; true"]
    done = subprocess.run(install, env=environment, capture_output=True, text=True, check=True)
    assert "bash completion installed" in done.stdout + done.stderr
    assert str(tmp_path) in (tmp_path / ".bashrc").read_text()

    primary, secondary = open_terminal()
    streams = {"stdin": secondary, "stdout": secondary, "stderr": secondary}
    bash = subprocess.Popen(["bash", "-i"], cwd=tmp_path, env=environment, start_new_session=True, **streams)
    os.close(secondary)
    for keys in (f"{COMMAND} validate --resp\t", "\x15exit\n"):  # a tab; then the line is cleared
        time.sleep(5)
        os.write(primary, keys.encode())
    written = read_all(primary)
    assert bash.wait(timeout=60) == 0
    assert "validate --responses " in written
