"""Records each response of a pytest session when it ends, and at the end makes its runs, gates and summary."""

import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.benchmark.pytest_runs import (
    PARTS,
    PLAN,
    FinishedRun,
    asked_records,
    collected_runs,
    finish_run,
    folders_of,
    recover_killed_session,
    unanswered,
)
from graphrag_eval_lc.benchmark.run_manifest import begun_record
from graphrag_eval_lc.benchmark.run_options import CheckedOptions
from graphrag_eval_lc.compare.gate_names import nearest
from graphrag_eval_lc.config import GateConfig
from graphrag_eval_lc.errors import GraphRAGEvalError, OptionError, RunFolderError, cannot_write
from graphrag_eval_lc.files.opening import make_folder, refuse_odd
from graphrag_eval_lc.files.writing import replace_file
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.pytest_plugin.datasets import AskedQuestion, MarkedRun, gates_given, question_of, run_of
from graphrag_eval_lc.pytest_plugin.settings import Settings, change_settings, settings_of
from graphrag_eval_lc.retrying import masked_error_text
from graphrag_eval_lc.run_folder import RUN_FILE, FolderLock, RunFolder
from graphrag_eval_lc.run_folder.journal import Journal
from graphrag_eval_lc.texts import visible, without_commands

_NOT_ASKED = (GraphRAGEvalError, KeyboardInterrupt, SystemExit, pytest.exit.Exception)


class Part:
    """Records on disk what this process asks."""

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
        """Record a run, even if its tests are deselected later."""
        if (question := _asked_of(item)) is not None:
            run = run_of(item, question)
            self._collected.setdefault(run.key, run)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Write the plan: the runs, and the questions that will be asked."""
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
        """Return the dataset's file: an absolute path, or a file name in this process's folder."""
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
        """Record that a question is being asked, so that it is known if the process is killed meanwhile."""
        if _asked_of(item) is None:  # the test used request.getfixturevalue, so the plan does not have it
            self._select(run, question)
            self._write_plan()
        if run.key not in self._journals:
            self._journals[run.key] = Journal(self._folder / f"{run.key}.jsonl", is_private=self._is_private)
            output = settings_of(self._config).output
            given = CheckedOptions(**{**options, "output_dir": output})
            selected = run.dataset.selected
            record = begun_record(agent, run.dataset.source, run.dataset.templates, selected, given)
            self._write_record(run, _without_concurrency(record))
        self._add(run, question, status="error", begun=True)

    def end(self, run: MarkedRun, question: AskedQuestion, asked: BenchmarkRun) -> None:
        """Record the response to a question, and its result."""
        self._add(run, question, status="success", response=asked.responses[0], result=asked.results[0])
        if asked.judges is not None and "judges" not in self._records[run.key]:
            self._write_record(run, {**self._records[run.key], "judges": asked.judges})

    def broke_off(self, run: MarkedRun, question: AskedQuestion, problem: BaseException) -> None:
        """Record why a question has no answer: the test ended first, so it failed; or it was not asked at all."""
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


def _without_concurrency(record: dict[str, Any]) -> dict[str, Any]:
    """Return a run's record without the concurrency, which pytest decides."""
    limits = {name: value for name, value in record.get("limits", {}).items() if name != "max_concurrency"}
    return {**record, "limits": limits}


def keep_part(config: pytest.Config, folder: Path) -> None:
    """Record what this process asks in its own folder below that of the session."""
    workerinput = getattr(config, "workerinput", {})
    part = Part(folder / str(workerinput.get("workerid", "main")), config)
    config.stash[_PART] = part
    config.pluginmanager.register(part, "graphrag_eval_lc-part")


def part_of(config: pytest.Config) -> Part | None:
    """Return the recorder of this process; None if no option needs one."""
    return config.stash.get(_PART, None)


_GOOD = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


