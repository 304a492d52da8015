"""The files for contributors and releases agree with the package."""

import re
from pathlib import Path

import pytest
import yaml

from graphrag_eval_lc import __version__

ROOT = Path(__file__).parents[2]
YAML_FILES = [*sorted(ROOT.glob(".github/**/*.yml")), ROOT / ".pre-commit-config.yaml", ROOT / "CITATION.cff"]


@pytest.mark.parametrize("path", YAML_FILES, ids=lambda path: path.name)
def test_yaml_is_valid(path: Path) -> None:
    assert yaml.safe_load(path.read_text(encoding="utf-8"))


def test_version_agrees_with_citation_and_changelog() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    versions = re.findall(r"^## \[([^\]]+)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert (citation["version"], versions[0]) == (__version__, __version__)


def test_first_release_changelog_is_one_page() -> None:
    assert len((ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()) < 100


def test_release_builds_checks_attests_and_publishes_in_order() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))
    steps = [step.get("run") or step.get("uses") for job in workflow["jobs"].values() for step in job["steps"]]
    wanted = ("make release-check", "-m build", "attest-build-provenance", "gh-action-pypi-publish")
    places = [next(place for place, step in enumerate(steps) if part in step) for part in wanted]
    assert places == sorted(places)
    assert workflow["jobs"]["publish"]["needs"] == "build"


def test_pre_commit_hooks_match_the_make_targets() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][0]["hooks"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    tools = {hook["entry"].split()[0].rpartition("/")[2] for hook in hooks}
    assert tools == {"ruff", "lint-imports", "mypy"}
    assert all(f"$(BIN)/{tool}" in makefile for tool in tools)
