import os
import threading
from pathlib import Path

import pytest

from graphrag_eval_lc.files import writing as background_sync
from graphrag_eval_lc.files.writing import BackgroundSync


def test_what_is_marked_is_synced_without_being_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bytes] = []
    happened = threading.Semaphore(0)

    def seen(descriptor: int) -> None:
        os.fsync(descriptor)
        synced.append((tmp_path / "file").read_bytes())
        happened.release()

    monkeypatch.setattr(background_sync, "sync", seen)
    with (tmp_path / "file").open("wb", buffering=0) as file:
        syncing = BackgroundSync(file.fileno())
        for text in (b"one", b"two", b"three"):
            file.write(text)
            syncing.mark()
            assert happened.acquire(timeout=30)
            assert synced[-1].endswith(text)
        syncing.close()


def test_many_marks_share_a_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs: list[int] = []
    monkeypatch.setattr(background_sync, "sync", syncs.append)
    with (tmp_path / "file").open("wb") as file:
        syncing = BackgroundSync(file.fileno())
        for _ in range(10_000):
            syncing.mark()
        syncing.close()
    assert 1 <= len(syncs) < 1_000


def test_close_syncs_what_is_left_and_ends_the_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marked = 0
    seen: list[int] = []
    monkeypatch.setattr(background_sync, "sync", lambda descriptor: seen.append(marked))
    for _ in range(50):
        with (tmp_path / "file").open("wb") as file:
            syncing = BackgroundSync(file.fileno())
            marked += 1
            syncing.mark()
            syncing.close()
            syncing.close()
        assert seen[-1] == marked
    assert not [thread for thread in threading.enumerate() if thread.name == "journal-sync"]


def test_failed_sync_is_raised_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    def mark_and_close() -> None:
        syncing.mark()
        syncing.close()

    monkeypatch.setattr(background_sync, "sync", fail)
    with (tmp_path / "file").open("wb") as file:
        syncing = BackgroundSync(file.fileno())
        with pytest.raises(OSError, match="Input/output error"):
            mark_and_close()
        monkeypatch.undo()
        syncing.close()


def test_nothing_marked_starts_no_thread(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        before = threading.active_count()
        syncing = BackgroundSync(file.fileno())
        assert threading.active_count() == before
        syncing.close()
