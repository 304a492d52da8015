"""The command line as a whole: help, exit codes, and errors without tracebacks."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag_eval_lc.cli import main
from graphrag_eval_lc.errors import DatasetError


@pytest.mark.parametrize("place", [0, 4])
def test_debug_shows_the_traceback_at_any_position(place: int) -> None:
    arguments = ["score", "absent.yaml", "responses.jsonl", "-o", "run"]
    arguments.insert(place, "--debug")
    with pytest.raises(DatasetError):
        main(arguments)


@pytest.mark.parametrize("arguments", [["score"], ["absent"], ["run", "qa.yaml"], ["run", "--absent"]])
def test_invalid_usage_exits_with_2(
    arguments: list[str], exit_code: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(*arguments) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        *((name, "Did you mean run?") for name in ("evaluate", "eval", "test", "Run", "rn", "benchmark")),
        ("compar", "Did you mean compare?"),
        ("validation", "Did you mean validate?"),
        ("trend", "Did you mean runs --trend?"),
        ("import", "Did you mean import-traces?"),
        ("xyzzy", "graphrag-eval-lc --help lists the commands."),
    ],
)
def test_unknown_command_suggests_the_nearest(
    exit_code: Callable[..., int], capsys: pytest.CaptureFixture[str], name: str, hint: str
) -> None:
    assert exit_code(name) == 2
    assert f"No such command '{name}'. {hint}" in " ".join(capsys.readouterr().err.replace("│", "").split())


def test_version(exit_code: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("--version") == 0
    assert capsys.readouterr().out.startswith("graphrag-eval-lc 0.")


@pytest.mark.full
def test_command_is_installed_and_help_loads_no_agent_framework() -> None:
    code = (
        "import sys, contextlib\nfrom graphrag_eval_lc.cli import main\n"
        "with contextlib.suppress(SystemExit): main(['run', '--help'])\n"
        "print('LOADED', *sys.modules)"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "langchain_core" not in output.partition("LOADED")[2].split()
    command = Path(sys.executable).with_name("graphrag-eval-lc")
    assert subprocess.run([command, "--version"], capture_output=True, check=False).returncode == 0


@pytest.mark.full
def test_task_that_ignores_cancellation_does_not_block_the_exit(files: Path) -> None:
    (files / "agent.py").write_text(
        "import asyncio\n"
        "async def stubborn(question):\n"
        "    while True:\n"
        "        try:\n"
        "            await asyncio.Event().wait()\n"
        "        except asyncio.CancelledError:\n"
        "            pass\n"
    )
    arguments = "run qa.yaml -a agent.py:stubborn -o run --limit 1 --timeout 0.2 --quiet"
    code = f"from graphrag_eval_lc.cli import main; main({arguments!r}.split())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 1
    assert "No question was answered" in done.stderr
    assert "Written to run: run.json" in done.stdout


@pytest.mark.full
def test_package_runs_with_python_m(files: Path) -> None:
    command = [sys.executable, "-m", "graphrag_eval_lc"]
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("graphrag-eval-lc 0.")
    wrong = subprocess.run([*command, "score", "absent.yaml", "r"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "Traceback" not in wrong.stderr
