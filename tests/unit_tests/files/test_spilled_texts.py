import gc
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.files.spilled_texts import SpilledTexts

LINES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=30)


@given(st.lists(LINES))
def test_texts_come_back_in_their_order_each_time(texts: list[str]) -> None:
    kept = SpilledTexts()
    for text in texts:
        kept.add(text)
    assert (list(kept), list(kept), len(kept)) == (texts, texts, len(texts))


def test_more_than_a_megabyte_is_on_the_disk_and_gone_with_the_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    kept = SpilledTexts()
    for number in range(300):
        kept.add(f"{number}" * 3_000)
    assert [len(text) for text in kept] == [3_000 * len(str(number)) for number in range(300)]
    assert list(tmp_path.iterdir()) == []  # it has no name
    del kept
    gc.collect()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    kept = SpilledTexts()
    kept.add("x" * 900_000)
    with pytest.raises(RunFolderError, match="gone"):
        kept.add("x" * 900_000)
