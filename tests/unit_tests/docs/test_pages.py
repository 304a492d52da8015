"""README and the documentation pages name only existing files and options, and README stays short."""

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
README = ROOT / "README.md"
EXTRAS = ROOT / "docs" / "start" / "install.md"
FOR_CONTRIBUTORS = [ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "ARCHITECTURE.md", "CHANGELOG.md")]
EXAMPLES = sorted((ROOT / "examples").rglob("*.md"))
PAGES = [README, *FOR_CONTRIBUTORS, *EXAMPLES, *sorted((ROOT / "docs").rglob("*.md"))]
MOST_LINES, LONGEST_LINE = 150, 120
OPTION = re.compile(r"`(?:[^`\n]* )?(--[a-z][a-z-]+)")
OF_EACH_COMMAND = {"--help", "--help-all", "--install-completion"}
OF_OTHER_PROGRAMS = {"--array", "--extra", "--header", "--junitxml", "--lf"}


def navigation(entry: Any) -> dict[Path, str]:
    """Return the pages of the site, each with its name in the sidebar."""
    found: dict[Path, str] = {}
    for part in entry:
        for name, inner in part.items():
            found |= {(ROOT / "docs" / inner).resolve(): name} if isinstance(inner, str) else navigation(inner)
    return found


SIDEBAR = navigation(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])
SITE = set(SIDEBAR)


def test_readme_stays_short() -> None:
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= MOST_LINES
    assert [line for line in lines if len(line) > LONGEST_LINE] == []


def test_files_named_in_pages_exist() -> None:
    pattern = r"`((?:graphrag_eval_lc|benchmarks|tests)/[\w./]+)`"
    named = {(name, page) for page in PAGES for name in re.findall(pattern, page.read_text(encoding="utf-8"))}
    assert {each for each in named if not (ROOT / each[0]).exists()} == set()


def test_link_targets_exist() -> None:
    missing = set()
    for page in PAGES:
        text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        linked = {target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target}
        paths = {(page.parent / target).resolve() for target in linked - {""}}
        missing |= {(page, path) for path in paths - SITE if not path.exists()}
    assert missing == set()


def test_options_named_in_pages_exist() -> None:
    reference = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    known = {*re.findall(r"--[a-z][a-z-]+", reference), *OF_EACH_COMMAND, *OF_OTHER_PROGRAMS}
    named = {(option, page.name) for page in PAGES for option in OPTION.findall(page.read_text(encoding="utf-8"))}
    assert {each for each in named if each[0] not in known and not each[0].startswith("--graphrag-")} == set()


def test_page_titles_match_the_sidebar() -> None:
    pages = {path: name for path, name in SIDEBAR.items() if path.exists() and path.parent.name != "api"}
    titles = {path: path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") for path in pages}
    assert {**titles, (ROOT / "docs/index.md").resolve(): "Home"} == pages


def test_install_page_says_what_each_extra_installs() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    rows = dict(re.findall(r"^\| `\[([\w-]+)\]` \|.*\| ([^|]+) \|$", EXTRAS.read_text(encoding="utf-8"), re.MULTILINE))
    assert rows.keys() == extras.keys()
    for name, needed in extras.items():
        description = rows[name].lower()
        included = {each for need in needed for each in re.findall(r"\[([\w,]+)\]", need)}
        assert {part for parts in included for part in parts.split(",") if f"[{part}]" not in description} == set(), (
            name
        )
        others = {re.match(r"[\w-]+", need)[0] for need in needed if not need.startswith("graphrag-eval-lc[")}
        assert {other for other in others if other not in description} == set(), name
