"""What the pages tell to type is typed, block after block; what they say is printed is printed."""

from pathlib import Path

import pytest
from code_blocks import code_blocks, run_blocks

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_BLOCKS = [
    page
    for page in PAGES
    if "reference" not in page.parts and any(block.language in ("python", "console") for block in code_blocks(page))
]


@pytest.mark.full
@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_run_as_they_stand(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("OPENAI_API_KEY", "LANGSMITH_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert run_blocks(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_is_not_run_says_why(page: Path) -> None:
    marks = [block.mark for block in code_blocks(page) if not block.is_run]
    assert all(len(mark.removeprefix("not run").strip(": ")) > 5 for mark in marks)
