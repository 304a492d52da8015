import errno
import os

import pytest

from graphrag_eval_lc.errors import cannot_write


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.ENOSPC, "Free space on this disk (or raise the limit), then run again: what is written so far is kept."),
        (errno.EROFS, "Give a folder that you may write to."),
        (errno.ENOTDIR, "A file stands where a folder is needed: move it away, or give another folder."),
        (errno.EIO, "Check the disk, then run again: what is written so far is kept."),
    ],
)
def test_each_refusal_of_the_system_has_its_hint(number: int, hint: str) -> None:
    problem = cannot_write("run/run.json", OSError(number, os.strerror(number)))
    assert str(problem) == f"run/run.json: cannot be written ({os.strerror(number)}). {hint}"
