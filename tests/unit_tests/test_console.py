"""What the console writes to a real terminal. No other code prints."""

import io
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from support.terminals import PAYLOADS, commands_in, marked, open_terminal, plain, read_all, shown

from graphrag_eval_lc.benchmark.progress import PlainLines, UnfailingStream
from graphrag_eval_lc.cli.printing import say
from graphrag_eval_lc.console import DataConsole, data_text
from graphrag_eval_lc.report.markdown_summary import md_code, md_text

PACKAGE = Path(__file__).parents[2] / "graphrag_eval_lc"


def written(*renderables: RenderableType, columns: int = 1_000) -> str:
    """Return the output on a terminal."""
    primary, secondary = open_terminal(columns)
    with ThreadPoolExecutor(1) as reader, os.fdopen(secondary, "w", encoding="utf-8") as file:
        reading = reader.submit(read_all, primary)
        DataConsole(file=file, width=columns, color_system="256").print(*renderables, style="bold")
        file.close()
        return reading.result()


def table_of(cell: RenderableType, title: str) -> Table:
    table = Table(title=title, caption=title)
    table.add_column(title)
    table.add_row(cell)
    return table


def test_data_is_written_as_text_everywhere() -> None:
    for number, payload in enumerate(PAYLOADS):
        text = marked(number, payload)
        cell = data_text(text)
        output = written(Group(text, cell, table_of(cell, text), Panel(text, title=cell)), text)
        assert commands_in(output) == [], payload
        assert plain(output).count(shown(number, payload)) >= (3 if "\n" in payload else 6), payload


def test_unescaped_texts_are_escaped_on_output() -> None:
    for payload in PAYLOADS:
        assert commands_in(written(Text(payload), table_of(Text(payload), payload))) == [], payload


@given(st.text())
def test_no_text_contains_a_terminal_command(text: str) -> None:
    file = io.StringIO()
    DataConsole(file=file, width=50).print(text, data_text(text), Text(text))
    assert commands_in(file.getvalue()) == []
    file.getvalue().encode()


@pytest.mark.parametrize(
    "payload",
    [
        "::error::x",
        "::set-output name=a::b",
        "\u00a0 ::stop-commands::x",
        "x##[error]y",
        "##vso[task.x]",
        "##teamcity[x]",
    ],
)
def test_no_line_contains_a_ci_command(payload: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = io.StringIO()
    for width in (12, 80):
        table = Table(show_edge=False)
        for heading in ("template", "n"):
            table.add_column(data_text(heading), overflow="fold")
        table.add_row(*map(data_text, (payload, "1")))
        DataConsole(file=file, width=width).print(table, data_text(payload))
    say(payload)
    with PlainLines(UnfailingStream(sys.stdout)) as lines:
        lines.report(payload)
    lines = [*file.getvalue().splitlines(), *capsys.readouterr().out.splitlines(), md_text(payload), md_code(payload)]
    for line in lines:
        assert not line.lstrip().startswith("::")
        assert not re.search(r"##(\[|vso|teamcity)", line)


def test_own_styles_reach_the_terminal() -> None:
    assert "\x1b[1;31mwarning\x1b[0m" in written(Text("warning", "red"))


def test_cell_text_is_one_line_unless_lines_are_kept() -> None:
    assert data_text("a\nb\tc").plain == "a␊b␉c"
    assert data_text("a\nb", keeps_lines=True).plain == "a\nb"


@pytest.mark.parametrize("text", ["urn:a:x", "[red]x[/red]", "[/]", ":smile:", "[link=https://evil.example]x[/link]"])
def test_cell_text_is_not_interpreted_as_markup(text: str) -> None:
    file = io.StringIO()
    Console(file=file, width=80).print(data_text(text))
    assert file.getvalue() == f"{text}\n"


# --- no other code prints ---

# The functions that print, and the one file that may call them.
_ONLY_IN = (
    (re.compile(r"(?<![\w.])Console\(|\bimport [^\n]*\bConsole\b"), "console.py"),
    (re.compile(r"(?<![\w.])print\("), None),
    (re.compile(r"\b(?:typer|click)\.s?echo\(|\btyper\.secho\("), None),
    (re.compile(r"\brich\.markup\b|\bfrom rich import\b|\bfrom_markup\b"), None),
    (re.compile(r"sys\.(?:__)?std(?:out|err)(?:__)?\.(?:buffer\.)?write|(?<!\w)stream\.write\(f"), "cli/printing.py"),
    (re.compile(r"\bwarnings\.warn\("), "errors.py"),
    (
        re.compile(r"\b_?log(?:ger)?\.(?:debug|info|warning|error|critical|exception|log)\((?![^)]*visible\()"),
        None,
    ),
    (re.compile(r"\blogging\.(?:debug|info|warning|error|critical|exception|log)\("), None),
    (re.compile(r"terminalreporter\.write\w*\((?!visible\()"), None),
)


def printed_in(code: str, name: str) -> list[str]:
    """Return the calls that print other than through the console; docstring examples do not count."""
    kept = "\n".join(line for line in code.splitlines() if not line.lstrip().startswith((">>>", "...")))
    return [found[0] for pattern, only in _ONLY_IN if name != only for found in pattern.finditer(kept)]


def test_only_the_console_prints() -> None:
    names = {path: path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")}
    printed = {name: printed_in(path.read_text(encoding="utf-8"), name) for path, name in names.items()}
    assert {name: found for name, found in printed.items() if found} == {}


@pytest.mark.parametrize(
    "code",
    [
        "from rich.console import Console, Group",
        "Console(stderr=True).print(text)",
        "print(text)",
        "typer.echo(text)",
        "click.secho(text)",
        "sys.stderr.write(text)",
        "warnings.warn(text, GraphRAGEvalWarning, stacklevel=2)",
        '_log.warning("%s", text)',
        "logging.error(text)",
        "terminalreporter.write_line(text)",
        "from rich.markup import escape",
    ],
)
def test_other_ways_to_print_are_detected(code: str) -> None:
    assert printed_in(code, "cli/run.py") != []
