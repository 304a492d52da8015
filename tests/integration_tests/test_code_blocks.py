"""The code blocks of the documentation are run one after the other, and their output is compared."""

from pathlib import Path

import pytest
from support.code_blocks import code_blocks, run_blocks, write_files
from support.judged_runs import judgement
from support.openai_stub import OpenAIStub

ROOT = Path(__file__).parents[2]
# The how-to pages continue where this page ends.
BEGINNING = ROOT / "docs" / "start" / "own-agent.md"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_BLOCKS = [
    page
    for page in PAGES
    if "reference" not in page.parts and any(block.language in ("python", "console") for block in code_blocks(page))
]


@pytest.mark.full
@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_run_as_written(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("LANGSMITH_API_KEY", raising=False)
    if page.parent.name == "how-to":
        write_files(BEGINNING)
    with OpenAIStub() as stub:
        stub.answer = judgement
        monkeypatch.setenv("OPENAI_API_KEY", "no-key-for-the-stub")
        monkeypatch.setenv("OPENAI_BASE_URL", stub.base_url)
        assert run_blocks(page)


def test_skipped_blocks_have_a_reason() -> None:
    marks = [(page, block.mark) for page in PAGES for block in code_blocks(page) if not block.is_run]
    assert [each for each in marks if len(each[1].removeprefix("not run").strip(": ")) <= 5] == []
