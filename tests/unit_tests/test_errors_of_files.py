import errno
import os

import pytest

from graphrag_eval_lc.errors import cannot_make, cannot_write


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.ENOSPC, "Free space on this disk (or raise the limit), then run again: what is written so far is kept."),
        (errno.EROFS, "This disk is read-only: choose a folder on another one."),
        (errno.EACCES, "Choose a folder that you may write to."),
        (errno.ENAMETOOLONG, "Use a shorter path."),
        (errno.ELOOP, "Links lead in a circle here: fix them, or choose another folder."),
        (
            errno.EMFILE,
            "Too many files are open: close some or raise the limit (ulimit -n), then run again: what is written so "
            "far is kept.",
        ),
        (errno.ENOTDIR, "A file of this name exists, and a folder is needed: move it away, or choose another folder."),
        (errno.EIO, "Check the disk, then run again: what is written so far is kept."),
    ],
)
def test_each_os_error_has_its_hint(number: int, hint: str) -> None:
    problem = cannot_write("run/run.json", OSError(number, os.strerror(number)))
    assert str(problem) == f"run/run.json: cannot be written ({os.strerror(number)}). {hint}"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EMFILE])
def test_hint_does_not_mention_saved_results_before_the_run_starts(number: int) -> None:
    assert str(cannot_make("run", OSError(number, os.strerror(number)))).endswith(", then run again.")
