"""How commands print (without control sequences, secrets masked, as JSON), and their exit codes."""

import shlex
import shutil
import sys
import textwrap
from pathlib import Path
from typing import Any, Final

from graphrag_eval_lc.console import DataConsole
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.texts import visible, visible_json, without_commands

EXIT_FINDINGS = 1
EXIT_ERROR = 2
EXIT_NOTHING = 3
EXIT_INTERRUPTED = 130
# Exit codes by the signal that ended the run; without one of these signals it was Ctrl-C.
EXITS_BY_SIGNAL: Final = {"SIGHUP": 129, "SIGTERM": 143}

_PROGRAM: Final = "graphrag-eval-lc"
# The width if the output is not a terminal; rich would wrap tables at 80 columns.
_PLAIN_WIDTH = 140


def output_console(plain_width: int = _PLAIN_WIDTH) -> DataConsole:
    """Return the console of standard output; ``plain_width`` is its width if that is not a terminal."""
    return DataConsole() if sys.stdout.isatty() else DataConsole(width=plain_width)


def say(text: str, *, err: bool = False, keeps_lines: bool = True, wraps: bool = False) -> None:
    """Print a text that may contain data, without control sequences and without commands of CI systems.

    With ``wraps``, a terminal gets lines that end between words; long words such as paths stay whole.
    """
    stream = sys.stderr if err else sys.stdout
    if stream is not None:  # a program without a console has no stream
        shown = visible(text, keeps_lines=keeps_lines)
        if wraps and stream.isatty():
            width = shutil.get_terminal_size().columns
            lines = (
                textwrap.fill(each, width, break_long_words=False, break_on_hyphens=False) for each in shown.split("\n")
            )
            shown = "\n".join(lines)
        stream.write(f"{without_commands(shown)}\n")
        stream.flush()


def echo_err(text: str) -> None:
    """Print a message to standard error, with secrets masked."""
    say(masked_text(text), err=True)


def print_json(value: Any) -> None:
    """Print a value as JSON; control and invisible characters, and those that cannot be encoded, are escaped."""
    text = json_text(value, indent=2)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    can_print = text.encode(encoding, "replace").decode(encoding) == text
    say(visible_json(text, only_ascii=not can_print))


def command_line(*arguments: str) -> str:
    """Return a command that users can copy, with the program's path if the shell would not find it by name."""
    called = Path(sys.argv[0])
    program = [_PROGRAM]
    if shutil.which(_PROGRAM) is None and called.name == _PROGRAM:
        program = [str(called)]
    elif shutil.which(_PROGRAM) is None and (called.parent.name, called.name) == ("graphrag_eval_lc", "__main__.py"):
        program = [sys.executable, "-m", "graphrag_eval_lc"]
    return shlex.join([*program, *arguments])
