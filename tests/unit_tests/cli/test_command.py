"""Features of all commands: their listing, and their short and full help."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import typer

from graphrag_eval_lc.cli.main import _COMMANDS, Commands, _add

Output = pytest.CaptureFixture[str]
LISTED = {names: sentence for found in _COMMANDS.values() for names, (_, sentence) in found.items()}


@pytest.fixture
def shown(exit_code: Callable[..., int], capsys: Output, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Return the output of a successful command at 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")

    def command(*arguments: str) -> str:
        assert exit_code(*arguments) == 0
        return capsys.readouterr().out

    return command


def options_in(text: str) -> set[str]:
    """Return the options listed in a help text."""
    return set(re.findall(r"^│ [* ]{0,3}(--[a-z-]+)", text, re.MULTILINE))


def test_help_lists_the_commands_in_panels_in_the_order_of_work(shown: Callable[..., str]) -> None:
    text = shown("--help")
    panels = {lines[0].strip("─╮ "): lines[1:] for lines in (each.splitlines() for each in text.split("╭─ ")[2:])}
    listed = {name: re.findall(r"^│ ([a-z][a-z-]+) ", "\n".join(lines), re.MULTILINE) for name, lines in panels.items()}
    assert listed == {
        "Start": ["demo", "init", "doctor"],
        "Run": ["run", "score", "merge"],
        "Inspect": ["report", "compare", "runs", "publish", "mcp"],
        "Data": ["validate", "dataset", "proxy", "import-traces", "migrate"],
        "Judge": ["judge"],
    }
    assert "Exit codes: 0 success" in text
    assert "143 by SIGTERM" in text.replace("\n ", "")


@pytest.mark.parametrize("names", LISTED)
def test_command_help_has_its_listed_sentence_and_one_example(names: str, shown: Callable[..., str]) -> None:
    text = shown(*names.split(), "--help")
    # The oldest supported typer joins the lines of a help text, so the example may be wrapped at the terminal's width.
    words = " ".join(text.split())
    assert re.search(rf"\[?OPTIONS\]?.*? {re.escape(LISTED[names])} ", words)
    assert words.count(f"graphrag-eval-lc {names} ") == 2  # the usage and the example
    assert max(map(len, text.splitlines())) <= 80
    assert not re.search(r"--[a-z,-]*…", text)
    full = shown(*names.split(), "--help-all") if "--help-all" in text else text
    assert options_in(text) <= options_in(full)
    assert shown(*names.split(), "--help") == text  # the full help has no lasting effect


def test_help_of_run_lists_the_ten_most_used_options_and_counts_the_rest(shown: Callable[..., str]) -> None:
    short, full = shown("run", "--help"), shown("run", "--help-all")
    most_used = [
        "agent",
        "output",
        "config",
        "fail-under",
        "dry-run",
        "template",
        "limit",
        "max-concurrency",
        "repeats",
        "max-cost",
    ]
    assert options_in(short) == {f"--{name}" for name in (*most_used, "help", "help-all")}
    assert (
        f"Show every option in full, including {len(options_in(full) - options_in(short))} less common ones."
        in " ".join(short.replace("│", " ").split())
    )
    assert "Which questions" in full
    assert "Which questions" not in short
    assert options_in(full.partition("─ Which questions")[0]) == options_in(short)


@pytest.mark.parametrize("command", [(), ("compare",), ("score",), ("dataset", "import"), ("judge", "agreement")])
def test_help_fits_on_a_screen(command: tuple[str, ...], shown: Callable[..., str]) -> None:
    assert len(shown(*command, "--help").splitlines()) <= 75


def test_graphrag_eval_alias_is_the_same_command(shown: Callable[..., str]) -> None:
    assert options_in(shown("answer-correctness", "--help")) == options_in(shown("judge", "answers", "--help"))


def test_command_loads_its_function_when_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    app = typer.Typer(cls=Commands, add_completion=False)
    _add(app, "absent", "absent_module:absent", "Nothing.")
    _add(app, "runs", "runs:runs", "List.")
    group: Any = typer.main.get_command(app)
    assert group.commands["runs"].params == []
    group.commands["runs"].load()
    assert "folder" in [each.name for each in group.commands["runs"].params]
    with pytest.raises(ModuleNotFoundError):
        group.commands["absent"].load()
