"""Workflows of GitHub and GitLab that run a project's evaluation, and fail where its gates do."""

from pathlib import Path
from typing import Final, Literal

Service = Literal["github", "gitlab"]

_GITHUB_FILE: Final = Path(".github/workflows/evaluation.yml")
_GITLAB_FILE: Final = Path(".gitlab-ci.yml")
_GITLAB_BESIDE: Final = Path(".gitlab/evaluation.yml")

_GITHUB: Final = """\
# Asks the agent, scores it and checks the gates of graphrag_eval.yaml; a pull request is compared with the last run of
# main. The tables stand on the job's page.
name: Evaluation
on:
  pull_request:
  push:
    branches: [main]
permissions:
  contents: read
  actions: read
jobs:
  evaluate:
    runs-on: ubuntu-latest
    timeout-minutes: 60@defaults@
    steps:
      - uses: actions/checkout@v5
      - uses: actions/setup-python@v6
        with:
          python-version: "3.12"
      - run: @install@
      - name: Run and score
        env:
          OPENAI_API_KEY: ${{ secrets.OPENAI_API_KEY }}
        run: graphrag-eval-lc run --output runs/branch --label "$GITHUB_REF_NAME" --junit runs/branch/junit.xml
      - name: Fetch the last run of main
        if: ${{ !cancelled() && github.event_name == 'pull_request' }}
        env:
          GH_TOKEN: ${{ github.token }}
        run: |
          run=$(gh run list --workflow evaluation.yml --branch main --status success --limit 1 --json databaseId \\
            --jq '.[0].databaseId')
          if [ -n "$run" ]; then gh run download "$run" --name run --dir runs/main; fi
      - name: Compare with main
        if: ${{ !cancelled() && hashFiles('@prefix@runs/main/results.jsonl') != '' }}
        run: graphrag-eval-lc compare --baseline runs/main runs/branch --html runs/branch/comparison.html
      - uses: actions/upload-artifact@v6
        if: ${{ !cancelled() }}
        with:
          name: run
          path: @prefix@runs/branch
"""

_GITLAB: Final = """\
# Asks the agent, scores it and checks the gates of graphrag_eval.yaml. The merge request shows the questions that fail.
evaluate:
  image: python:3.12
  timeout: 1 hour
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
    - if: $CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH
  script:@enter@
    - @install@
    - graphrag-eval-lc run --output runs/branch --label "$CI_COMMIT_REF_NAME" --junit junit.xml --summary summary.md
  artifacts:
    when: always
    paths: [@prefix@runs/branch, @prefix@summary.md]
    reports:
      junit: @prefix@junit.xml
"""


def repository_of(folder: Path) -> Path:
    """Return the root of the Git repository that a folder stands in; the folder itself where it is in none."""
    folder = folder.resolve()
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)


def workflow(service: Service, folder: Path) -> tuple[Path, str, str]:
    """Return the file of a workflow, its text, and what is still to be done, which may be nothing.

    Args:
        service: Whose workflow it is.
        folder: The folder of the project, whose files say how the agent's packages are installed.

    Example:
        >>> path, text, _ = workflow("github", Path("."))
        >>> path.name, "graphrag-eval-lc run" in text
        ('evaluation.yml', True)
    """
    root = repository_of(folder)
    below = folder.resolve().relative_to(root).as_posix()
    prefix = "" if below == "." else f"{below}/"
    install = _install_line(folder, root, prefix)
    if service == "github":
        defaults = f"\n    defaults:\n      run:\n        working-directory: {below}" if prefix else ""
        text = _filled(_GITHUB, defaults=defaults, install=install, prefix=prefix)
        return root / _GITHUB_FILE, text, "Add the agent's keys to the repository's secrets, and to env of the workflow"
    enter = f"\n    - cd {below}" if prefix else ""
    text = _filled(_GITLAB, enter=enter, install=install, prefix=prefix)
    if (root / _GITLAB_FILE).exists():
        return root / _GITLAB_BESIDE, text, f"Add to {_GITLAB_FILE}: include: [{{local: {_GITLAB_BESIDE}}}]"
    return root / _GITLAB_FILE, text, "Add the agent's keys to the project's CI variables, masked"


def _filled(template: str, **parts: str) -> str:
    for name, text in parts.items():
        template = template.replace(f"@{name}@", text)
    return template


def _install_line(folder: Path, root: Path, prefix: str) -> str:
    """Return how the agent's packages and ours are installed, in the project's folder."""
    ours = "'graphrag-eval-lc[judges,report,stats]'"
    for where, up in ((folder, ""), (root, "../" * prefix.count("/"))):
        if (where / "requirements.txt").is_file():
            return f"pip install -r {up}requirements.txt {ours}"
        if (where / "pyproject.toml").is_file():
            return f"pip install {up or '.'} {ours}"
    return f"pip install {ours}"
