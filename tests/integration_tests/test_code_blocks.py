"""What the pages tell to type is typed, block after block; what they say is printed is printed.

A page that uses the files of the first project begins with them. Where a page asks a judge, a stand-in answers.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from code_blocks import code_blocks, run_blocks, write_files

from graphrag_eval_lc.demo.stub_judge import StubJudge

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_BLOCKS = [
    page
    for page in PAGES
    if "reference" not in page.parts and any(block.language in ("python", "console") for block in code_blocks(page))
]


USES_THE_FIRST_PROJECT = re.compile(r"^This page uses .{,150}\(\.\./start/own-agent\.md\)", re.MULTILINE | re.DOTALL)


@pytest.fixture
def stub_judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    stub = StubJudge()
    for name, value in stub.environment.items():
        monkeypatch.setenv(name, value)
    yield
    stub.close()


@pytest.mark.full
@pytest.mark.usefixtures("stub_judge")
@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_run_as_they_stand(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("LANGSMITH_API_KEY", raising=False)
    if USES_THE_FIRST_PROJECT.search(page.read_text(encoding="utf-8")):
        write_files(ROOT / "docs" / "start" / "own-agent.md")
    assert run_blocks(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_is_not_run_says_why(page: Path) -> None:
    marks = [block.mark for block in code_blocks(page) if not block.is_run]
    assert all(len(mark.removeprefix("not run").strip(": ")) > 5 for mark in marks)
