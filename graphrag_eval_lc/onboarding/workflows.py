"""Workflows of GitHub and GitLab that run a project's evaluation, and fail if its gates do."""

from pathlib import Path
from typing import Final, Literal

Service = Literal["github", "gitlab"]

_GITHUB_FILE: Final = Path(".github/workflows/evaluation.yml")
_GITLAB_FILE: Final = Path(".gitlab-ci.yml")
_GITLAB_BESIDE: Final = Path(".gitlab/evaluation.yml")

_TEMPLATES: Final = Path(__file__).parent / "workflow_templates"


def repository_of(folder: Path) -> Path:
    """Return the root of the Git repository that a folder is in; outside of a repository, the folder itself."""
    folder = folder.resolve()
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)


def workflow(service: Service, folder: Path) -> tuple[Path, str, str]:
    """Return the file of a workflow, its text, and what the user still has to do.

    Files in the project's folder say how the agent's packages are installed.
    """
    root = repository_of(folder)
    below = folder.resolve().relative_to(root).as_posix()
    prefix = "" if below == "." else f"{below}/"
    parts = {
        "defaults": f"\n    defaults:\n      run:\n        working-directory: {below}" if prefix else "",
        "enter": f"\n    - cd {below}" if prefix else "",
        "install": _install_line(folder, root, prefix),
        "prefix": prefix,
    }
    text = (_TEMPLATES / f"{service}.yml").read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace(f"@{name}@", part)
    if service == "github":
        return root / _GITHUB_FILE, text, "Add the agent's keys to the repository's secrets, and to env of the workflow"
    if (root / _GITLAB_FILE).exists():
        return root / _GITLAB_BESIDE, text, f"Add to {_GITLAB_FILE}: include: [{{local: {_GITLAB_BESIDE}}}]"
    return root / _GITLAB_FILE, text, "Add the agent's keys to the project's CI variables, masked"


def _install_line(folder: Path, root: Path, prefix: str) -> str:
    """Return how the agent's packages and ours are installed, in the project's folder."""
    ours = "'graphrag-eval-lc[judges,report,stats]'"
    for where, up in ((folder, ""), (root, "../" * prefix.count("/"))):
        if (where / "requirements.txt").is_file():
            return f"pip install -r {up}requirements.txt {ours}"
        if (where / "pyproject.toml").is_file():
            return f"pip install {up or '.'} {ours}"
    return f"pip install {ours}"
