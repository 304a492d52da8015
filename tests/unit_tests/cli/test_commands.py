"""What all commands share: a short help, `--help-all`, and options that exclude each other."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer

from graphrag_eval_lc.benchmark.option_fields import COMMON, Common
from graphrag_eval_lc.cli.commands import Command
from graphrag_eval_lc.cli.main import app

NAMES = [str(each.name or each.callback.__name__) for each in app.registered_commands if each.callback]  # type: ignore[attr-defined]
LONG = {"run": (17, 20), "score": (12, 14), "compare": (9, 13), "import-dataset": (8, 11), "judge-agreement": (9, 22)}


@pytest.fixture
def shown(
    exit_code: Callable[..., int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """Give what a command prints that ends well."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERMINAL_WIDTH", "100")

    def command(*arguments: str) -> str:
        assert exit_code(*arguments) == 0
        return capsys.readouterr().out

    return command


def option_lines(text: str) -> list[str]:
    """Return the lines of the panel of options, without those of defaults, of which old typers have more."""
    lines = text.partition("─ Options")[2].partition("╰─")[0].splitlines()[1:]
    return [line for line in lines if not line.strip("│ ").startswith(("[default", "[required"))]


def options_in(lines: list[str]) -> list[str]:
    return [line for line in lines if re.match("│ [* ]{0,3}--", line)]


@pytest.mark.parametrize(("command", "most"), LONG.items(), ids=LONG)
def test_help_shows_what_most_users_need(command: str, most: tuple[int, int], shown: Callable[..., str]) -> None:
    lines = option_lines(shown(command, "--help"))
    assert len(options_in(lines)) <= most[0]
    assert len(lines) <= most[1]


def test_help_of_run_says_how_many_options_more_there_are(shown: Callable[..., str]) -> None:
    short, full = shown("run", "--help"), shown("run", "--help-all")
    hidden = len(options_in(full.splitlines())) - len(options_in(short.splitlines()))
    assert f"Show all options, {hidden} more," in short
    assert "Which questions" in full
    assert "Which questions" not in short
    for option in ("--agent", "--output", "--config", "--limit", "--dry-run", "--quiet", "--max-cost", "--help-all"):
        assert option in short


@pytest.mark.parametrize("command", NAMES)
def test_every_command_has_help_all_and_it_lacks_nothing(command: str, shown: Callable[..., str]) -> None:
    short, full = shown(command, "--help"), shown(command, "--help-all")
    names = {line.lstrip("│ *").split()[0] for line in options_in(short.splitlines())}
    assert names <= {line.lstrip("│ *").split()[0] for line in options_in(full.splitlines())} | {"--help-all"}
    assert shown(command, "--help") == short  # the full help leaves nothing behind


def called(function: Any, *arguments: str) -> int:
    app = typer.Typer(add_completion=False)
    app.command(cls=Command)(function)
    with pytest.raises(SystemExit) as ending:
        app(arguments)
    assert isinstance(ending.value.code, int)
    return ending.value.code


def test_a_mark_shows_an_option_in_the_short_help_with_its_first_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    def ask(
        often: Annotated[int, typer.Option(help="How often. More is dearer."), COMMON] = 1,
        much: Annotated[int, typer.Option(help="How much of everything."), Common("How much.")] = 1,
        rarely: Annotated[int, typer.Option(help="How rarely.", rich_help_panel="Rare")] = 1,
    ) -> None:
        """Ask."""

    assert called(ask, "--help") == 0
    short = capsys.readouterr().out
    assert all(text in short for text in ("How often.", "How much.", "1 more"))
    assert not any(text in short for text in ("dearer", "everything", "rarely", "Rare"))
    assert called(ask, "--help-all") == 0
    full = capsys.readouterr().out
    assert all(
        text in full for text in ("How often. More is dearer.", "How much of everything.", "How rarely.", "Rare")
    )


def test_a_command_without_marks_shows_all(capsys: pytest.CaptureFixture[str]) -> None:
    def ask(often: Annotated[int, typer.Option(help="How often. More is dearer.")] = 1) -> None:
        """Ask."""

    assert called(ask, "--help") == 0
    text = capsys.readouterr().out
    assert "How often. More is dearer." in text
    assert "--help-all" not in text


# --- options that exclude each other ----------------------------------------------------------------------------------

RUN = ("run", "qa.yaml", "-a", "agent.py:sometimes", "-o", "run")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            (*RUN, "--overwrite", "--retry-errors"),
            "--overwrite and --retry-errors exclude each other: --overwrite repl",
        ),
        ((*RUN, "--force", "--overwrite"), "--overwrite and --force exclude each other"),
        ((*RUN, "--sample", "1", "--limit", "1"), "--limit and --sample exclude each other"),
        ((*RUN, "--seed", "0"), "--seed needs --sample: a seed selects nothing by itself."),
        ((*RUN, "--junit", "x", "--log-file", "./x"), "--junit and --log-file are the same file."),
        (("score", "qa.yaml", "responses.jsonl", "-o", "run", "--json", "--dry-run"), "--json and --dry-run exclude"),
        (("compare", "a", "b", "--html", "x", "--csv", "x"), "--html and --csv are the same file."),
    ],
)
def test_options_that_exclude_each_other_are_one_sentence_and_code_2(
    files: Path,
    exit_code: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    complaint: str,
) -> None:
    assert exit_code(*arguments) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert error.count("\n") == 1
    assert not (files / "run").exists()


def test_an_option_overrides_what_the_project_file_says_of_those_that_it_excludes(
    files: Path, exit_code: Callable[..., int]
) -> None:
    options = "agent: agent.py:sometimes, dataset: qa.yaml, sample: 1, seed: 3"
    (files / "graphrag_eval.yaml").write_text(f"run: {{{options}}}")
    assert exit_code("run", "--limit", "2", "-o", "first", "--no-report") == 0
    assert json.loads((files / "first/run.json").read_text())["selection"] == {"limit": 2}
    assert exit_code("run", "-o", "second", "--no-report") == 0
    assert json.loads((files / "second/run.json").read_text())["selection"] == {"sample": 1, "seed": 3}


def test_what_the_project_file_itself_excludes_is_refused(
    files: Path, exit_code: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "graphrag_eval.yaml").write_text("run: {agent: agent.py:sometimes, dataset: qa.yaml, sample: 1, limit: 1}")
    assert exit_code("run", "-o", "first") == 2
    assert "--limit and --sample exclude each other" in capsys.readouterr().err
