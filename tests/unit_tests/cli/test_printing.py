"""Output of commands: text on either stream with masked secrets, and commands to copy."""

import sys
from pathlib import Path

import pytest

from graphrag_eval_lc.cli.printing import command_line, echo_err, say


def test_messages_are_text_on_either_stream(capsys: pytest.CaptureFixture[str]) -> None:
    say("urn:a:x [red] :smile: \x1b[2J\x9b")
    say("one\nline", keeps_lines=False)
    echo_err("Error: \x1b]0;t\x07 password=hunter22")
    output = capsys.readouterr()
    assert output.out == "urn:a:x [red] :smile: ␛[2J⟨U+009B⟩\none␊line\n"
    assert output.err == "Error: ␛]0;t␇ password=***\n"


@pytest.mark.parametrize(
    ("called", "expected"),
    [
        (".venv/bin/graphrag-eval-lc", ".venv/bin/graphrag-eval-lc report 'a b'"),
        ("/x/graphrag_eval_lc/__main__.py", f"{sys.executable} -m graphrag_eval_lc report 'a b'"),
        ("/x/pytest/__main__.py", "graphrag-eval-lc report 'a b'"),
    ],
)
def test_shown_command_works_in_the_users_shell(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, called: str, expected: str
) -> None:
    monkeypatch.setattr("sys.argv", [called, "run"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert command_line("report", "a b") == expected
    (tmp_path / "graphrag-eval-lc").write_text("#!/bin/sh\n")
    (tmp_path / "graphrag-eval-lc").chmod(0o755)
    assert command_line("report", "a b") == "graphrag-eval-lc report 'a b'"


def test_program_without_streams_prints_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)
    monkeypatch.setattr("sys.stderr", None)
    say("nobody reads it")
    echo_err("nor this")
