import json
import threading
from pathlib import Path

import pytest

from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.judges.cache import PAID_IN_VAIN, JudgeCache, merged_lines

RECORD = {"values": [{"verdict": 1, "reason": "naïve \ud800 \n text"}], "cost": 0.5, "usages": []}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "judge_cache.jsonl"


def line_of(digest: str, **record: object) -> bytes:
    return json.dumps({"digest": digest, "record": record}).encode()


def test_records_are_found_in_this_session_and_the_next(path: Path) -> None:
    cache = JudgeCache(path)
    cache.put("a", RECORD)
    assert cache.get("a") == RECORD
    assert cache.get("b") is None
    assert JudgeCache(path).get("a") == RECORD  # the first session did not even close it


def test_last_record_of_a_digest_wins(path: Path) -> None:
    cache = JudgeCache(path)
    cache.put("a", {"cost": 1})
    cache.put("a", {"cost": 2})
    assert cache.get("a") == JudgeCache(path).get("a") == {"cost": 2}


def test_unreadable_lines_are_skipped(path: Path) -> None:
    bad = [b"", b"{", b"\xff\xfe", b"[1]", b"null", b'{"digest": 1, "record": {}}', b'{"digest": "x", "record": 1}']
    deep = b"[" * 100_000
    path.write_bytes(b"\n".join([line_of("a", n=1), *bad, deep, line_of("b", n=2), b""]))
    cache = JudgeCache(path)
    assert (cache.get("a"), cache.get("b"), cache.get("x")) == ({"n": 1}, {"n": 2}, None)


@pytest.mark.parametrize("length", range(len(line_of("b", n=2)) + 1))
def test_line_truncated_anywhere_does_not_affect_others(path: Path, length: int) -> None:
    path.write_bytes(line_of("a", n=1) + b"\n" + line_of("b", n=2)[:length])
    cache = JudgeCache(path)
    cache.put("c", {"n": 3})
    is_whole = length == len(line_of("b", n=2))
    for each in (cache, JudgeCache(path)):
        assert (each.get("a"), each.get("c")) == ({"n": 1}, {"n": 3})
        assert each.get("b") == ({"n": 2} if is_whole else None)


def test_file_changed_by_others_returns_no_wrong_record(path: Path) -> None:
    path.write_bytes(line_of("a", n=1) + b"\n")
    cache = JudgeCache(path)
    path.write_bytes(line_of("b", n=2) + b"\n")
    assert cache.get("a") is None


def test_closed_cache_can_be_used_again(path: Path) -> None:
    cache = JudgeCache(path)
    cache.put("a", {"n": 1})
    cache.close()
    assert cache.get("a") == {"n": 1}
    cache.put("b", {"n": 2})
    cache.close()
    cache.close()
    assert JudgeCache(path).get("b") == {"n": 2}


def test_cache_is_thread_safe(path: Path) -> None:
    cache = JudgeCache(path)
    lost = []

    def work(thread: int) -> None:
        for number in range(50):
            cache.put(f"{thread}-{number}", {"n": number, "text": "x" * 999})
            if cache.get(f"{thread}-{number}") is None:
                lost.append((thread, number))

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reopened = JudgeCache(path)
    assert lost == []
    assert all(reopened.get(f"{thread}-{number}") for thread in range(8) for number in range(50))


def test_path_must_be_a_file(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="cannot be read"):
        JudgeCache(tmp_path)


def test_missing_folder_is_an_error(tmp_path: Path) -> None:
    cache = JudgeCache(tmp_path / "away" / "judge_cache.jsonl")
    with pytest.raises(RunFolderError, match="cannot be written"):
        cache.put("a", {})


def test_merging_caches_keeps_all_costs(tmp_path: Path) -> None:
    first, second, absent = (tmp_path / name for name in ("a.jsonl", "b.jsonl", "c.jsonl"))
    vain = line_of(PAID_IN_VAIN, cost=0.25)
    first.write_bytes(b"\n".join([line_of("x", cost=1.0), vain, b'{"digest": "torn', line_of("z", cost=2.0)]))
    second.write_bytes(b"\n".join([line_of("x", cost=1.0), vain, vain, line_of("z", cost=3.0), b""]))
    merged = tmp_path / "merged.jsonl"
    merged.write_bytes(b"".join(merged_lines([first, second, absent], share_lines=False)))
    cache = JudgeCache(merged)
    assert cache.get("z") == {"cost": 3.0}
    assert cache.spent() == 1.0 + 0.25 + 2.0 + 1.0 + 0.25 + 0.25 + 3.0


def test_cost_of_shared_lines_counts_once(tmp_path: Path) -> None:
    part, merged = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    vain = line_of(PAID_IN_VAIN, cost=0.25) + b"\n"
    part.write_bytes(vain + line_of("x", cost=1.0) + b"\n" + vain)
    merged.write_bytes(vain + line_of("x", cost=1.0) + b"\n" + line_of("y", cost=4.0))
    lines = list(merged_lines([merged, part], share_lines=True))
    assert len(lines) == 4
    assert lines.count(vain) == 2


@pytest.mark.parametrize("cost", [-1000, -1e-9, float("nan"), float("inf"), 10**401, 1e308, "1", True])
def test_record_with_an_impossible_cost_is_skipped(path: Path, cost: object) -> None:
    path.write_bytes(b"\n".join([line_of("a", cost=0.25), line_of("b", cost=cost), b""]))
    cache = JudgeCache(path)
    assert (cache.get("a"), cache.get("b"), cache.spent()) == ({"cost": 0.25}, None, 0.25)
    assert list(merged_lines([path], share_lines=False)) == [line_of("a", cost=0.25) + b"\n"]
