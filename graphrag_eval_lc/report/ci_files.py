"""The files that continuous integration reads: a summary in Markdown, JUnit XML, and GitHub's job summary."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.compare import RunComparison
from graphrag_eval_lc.compare.gate_checks import GateResult
from graphrag_eval_lc.errors import GraphRAGEvalError, OptionError, cannot_write
from graphrag_eval_lc.files.opening import absolute_path
from graphrag_eval_lc.report.junit import write_junit
from graphrag_eval_lc.report.markdown_summary import MOST_BYTES, summary_text, write_summary

STEP_SUMMARY: Final = "GITHUB_STEP_SUMMARY"
_NONE: Final = Path("none")


@dataclass(frozen=True, slots=True)
class CiFiles:
    """The files that a command writes for continuous integration, as absolute paths."""

    summary: Path | None = None
    junit: Path | None = None
    step_summary: Path | None = None  # GitHub's job summary, to which the summary is appended
    given: Sequence[Path] = ()  # as the options name them

    @classmethod
    def of(cls, summary: Path | None, junit: Path | None = None) -> "CiFiles":
        """Return the files that a command's options name, and GitHub's job summary unless ``summary`` is ``none``.

        Raises:
            OptionError: A file cannot be written.
        """
        name = os.environ.get(STEP_SUMMARY)
        step_summary = Path(name).absolute() if name and summary != _NONE else None
        given = [path for path in (summary, junit) if path is not None and path != _NONE]
        for path in given:
            check_writable(path)
        # Absolute, because an agent may change the current folder before they are written.
        files = [None if path is None or path == _NONE else absolute_path(path) for path in (summary, junit)]
        if files[0] is not None and step_summary is not None and files[0].resolve() == step_summary.resolve():
            files[0] = None  # the summary is appended, so that what other commands wrote stays
        return cls(files[0], files[1], step_summary, given)

    def write(
        self, run: BenchmarkRun | RunComparison, gates: Sequence[GateResult], *, most_questions: int
    ) -> list[str]:
        """Write the files of a run or a comparison, and return warnings about the job summary.

        Raises:
            RunFolderError: A file that an option names cannot be written.
        """
        warnings = self._add_to_job(run, gates, most_questions)
        for path in (self.summary, self.junit):
            if path is not None:
                make_folder_of(path)
        if self.summary is not None:
            write_summary(run, self.summary, gates=gates, most_questions=most_questions)
        if self.junit is not None and isinstance(run, BenchmarkRun):
            write_junit(run, self.junit, gates=gates)
        return warnings

    def _add_to_job(
        self, run: BenchmarkRun | RunComparison, gates: Sequence[GateResult], most_questions: int
    ) -> list[str]:
        """Append to the job summary; a failure is only a warning, because the user did not request this file."""
        if self.step_summary is None:
            return []
        try:
            taken = self.step_summary.stat().st_size if self.step_summary.exists() else 0
            if taken > MOST_BYTES // 2:
                return [f"the summary of the job is full, nothing was added to {self.step_summary}."]
            text = summary_text(run, gates, most_questions=most_questions, most_bytes=MOST_BYTES - taken)
            with self.step_summary.open("a", encoding="utf-8") as file:
                file.write(f"\n{text}\n" if taken else f"{text}\n")
        except OSError as problem:
            return [f"the summary of the job could not be written: {cannot_write(self.step_summary, problem)}"]
        except GraphRAGEvalError as problem:
            return [f"the summary of the job could not be written: {problem}"]
        return []


def check_writable(path: Path | None) -> None:
    """Refuse a file that cannot be written, before any work is done; its folder need not exist yet.

    Raises:
        OptionError: It cannot be written.
    """
    if path is None:
        return
    if path.is_dir():
        raise OptionError("this is a folder, not a file", path=path, hint="Give the name of a file in it.")
    existing = next(folder for folder in (path, *absolute_path(path).parents) if folder.exists())
    if existing != path and not existing.is_dir():
        raise OptionError(f"{existing} is a file, not a folder", path=path, hint="Give another file.")
    if not os.access(existing, os.W_OK):
        raise OptionError(f"{existing} may not be written", path=path, hint="Give a file where you may write.")


def make_folder_of(path: Path) -> None:
    """Create the folder of a file that is to be written.

    Raises:
        RunFolderError: It cannot be created.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise cannot_write(path, problem) from problem
