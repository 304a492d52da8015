"""What a worker on another machine keeps of its own until the driver has it: for a run whose driver was lost."""

import contextlib
import getpass
import os
import stat
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphrag_eval_lc.benchmark.attempts import repeat_of
from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.files.opening import make_folder
from graphrag_eval_lc.records import Response
from graphrag_eval_lc.run_folder import Journal
from graphrag_eval_lc.run_folder.journal import iter_responses

_FOLDER = "graphrag-eval-lc-workers"
_SUFFIX = ".jsonl"


class Spool:
    """The responses of one worker to one run, in a file of this machine that only its owner may read.

    Args:
        run_id: The run.

    Raises:
        RunFolderError: The folder cannot be made, or belongs to somebody else.
    """

    def __init__(self, run_id: str) -> None:
        folder = _folder(run_id)
        for each in (folder.parent, folder):
            make_folder(each, is_private=True)
            if not _is_own(each):
                raise RunFolderError("the folder belongs to somebody else", path=each, hint="Set TMPDIR to your own.")
        self._journal = Journal(folder / f"{uuid.uuid4().hex}{_SUFFIX}")

    def add(self, attempt_id: str, response: Response) -> None:
        """Keep a response; it is on the disk within 0.2 s."""
        self._journal.add({"question_id": response["question_id"], "repeat": repeat_of(attempt_id), **response})

    def close(self, *, is_confirmed: bool) -> None:
        """End it, and remove the file where the driver has all that is in it."""
        self._journal.close()
        if is_confirmed:
            self._journal.path.unlink(missing_ok=True)
            _remove_empty(self._journal.path.parent)


def left_behind(run_id: str) -> Iterator[dict[str, Any]]:
    """Take the responses that lost sessions of a run left on this machine; each file is taken once, and removed.

    Args:
        run_id: The run.
    """
    folder = _folder(run_id)
    if not (_is_own(folder.parent) and _is_own(folder)):  # what others put there is no answer of ours
        return
    for path in sorted(folder.glob(f"*{_SUFFIX}")):
        taken = path.with_suffix(f".{os.getpid()}")
        try:
            path.rename(taken)  # another process may be at it, too
        except FileNotFoundError:
            continue
        yield from iter_responses(taken)
        taken.unlink(missing_ok=True)
    _remove_empty(folder)


def _folder(run_id: str) -> Path:
    user = os.getuid() if hasattr(os, "getuid") else getpass.getuser()  # in a container a user may have no name
    return Path(tempfile.gettempdir(), f"{_FOLDER}-{user}", run_id)


def _is_own(folder: Path) -> bool:
    """Return whether a folder is there, is no link, and belongs to this user."""
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(found.st_mode) and (not hasattr(os, "getuid") or found.st_uid == os.getuid())


def _remove_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # another worker is still at work
        folder.rmdir()
