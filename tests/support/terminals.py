"""A pseudo-terminal for commands, terminal control sequences, and what reached the terminal."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

from graphrag_eval_lc.texts import visible
from support.forked_commands import COMMAND_LIBRARIES, ForkedProcess

PAYLOADS = (
    "\x1b[2J",  # clears the screen
    "\x1b[3J",  # clears the scrollback
    "\x1bc",  # resets the terminal
    "\x1b[!p",  # soft reset
    "\x1b]0;title\x07",  # sets the title
    "\x1b]2;title\x1b\\",
    "\x1b]52;c;cm0gLXJmIC8=\x07",  # writes the clipboard
    "\x1b]8;;https://evil.example/\x1b\\click\x1b]8;;\x1b\\",  # a link
    "\x1b]4;1;rgb:00/00/00\x07",  # changes a colour
    "\x1b]1337;File=inline=1:AAAA\x07",  # an image of iTerm2
    "\x1bP+q544e\x1b\\",  # DCS: asks for a capability
    "\x1bPq#0;2;0;0;0~\x1b\\",  # Sixel
    "\x1b_Ga=T;AAAA\x1b\\",  # APC: an image of kitty
    "\x1b^private\x1b\\",  # PM
    "\x1bXstart of string\x1b\\",  # SOS
    "\x1b[7A",  # moves up
    "\x1b[1;1H",  # home
    "\x1b[6n",  # asks for the cursor position, answered as typed input
    "\x1b[c",  # asks for the device type
    "\x1b[21t",  # reports the title as typed input
    "\x1b[?1049h",  # alternate screen
    "\x1b[?2004h",  # bracketed paste
    "\x1b[?25l",  # hides the cursor
    "\x1b[?1000h",  # reports mouse events
    "\x1b[8mhidden\x1b[28m",  # concealed text
    "\x1b[5m\x1b[41m",  # blinks
    "\x1b(0lqqk\x1b(B",  # line-drawing characters
    "\x9b2J",  # one-character CSI
    "\x9d0;title\x9c",  # one-character OSC
    "\x90q\x9c",  # one-character DCS
    "\x07",  # bell
    "bad\b\b\bgood",  # overwrites
    "failed\rpassed",
    "line\x0bdown\x0cpage",
    "\x0e\x0f\x00\x7f\x05",  # other character sets, null, delete, enquiry
    "\u202egnp.exe\u202c",  # bidirectional override
    "\u2066\u2067\u2068isolated\u2069\u200e\u200f\u061c",
    "two\u2028lines\u2029paragraph\x85next",
    "hid\u200bden\u2060\ufeff\u00ad",  # zero width
    "tag\U000e0041\U000e007f",
    "[red]red[/red]",  # rich markup
    "[link=https://evil.example]x[/link]",
    "[/] [bold",
    "urn:a:x :smile: :a:",  # rich emoji codes
    "[/urn:x] \\[ok]",
)

# Written by rich itself: styles, and the cursor moves that redraw its progress bar.
_STYLE = r"(?:[0-3]|3[0-7]|9[0-7]|38;5;\d+)"
_OWN = re.compile(rf"\x1b\[{_STYLE}(?:;{_STYLE})*m|(?:\r(?:\x1b\[1A)?\x1b\[2K(?:\x1b\[1A\x1b\[2K)*)+\r?|(?m:^)\r")
_COMMANDS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)


def marked(number: int, payload: str) -> str:
    """Return a payload between marks that make it easy to find."""
    return f"P{number:02}{payload}Q{number:02}"


def shown(number: int, payload: str) -> str:
    """Return the payload as one line of a terminal shows it."""
    return visible(marked(number, payload), keeps_lines=False)


def open_terminal(columns: int = 10_000) -> tuple[int, int]:
    """Open a raw pseudo-terminal (newlines stay as written) and return both ends."""
    primary, secondary = pty.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    settings = termios.tcgetattr(secondary)
    settings[1] &= ~termios.OPOST
    termios.tcsetattr(secondary, termios.TCSANOW, settings)
    return primary, secondary


def on_terminal(
    arguments: Sequence[str], folder: Path, *, columns: int = 10_000, environment: dict[str, str] | None = None
) -> tuple[int, str]:
    """Run Python on its own terminal. Return the exit code and everything written to the terminal."""
    primary, secondary = open_terminal(columns)
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR", "CI")}
    variables = {**kept, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", **(environment or {})}
    process: subprocess.Popen[bytes] | ForkedProcess
    if arguments[0] == "-c" and environment is None:
        process = ForkedProcess(
            None,
            arguments[2:],
            code=arguments[1],
            libraries=COMMAND_LIBRARIES,
            environment=variables,
            folder=folder,
            terminal=secondary,
        )
    else:
        command = [sys.executable, *arguments]
        process = subprocess.Popen(
            command, cwd=folder, stdin=secondary, stdout=secondary, stderr=secondary, env=variables
        )
    os.close(secondary)
    written = read_all(primary)
    return process.wait(timeout=60), written


def read_all(primary: int) -> str:
    """Return everything written to a terminal until it is closed."""
    written = bytearray()
    while part := _read(primary):
        written += part
    os.close(primary)
    return written.decode("utf-8", "replace")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # the other end is closed everywhere
        return b""


def plain(written: str) -> str:
    """Return the output without our styles and cursor moves."""
    return _OWN.sub("", written)


def commands_in(written: str) -> list[str]:
    """Return all control, bidirectional and invisible characters in the output, apart from our own."""
    return _COMMANDS.findall(plain(written))
