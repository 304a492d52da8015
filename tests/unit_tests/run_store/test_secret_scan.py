import base64
import gzip
import json
import os
import re
import shutil
import stat
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from support.planted_secrets import MORE_SECRETS, SECRETS, leaks

from graphrag_eval_lc import run_benchmark, score_run
from graphrag_eval_lc.errors import OptionError, RunFolderError
from graphrag_eval_lc.report.run_report import write_report
from graphrag_eval_lc.run_folder.folder import FolderLock
from graphrag_eval_lc.run_store.secret_scan import scan_secrets

ALL = (*SECRETS, *MORE_SECRETS)
DATASET: list[Any] = [
    {
        "template_id": "t",
        "questions": [{"id": f"q{number}", "question_text": f"What is {number}?"} for number, _ in enumerate(ALL)],
    }
]


def leaking_agent(question: str) -> str:
    return f"It is {ALL[int(question[8:-1])].text}"


@pytest.fixture(scope="module")
def leaky_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run folder whose answers contain all secrets, with its report, CSV files and a torn journal."""
    folder = tmp_path_factory.mktemp("told") / "run"
    write_report(run_benchmark(leaking_agent, DATASET, output_dir=folder, progress="off"))
    planted = ALL[40].text
    (folder / "responses.jsonl.torn").write_text(f'{{"question_id": "q1", "error": "{planted}\n')
    (folder / "notes.csv").write_text(f'id,text\nq1,"{{""password"": ""hunter22"", ""n"": 1}}"\nq2,{planted}\n')
    (folder / "page.html").write_text("<p>&quot;api_key&quot;: &quot;hunter33&quot;, &quot;n&quot;</p>\n")
    (folder / "judge_cache.jsonl").write_text(json.dumps({"digest": "ab", "record": {"text": planted}}) + "\n")
    (folder / "notes.yaml").write_text(f"- key: |\n    {SECRETS[0].text}".replace("\n", "\n    ") + "\n- a: 1\n")
    return folder


@pytest.fixture
def run(leaky_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(leaky_run, tmp_path / "run"))


def texts_of(folder: Path) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file())


def test_scan_finds_each_secret_and_changes_nothing(run: Path) -> None:
    before = {path: path.read_bytes() for path in run.iterdir()}
    scan = scan_secrets(run)
    assert {path: path.read_bytes() for path in run.iterdir()} == before
    found = {each.question_id for each in scan.secrets if each.path.name == "responses.jsonl"}
    assert found == {f"q{number}" for number, _ in enumerate(ALL)}
    assert {each.path.name for each in scan.secrets} >= {
        *("responses.jsonl", "results.jsonl", "report.html", "responses.jsonl.torn", "notes.csv", "page.html"),
        *("judge_cache.jsonl", "notes.yaml"),
    }
    assert scan.masked == []
    assert [each.line for each in scan.secrets if each.path.name == "notes.csv"] == [2, 3]
    for planted in ALL:
        assert leaks(planted, str(scan.secrets)) == []


def test_masking_removes_all_secrets_and_the_run_can_resume(run: Path) -> None:
    (run / "responses.jsonl").chmod(0o640)
    scan = scan_secrets(run, mask=True)
    assert scan.masked
    text = texts_of(run)
    for planted in ALL:
        assert leaks(planted, text) == [], planted.name
    assert "hunter22" not in text
    assert "hunter33" not in text
    assert scan_secrets(run).secrets == []
    assert stat.S_IMODE((run / "responses.jsonl").stat().st_mode) == 0o640
    assert stat.S_IMODE((run / "results.jsonl").stat().st_mode) == 0o600
    assert not list(run.glob("*.new"))
    second = run_benchmark(leaking_agent, DATASET, output_dir=run, progress="off")
    assert len(list(second.responses)) == len(ALL)
    write_report(score_run(run, dataset=DATASET))
    assert leaks(ALL[40], texts_of(run)) == []


def test_packed_details_of_the_report_are_masked(run: Path) -> None:
    scan_secrets(run, mask=True)
    page = (run / "report.html").read_text()
    chunks = re.findall(r"H4sI[A-Za-z0-9+/]{20,}={0,2}", page)
    assert chunks
    inside = "".join(gzip.decompress(base64.b64decode(chunk)).decode() for chunk in chunks)
    assert "***" in inside
    for planted in ALL:
        assert leaks(planted, inside) == []


def test_run_without_secrets_is_unchanged(tmp_path: Path) -> None:
    write_report(run_benchmark(lambda question: "42", DATASET, output_dir=tmp_path / "run", progress="off"))
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").iterdir()}
    scan = scan_secrets(tmp_path, mask=True)
    assert (scan.secrets, scan.masked) == ([], [])
    after = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").iterdir()}
    assert {path for path in after if after[path] != before[path]} <= {tmp_path / "run" / ".lock"}


def test_run_in_use_is_not_masked(run: Path) -> None:
    before = (run / "responses.jsonl").read_bytes()
    with FolderLock(run), pytest.raises(RunFolderError, match="works in this folder"):
        scan_secrets(run.parent, mask=True)
    assert (run / "responses.jsonl").read_bytes() == before
    with FolderLock(run):
        assert scan_secrets(run).secrets


def test_single_file_can_be_scanned(run: Path) -> None:
    scan = scan_secrets(run / "results.jsonl", mask=True)
    assert scan.masked == [run / "results.jsonl"]
    assert scan_secrets(run / "responses.jsonl").secrets


def test_missing_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="does not exist"):
        scan_secrets(tmp_path / "away")


def test_links_and_other_files_are_reported_but_unchanged(run: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("password=hunter22")
    (run / "link.txt").symlink_to(outside)
    (run / "image.bin").write_bytes(b"\x00\x01password=hunter22")
    os.mkfifo(run / "pipe")
    scan = scan_secrets(run, mask=True)
    assert {path.name for path in scan.unread} == {"link.txt", "image.bin", "pipe"}
    assert outside.read_text() == "password=hunter22"


def test_question_ids_are_kept_even_if_they_look_like_secrets(tmp_path: Path) -> None:
    file = tmp_path / "responses.jsonl"
    identifier = "npm_" + "a1B2" * 9
    file.write_text(json.dumps({"question_id": identifier, "error": "password=hunter22"}) + "\n")
    scan_secrets(file, mask=True)
    assert json.loads(file.read_text()) == {"question_id": identifier, "error": "password=***"}


@pytest.mark.parametrize("ending", ["\n", ""])
def test_invalid_utf8_is_kept(tmp_path: Path, ending: str) -> None:
    file = tmp_path / "torn.txt"
    file.write_bytes(b"\xff\xfe password=hunter22 \x80" + ending.encode())
    scan_secrets(file, mask=True)
    assert file.read_bytes() == b"\xff\xfe password=*** \x80" + ending.encode()


def test_parquet_files_are_reported_but_not_scanned(tmp_path: Path) -> None:
    file = tmp_path / "results.parquet"
    file.write_bytes(b"PAR1password=hunter22")
    assert scan_secrets(file, mask=True).unread == {
        file: "it is a Parquet file: mask the run's files, and export it again"
    }
    assert file.read_bytes() == b"PAR1password=hunter22"


def test_private_key_across_two_chunks_is_found(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    filler = "plain words\n" * ((1 << 20) // 12 - 2)
    file.write_text(filler + SECRETS[0].text + "more\n")
    scan_secrets(file, mask=True)
    assert leaks(SECRETS[0], file.read_text()) == []
    assert file.read_text().endswith("more\n")


@pytest.mark.full
def test_memory_is_constant_for_a_large_journal(tmp_path: Path) -> None:
    file = tmp_path / "responses.jsonl"
    with file.open("w") as out:
        for number in range(20_000):
            out.write(json.dumps({"question_id": str(number), "text": "plain words " * 300}) + "\n")
    tracemalloc.start()
    try:
        assert scan_secrets(file).secrets == []
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
