"""The journals of a session's processes go in; its runs, gates and lines in the terminal come out."""

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.benchmark.pytest_runs import (
    PARTS,
    FinishedRun,
    asked_records,
    collected_runs,
    finish_run,
    folders_of,
    recover_killed_session,
)
from graphrag_eval_lc.compare.gate_names import nearest
from graphrag_eval_lc.config import GateConfig
from graphrag_eval_lc.errors import GraphRAGEvalError, OptionError, RunFolderError, cannot_write
from graphrag_eval_lc.files.opening import make_folder, refuse_odd
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.pytest_plugin.datasets import gates_given
from graphrag_eval_lc.pytest_plugin.parts import keep_part
from graphrag_eval_lc.pytest_plugin.settings import Settings, change_settings
from graphrag_eval_lc.run_folder import RUN_FILE, FolderLock, RunFolder
from graphrag_eval_lc.texts import visible, without_commands

_GOOD = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


class SessionRuns:
    """The runs of a session, as a plugin of pytest."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self._config = config
        self._settings = settings
        self._gates: list[GateConfig] = []
        self._parts: Path | None = None
        self._made: Path | None = None
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
            self._parts = self._made_parts()
        except GraphRAGEvalError as problem:
            raise pytest.UsageError(str(problem)) from None
        change_settings(self._config, replace(self._settings, parts=self._parts))
        keep_part(self._config, self._parts)

    def _made_parts(self) -> Path:
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
        """The same, if the processes of pytest-xdist collect."""
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
        """Put together what was asked, once; a gate that is not passed fails the session."""
        if self._parts is None:
            return
        try:
            self._finish(session, exitstatus)
        except Exception as problem:  # what pytest has to say of the tests is still to be printed
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
            # Of a session in which this was the only run.
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
        """Remove what is no longer needed, also a folder that was made for nothing."""
        assert self._parts is not None
        shutil.rmtree(self._parts, ignore_errors=True)
        if self._lock is not None:
            self._lock.release()
        folder = self._settings.output
        while self._made is not None and folder is not None and folder.is_relative_to(self._made):
            try:
                folder.rmdir()  # which an empty one alone allows
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
        """Return a folder as seen from the current one, if it is below it."""
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
    """Return why a session ended before its time, as run.json says it; None if it did not."""
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
