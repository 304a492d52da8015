"""What one process of a session asks, kept on disk as it ends: a journal for each run, and what the run is.

The folder of a session has a folder for each process in it; ``session.py`` puts them together at the end.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.benchmark.pytest_runs import PLAN, unanswered
from graphrag_eval_lc.benchmark.run_manifest import begun_record
from graphrag_eval_lc.benchmark.run_options import CheckedOptions
from graphrag_eval_lc.errors import GraphRAGEvalError
from graphrag_eval_lc.files.opening import make_folder
from graphrag_eval_lc.files.writing import replace_file
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.pytest_plugin.datasets import AskedQuestion, MarkedRun, question_of, run_of
from graphrag_eval_lc.pytest_plugin.settings import settings_of
from graphrag_eval_lc.retrying import masked_error_text
from graphrag_eval_lc.run_folder.journal import Journal

_NOT_ASKED = (GraphRAGEvalError, KeyboardInterrupt, SystemExit, pytest.exit.Exception)


class Part:
    """What this process asks."""

    def __init__(self, folder: Path, config: pytest.Config) -> None:
        self._is_private = not settings_of(config).open_files
        make_folder(folder, is_private=self._is_private)
        self._folder = folder
        self._config = config
        self._collected: dict[str, MarkedRun] = {}
        self._selected: dict[str, dict[str, None]] = {}
        self._journals: dict[str, Journal] = {}
        self._records: dict[str, dict[str, Any]] = {}

    # --- the hooks of pytest ---

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Note a run, whether or not its tests are deselected later."""
        if (question := _asked_of(item)) is not None:
            run = run_of(item, question)
            self._collected.setdefault(run.key, run)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Write which runs there are, and which questions are to be asked."""
        for item in session.items:
            if (question := _asked_of(item)) is not None:
                self._select(run_of(item, question), question)
        self._write_plan()

    def _select(self, run: MarkedRun, question: AskedQuestion) -> None:
        self._collected.setdefault(run.key, run)
        self._selected.setdefault(run.key, {})[str(question.question["id"])] = None

    def _write_plan(self) -> None:
        runs = [
            {
                "key": run.key,
                "name": run.name,
                "test": run.test,
                "is_named": run.dataset.name is not None,
                "templates": [str(template["template_id"]) for template in run.dataset.templates],
                "dataset": self._dataset_file(run),
                "questions": len(run.dataset.selected),
                "selected": list(self._selected.get(run.key, ())),
                "selection": run.dataset.selection.as_dict(),
            }
            for run in self._collected.values()
        ]
        self._write(PLAN, {"runs": runs})

    def pytest_sessionfinish(self) -> None:
        """Close the journals."""
        for journal in self._journals.values():
            journal.close()

    def _dataset_file(self, run: MarkedRun) -> str:
        """Return the dataset's file, an absolute path or the name of one in the folder of this process."""
        if run.dataset.path is not None:
            return str(run.dataset.path.absolute())
        return self._write(f"{run.key}.dataset.json", run.dataset.templates).name

    def _write(self, name: str, value: Any) -> Path:
        path = self._folder / name
        replace_file(path, [json_text(value).encode()], is_private=self._is_private)
        return path

    # --- what is asked ---

    def begin(
        self, item: pytest.Item, run: MarkedRun, question: AskedQuestion, agent: Any, options: Mapping[str, Any]
    ) -> None:
        """Note that a question is being asked, which stays so if the process is killed meanwhile."""
        if _asked_of(item) is None:  # by request.getfixturevalue, which nobody sees beforehand
            self._select(run, question)
            self._write_plan()
        if run.key not in self._journals:
            self._journals[run.key] = Journal(self._folder / f"{run.key}.jsonl", is_private=self._is_private)
            output = settings_of(self._config).output
            given = CheckedOptions(**{**options, "output_dir": output})
            selected = run.dataset.selected
            record = begun_record(agent, run.dataset.source, run.dataset.templates, selected, given)
            self._write_record(run, _asked_in_turn(record))
        self._add(run, question, status="error", begun=True)

    def end(self, run: MarkedRun, question: AskedQuestion, asked: BenchmarkRun) -> None:
        """Keep the response to a question and its result."""
        self._add(
            run,
            question,
            status="success",
            response=asked.responses[0],
            result=asked.results[0],
        )
        if asked.judges is not None and "judges" not in self._records[run.key]:
            self._write_record(run, {**self._records[run.key], "judges": asked.judges})

    def broke_off(self, run: MarkedRun, question: AskedQuestion, problem: BaseException) -> None:
        """Note why a question was not answered: the test ended first, and it failed; or it was not asked at all."""
        if isinstance(problem, _NOT_ASKED):
            self._add(run, question, status="error", left_out=True)
            return
        why = f"the test ended before the agent answered ({masked_error_text(problem)})"
        self._add(run, question, status="error", response=unanswered(question.question, why))

    def _add(self, run: MarkedRun, question: AskedQuestion, **record: Any) -> None:
        self._journals[run.key].add({"question_id": str(question.question["id"]), "at": time.monotonic(), **record})

    def _write_record(self, run: MarkedRun, record: dict[str, Any]) -> None:
        self._records[run.key] = record
        self._write(f"{run.key}.run.json", record)


_PART = pytest.StashKey[Part]()


def _asked_of(item: pytest.Item) -> AskedQuestion | None:
    """Return the question that a test asks an agent; None if it asks none."""
    return question_of(item) if "graphrag_ask" in getattr(item, "fixturenames", ()) else None


def _asked_in_turn(record: dict[str, Any]) -> dict[str, Any]:
    """Return a run's record without how many are asked at once, which pytest decides."""
    limits = {name: value for name, value in record.get("limits", {}).items() if name != "max_concurrency"}
    return {**record, "limits": limits}


def keep_part(config: pytest.Config, folder: Path) -> None:
    """Keep what this process asks in a separate folder below that of the session."""
    workerinput = getattr(config, "workerinput", {})
    part = Part(folder / str(workerinput.get("workerid", "main")), config)
    config.stash[_PART] = part
    config.pluginmanager.register(part, "graphrag_eval_lc-part")


def part_of(config: pytest.Config) -> Part | None:
    """Return where this process keeps what it asks; None if no option wants it kept."""
    return config.stash.get(_PART, None)
