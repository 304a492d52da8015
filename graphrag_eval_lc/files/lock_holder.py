"""Who holds a lock: a process by host, number and start time, and whether it still lives."""

import json
import os
import socket
import sys
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
_START_FIELD = 19  # of /proc/PID/stat behind the name in brackets: clock ticks from the host's start


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that holds a lock.

    Attributes:
        pid: Its number.
        host: The name of its host.
        started: What tells it from a later process of the same number; None where the system does not tell.
        boot: The host's start that it belongs to; None likewise.
        machine: The host, and the part of it that has its own numbers of processes; None likewise.
        token: What no other holder has.
    """

    pid: int
    host: str
    started: str | None = None
    boot: str | None = None
    machine: str | None = None
    token: str = ""

    @classmethod
    def this(cls) -> "Holder":
        """Return this process, as the holder of one lock."""
        pid = os.getpid()
        return cls(pid, socket.gethostname(), _start_of(pid), _read(_BOOT_ID), _machine(), uuid.uuid4().hex)

    @classmethod
    def short(cls) -> "Holder":
        """Return this process, as messages tell of it."""
        return cls(os.getpid(), socket.gethostname())

    @classmethod
    def read(cls, text: str | bytes) -> "Holder | None":
        """Return the holder that a lock file tells of; None where it tells of none."""
        try:
            told: Any = json.loads(text)
            known = {name: told[name] for name in cls.__slots__ if told.get(name) is not None}
            holder = cls(**known)
        except (ValueError, TypeError, AttributeError):
            return None
        return holder if isinstance(holder.pid, int) and isinstance(holder.host, str) else None

    def as_bytes(self) -> bytes:
        """Return what a lock file tells of it."""
        return f"{json.dumps({key: value for key, value in asdict(self).items() if value})}\n".encode()

    def is_here(self) -> bool:
        """Return whether it is a process of this host, whose end can be seen from here."""
        return sys.platform != "win32" and (self.host, self.machine) == (socket.gethostname(), _machine())

    def is_dead(self) -> bool:
        """Return whether it surely has ended; of another host that is not known."""
        if not self.is_here():
            return False
        if self.boot is not None and self.boot != _read(_BOOT_ID):
            return True
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:  # it lives, and is another user's
            pass
        started = _start_of(self.pid)
        return None not in (started, self.started) and started != self.started

    def __str__(self) -> str:
        return f"pid {self.pid} on {self.host}"


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii").strip() or None
    except (OSError, ValueError):
        return None


def _machine() -> str | None:
    """Return the machine's id with the space of its process numbers, which a container has of its own."""
    known = next((text for path in _MACHINE_IDS if (text := _read(path)) is not None), None)
    try:
        space: str | None = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        space = None
    return None if known is None and space is None else f"{known} {space}"


def _start_of(pid: int) -> str | None:
    status = _read(Path(f"/proc/{pid}/stat"))
    try:
        return None if status is None else status.rpartition(")")[2].split()[_START_FIELD]
    except IndexError:
        return None