class SessionRuns:
    """Makes the runs of a session: a pytest plugin of the process that the user started."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self._config = config
        self._settings = settings
        self._gates: list[GateConfig] = []
        self._parts: Path | None = None
        self._made: Path | None = None  # the topmost folder that this session created
        self._lock: FolderLock | None = None
        self._finished: list[FinishedRun] = []
        self._problems: list[str] = []
        self._notes: list[str] = []
        self._is_unchecked = False

    # --- the beginning ---

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Check the options and the folder, before anything is asked."""
        try:
            self._gates = gates_given(self._settings)
            self._parts = self._make_parts_folder()
        except GraphRAGEvalError as problem:
            raise pytest.UsageError(str(problem)) from None
        change_settings(self._config, replace(self._settings, parts=self._parts))
        keep_part(self._config, self._parts)

    def _make_parts_folder(self) -> Path:
        """Create and lock the folder for the records of all processes; recover a killed session in it first."""
        output = self._settings.output
        if output is None:
            return Path(tempfile.mkdtemp(prefix="graphrag-eval-lc-"))
        parts, is_private = output / PARTS, not self._settings.open_files
        try:
            refuse_odd(parts)
            self._notes = recover_killed_session(output, is_apart=True, is_private=is_private)
            self._refuse_earlier(output)
            self._made = next((each for each in (output, *output.parents) if not each.exists()), None)
            make_folder(output, is_private=is_private)
            make_folder(parts, is_private=is_private)
            self._lock = FolderLock(parts, is_private=is_private)
        except OSError as problem:
            raise cannot_write(output, problem) from problem
        return parts

    def _refuse_earlier(self, output: Path) -> None:
        if self._settings.overwrite or not output.is_dir():
            return
        found = [path.parent for path in (output / RUN_FILE, *sorted(output.glob(f"*/{RUN_FILE}"))) if path.exists()]
        earlier = [path for path in found if not path.name.startswith("killed-")]
        if earlier:
            hint = "Give another folder; --graphrag-overwrite replaces that run, its answers included."
            hint = " ".join([hint, *self._notes])
            raise RunFolderError("the folder holds a run already", path=earlier[0], hint=hint)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        """Refuse gates on templates that no dataset has."""
        self._check_templates()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        """Do the same if pytest-xdist workers collect the tests."""
        self._check_templates()

    def _check_templates(self) -> None:
        of_templates = [gate for gate in self._gates if gate.template is not None]
        if not of_templates or self._parts is None:
            return
        runs = collected_runs(self._parts)
        known = list(dict.fromkeys(template for run in runs for template in run.plan["templates"]))
        for gate in of_templates if runs else ():
            if gate.template not in known:
                what = f"no dataset of this session has a template {gate.template}"
                raise pytest.UsageError(str(OptionError(what, hint=nearest(str(gate.template), known))))

    # --- the end ---

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Make the runs from what all processes recorded; a gate that is not passed fails the session."""
        if self._parts is None:
            return
        try:
            self._finish(session, exitstatus)
        except Exception as problem:  # pytest must still print its own summary
            what = str(problem) if isinstance(problem, GraphRAGEvalError) else f"{type(problem).__name__}: {problem}"
            kept = "" if self._settings.output is None else f" What was asked is in {self._shown(self._parts)}."
            self._problems.append(f"The run could not be put together: {what}{kept}")
        else:
            self._remove_parts()
        is_failed = any(not gate.has_passed for run in self._finished for gate in run.gates)
        if (self._problems or is_failed) and session.exitstatus in _GOOD:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _finish(self, session: pytest.Session, exitstatus: int) -> None:
        assert self._parts is not None
        is_interrupted = exitstatus == pytest.ExitCode.INTERRUPTED
        runs = collected_runs(self._parts)
        output = self._settings.output
        folders = folders_of(runs, output or self._parts / "runs")
        self._is_unchecked = bool(self._gates) and not any(run.plan["selected"] for run in runs)
        if output is not None and self._settings.overwrite and runs and output not in folders:
            # The files are from an earlier session, in which there was only one run.
            RunFolder(output, is_private=not self._settings.open_files).clear()
        for run, folder in zip(runs, folders, strict=True):
            asked = asked_records(run, is_interrupted=is_interrupted)
            gates = [gate for gate in self._gates if gate.template in (None, *run.plan["templates"])]
            if not asked or run.record is None:
                if run.plan["selected"] and gates and exitstatus in _GOOD:
                    self._problems.append(
                        f"Gate failed: {run.plan['name']} asked no question, so that no gate could be checked."
                    )
                continue
            finished = finish_run(
                run,
                asked,
                folder,
                gates,
                stopped=_stopped(session, exitstatus, len(run.plan["selected"]) - len(asked)),
                overwrite=self._settings.overwrite,
                open_files=self._settings.open_files,
                has_report=self._settings.output is not None,
            )
            self._finished.append(finished)

    def _remove_parts(self) -> None:
        """Remove the recorded parts, and the output folder if it is empty."""
        assert self._parts is not None
        shutil.rmtree(self._parts, ignore_errors=True)
        if self._lock is not None:
            self._lock.release()
        folder = self._settings.output
        while self._made is not None and folder is not None and folder.is_relative_to(self._made):
            try:
                folder.rmdir()  # fails unless the folder is empty
            except OSError:
                return
            folder = folder.parent

    # --- what the terminal says ---

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the folders of the runs, and which gates failed."""
        lines = [line for run in self._finished for line in self._lines(run)]
        lines += [(note, {"yellow": True}) for note in self._notes]
        lines += [(problem, {"red": True}) for problem in self._problems]
        if self._is_unchecked:
            lines.append(("No gate was checked, as no test of this session asks a question.", {"yellow": True}))
        if not lines:
            return
        terminalreporter.ensure_newline()
        terminalreporter.section("graphrag-eval-lc")
        for text, markup in lines:
            terminalreporter.write_line(visible(without_commands(masked_text(text))), **markup)

    def _shown(self, folder: Path) -> Path:
        """Return a folder relative to the current one, if it is inside it."""
        here = self._config.invocation_params.dir
        return folder.relative_to(here) if folder.is_relative_to(here) else folder

    def _lines(self, run: FinishedRun) -> list[tuple[str, dict[str, bool]]]:
        has_output = self._settings.output is not None
        if not has_output and not run.gates:
            return []
        name = f"{run.name}: " if len(self._finished) > 1 else ""
        lines: list[tuple[str, dict[str, bool]]] = [(f"{name}{run.counts}", {})]
        lines += [(note, {}) for note in run.notes]
        if has_output:
            report = "" if run.report is None else f", with {run.report.name}"
            lines.append((f"Written to {self._shown(run.folder)}{report}", {}))
        for gate in run.gates:
            state = "passed" if gate.has_passed else "failed"
            lines.append((f"Gate {state}: {name}{gate}.", {"green": True} if gate.has_passed else {"red": True}))
        return lines


def _stopped(session: pytest.Session, exitstatus: int, left_out: int) -> Mapping[str, Any] | None:
    """Return why a session ended early, in the form of run.json; None if it did not."""
    if exitstatus == pytest.ExitCode.INTERRUPTED:
        why = session.shouldstop or session.shouldfail
        reason = "max_failures" if "failure" in str(why) else "interrupted"
        return {"reason": reason, "message": str(why or "the session was interrupted"), "left_out": left_out}
    if session.shouldfail or session.shouldstop:
        return {
            "reason": "max_failures",
            "message": str(session.shouldfail or session.shouldstop),
            "left_out": left_out,
        }
    return None
