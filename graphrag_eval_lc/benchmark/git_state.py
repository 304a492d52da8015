"""The commit of git from which a run is started, so that a score can be traced to the code that gave it."""

import os
import subprocess
from pathlib import Path
from typing import Any

_SECONDS = 5  # a network drive may take long, and a run does not wait for it
# What git tells its hooks: the repository and index of the commit that they belong to, relative to its top folder.
_OF_HOOKS = frozenset(
    ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY")
)


def git_state(folder: Path | None = None) -> dict[str, Any] | None:
    """Return the commit that is checked out in a folder: ``commit``, ``branch`` (where there is one) and ``clean``.

    ``clean`` is whether no file that git knows was changed; what it does not know, such as the folders of runs, says
    nothing. It is absent where git took too long to say.

    Args:
        folder: A folder in the work tree; None: the current one.

    Returns:
        None without git, and outside of a repository with a commit.

    Example:
        >>> state = git_state(Path("/"))
        >>> state is None or "commit" in state
        True
    """
    commit = _git(folder, "rev-parse", "--verify", "HEAD")
    if commit is None:
        return None
    branch = _git(folder, "symbolic-ref", "--quiet", "--short", "HEAD")
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return {
        "commit": commit,
        **({"branch": branch} if branch else {}),
        **({} if changes is None else {"clean": not changes}),
    }


def _git(folder: Path | None, *arguments: str) -> str | None:
    """Return what git says; None where it cannot say it."""
    # Nothing is asked of the user, and nothing is locked: an agent may be using git at the same time.
    inherited = {key: value for key, value in os.environ.items() if key not in _OF_HOOKS}
    environment = {**inherited, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        said = subprocess.run(
            ["git", *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return said.stdout.decode("utf-8", "replace").strip() if said.returncode == 0 else None
