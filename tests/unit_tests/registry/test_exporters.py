import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import BenchmarkRun, compute_aggregates
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.registry.exporters import exporter, exporters, register_exporter

RESULT: Any = {"question_id": "q", "template_id": "t", "question_text": "?", "status": "success", "steps_score": 1.0}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "results.jsonl").write_text(json.dumps(RESULT))
    return tmp_path


def test_built_in_exporters_write_to_the_run_folder(folder: Path) -> None:
    for name, each in list(exporters().items()):
        assert each.name == name
        assert each.export(folder) == folder / each.file_name
        assert (folder / each.file_name).exists()


def test_csv_has_the_tables_of_the_run(folder: Path, tmp_path: Path) -> None:
    written = exporter("csv").export(folder)
    assert sorted(path.name for path in written.iterdir()) == ["aggregates.csv", "questions.csv", "steps.csv"]
    assert "q" in (written / "questions.csv").read_text(encoding="utf-8")
    assert "steps_score" in (written / "aggregates.csv").read_text(encoding="utf-8")
    in_memory = BenchmarkRun(compute_aggregates([RESULT]), responses=[], results=[RESULT])
    other = exporter("csv").export(in_memory, tmp_path / "other")
    for path in written.iterdir():
        assert path.read_bytes() == (other / path.name).read_bytes()


@pytest.mark.parametrize("name", ["report", "csv", "junit", "summary"])
def test_run_without_a_folder_needs_a_path(name: str) -> None:
    with pytest.raises(OptionError, match=f"the run has no folder to write the {name} to. Give a path"):
        exporter(name).export([RESULT])


def test_registered_exporter_is_found_by_name(folder: Path) -> None:
    @register_exporter(name="ids", file_name="ids.txt", title="the questions' ids")
    def write_ids(run: Path, path: Path | None = None) -> Path:
        target = path or run / "ids.txt"
        target.write_text("q")
        return target

    assert exporters()["ids"].title == "the questions' ids"
    assert exporter("ids").export(str(folder), str(folder / "other.txt")).read_text() == "q"


def test_duplicate_or_unknown_names_are_reported() -> None:
    with pytest.raises(OptionError, match=r"unknown exporter 'pdf'. The exporters are report, csv, junit, summary\."):
        exporter("pdf")
    with pytest.raises(OptionError, match=r"there is an exporter report already: graphrag_eval_lc\.report\.run_report"):
        register_exporter(name="report", file_name="report.html")(lambda run, path: path)
    with pytest.raises(OptionError, match=r"file_name is a plain name, not '../x'"):
        register_exporter(name="mine", file_name="../x")


def test_function_can_be_registered_again_when_its_module_is_reloaded() -> None:
    for _ in range(2):

        @register_exporter(name="ids", file_name="ids.txt")
        def write_ids(run: Path, path: Path | None = None) -> Path:
            return path or run

    assert exporter("ids").function is write_ids


def test_exporter_that_returns_no_path_is_reported() -> None:
    register_exporter(name="mine", file_name="x")(lambda run, path: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(OptionError, match="the exporter mine returned NoneType in place of a path"):
        exporter("mine").export("run")


def test_dependencies_of_exporters_are_imported_lazily() -> None:
    code = "import sys, graphrag_eval_lc.registry.exporters; print('graphrag_eval_lc.report' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
