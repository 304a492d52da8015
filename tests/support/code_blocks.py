"""The code blocks of a Markdown page, run one after the other as a reader would.

A block whose first line is a comment with a file name is written to that file. Other Python blocks share one namespace.
In a console block, text after ``$`` is a command and the rest is its output; a line ``…`` matches any lines. ``<!-- not
run: why -->`` above a block skips it, ``<!-- exit code 1 -->`` states the expected exit code.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.forked_commands import run_forked

_BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^>]*) -->\n+)?^```(?P<language>[a-z]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_FILE = re.compile(r"(?:#|//|<!--) (?P<name>[\w./-]+\.(?:py|yaml|yml|json|jsonl|toml|tsv|ttl|md|txt))(?: -->)?\n")
_EXIT_CODE = re.compile(r"exit code (\d+)")
_SETUP = "pip install", "git clone", "make ", "uv ", "npm "
_LONGEST_SEC = 120.0
_COMMANDS = Path(sys.executable).parent
_SHELL = set("|&;<>$`*?~(){}#")
_LIBRARIES = ("graphrag_eval_lc.cli.main", "langchain.agents", "langchain_openai", "langgraph.graph", "rdflib")


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A code block.

    Attributes:
        language: Such as ``python``.
        text: Its content.
        line: Its first line, counted from 1.
        mark: The comment above it, or an empty string.
    """

    language: str
    text: str
    line: int
    mark: str

    @property
    def is_run(self) -> bool:
        """Whether the block is executed or written to a file."""
        return not self.mark.startswith("not run")

    @property
    def file(self) -> str | None:
        """The name of the file that the block defines."""
        found = _FILE.match(self.text)
        return found["name"] if found is not None and self.language != "console" else None

    @property
    def exit_code(self) -> int:
        """The expected exit code of the last command."""
        found = _EXIT_CODE.search(self.mark)
        return int(found[1]) if found is not None else 0


def code_blocks(page: Path) -> list[CodeBlock]:
    text = page.read_text(encoding="utf-8")
    return [
        CodeBlock(each["language"], each["text"], text.count("\n", 0, each.start("text")), each["mark"] or "")
        for each in _BLOCK.finditer(text)
    ]


def write_files(page: Path) -> None:
    """Write the page's files into the current folder. If several have the same name, the last one wins."""
    for block in code_blocks(page):
        if block.file is not None and block.is_run:
            _write(block)


def run_blocks(page: Path, commands: Path = _COMMANDS) -> int:
    """Run a page's blocks in the current folder and return how many were run.

    Args:
        page: The page.
        commands: The folder with the environment's commands.

    Raises:
        AssertionError: A block fails, or its output differs from the page.
    """
    names: dict[str, Any] = {"__name__": "page"}
    count = 0
    for block in code_blocks(page):
        if not block.is_run:
            continue
        if block.file is not None:
            _write(block)
            count += 1
        elif block.language == "python":
            _run_python(block, page, names)
            count += 1
        elif block.language == "console":
            count += _run_console(block, page, commands)
    return count


def _write(block: CodeBlock) -> None:
    path = Path(str(block.file))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.text, encoding="utf-8")
    sys.modules.pop(path.stem, None)


def _run_python(block: CodeBlock, page: Path, names: dict[str, Any]) -> None:
    source = block.text
    if source.startswith(">>> "):
        source = "\n".join(line[4:] for line in source.splitlines() if line.startswith((">>> ", "... ")))
    # As in a notebook, allow top-level await.
    code = compile("\n" * block.line + source, str(page), "exec", flags=0x2000)
    result = eval(code, names)
    if result is not None:
        import asyncio

        asyncio.run(result)


def _run_console(block: CodeBlock, page: Path, folder: Path) -> int:
    commands = list(_commands(block.text))
    for number, (command, printed) in enumerate(commands):
        if command.startswith(_SETUP):
            continue
        environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "COLUMNS": "140"}
        if command.startswith("graphrag-eval-lc ") and folder == _COMMANDS and not _SHELL.intersection(command):
            arguments = shlex.split(command)[1:]
            done = run_forked("graphrag_eval_lc", arguments, libraries=_LIBRARIES, environment=environment)
        else:
            done = subprocess.run(
                ["bash", "-c", command],
                capture_output=True,
                text=True,
                env=environment,
                stdin=subprocess.DEVNULL,
                timeout=_LONGEST_SEC,
            )
        expected = block.exit_code if number == len(commands) - 1 else 0
        where = f"{page}:{block.line}: $ {command}"
        assert done.returncode == expected, f"{where}\nexit code {done.returncode}\n{done.stdout}{done.stderr}"
        missing = _missing(printed, done.stdout + done.stderr)
        assert not missing, f"{where}\nnot printed: {missing}\nbut:\n{done.stdout}{done.stderr}"
    return len(commands)


def _commands(text: str) -> Iterator[tuple[str, list[str]]]:
    command = ""
    printed: list[str] = []
    for line in text.splitlines():
        if command.endswith("\\") and not printed:
            command = f"{command[:-1]}{line.strip()}"
        elif line.startswith("$ "):
            if command:
                yield command, printed
            command, printed = line[2:], []
        else:
            printed.append(line)
    if command:
        yield command, printed


def _missing(printed: list[str], actual: str) -> list[str]:
    """Return the expected lines that were not printed, ignoring numbers, ids and line breaks."""
    words = set(_plain(actual).split())
    return [line for line in printed if not words.issuperset(_plain(line.replace("…", " ")).split())]


def _plain(line: str) -> str:
    line = re.sub(r"[0-9a-f-]{8,}…?", "#", line)
    return re.sub(r"[─━┃│┼╇]+|\s+", " ", re.sub(r"\d+([.,:T-]\d+)*", "#", line)).strip()
