"""What continuous integration reads of a command: ``--summary``, ``--junit``, and GitHub's summary of a job."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from graphrag_eval_lc.benchmark.option_fields import DISPLAY
from graphrag_eval_lc.cli.model_options import After
from graphrag_eval_lc.cli.options import tell
from graphrag_eval_lc.errors import GraphRAGEvalError, OptionError, cannot_write
from graphrag_eval_lc.files.opening import absolute_path

if TYPE_CHECKING:
    from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
    from graphrag_eval_lc.compare import RunComparison
    from graphrag_eval_lc.compare.gates import Gate

STEP_SUMMARY: Final = "GITHUB_STEP_SUMMARY"

Summary = Annotated[
    Path | None,
    typer.Option(
        "--summary",
        help="Write the verdict, the scores and the questions to look at as Markdown, such as for the summary of a "
        "job.",
        rich_help_panel=DISPLAY,
        metavar="FILE",
    ),
    After("as_json"),
]
NoSummary = Annotated[
    bool,
    typer.Option(
        "--no-summary",
        help=f"Add no summary to that of the job on GitHub, where it is added by itself (${STEP_SUMMARY}).",
        rich_help_panel=DISPLAY,
    ),
    After("summary"),
]
JUnit = Annotated[
    Path | None,
    typer.Option(
        "--junit",
        help="Write a test case for each question as JUnit's XML: a failure where its score `repeats.metric` does not "
        "reach `repeats.threshold` of the config (steps_score and 1), in any of its repeats; an error where the agent "
        "failed.",
        rich_help_panel=DISPLAY,
        metavar="FILE",
    ),
    After("no_summary"),
]


@dataclass(frozen=True, slots=True)
class CiFiles:
    """The files that a command writes for continuous integration.

    Attributes:
        summary: The file of ``--summary``; None for none.
        junit: That of ``--junit``; None for none.
        step_summary: GitHub's summary of the job, to which the summary is added; None outside of GitHub's jobs.
        given: The files that options name, as they name them; the paths above are from the root.
    """

    summary: Path | None = None
    junit: Path | None = None
    step_summary: Path | None = None
    given: Sequence[Path] = ()

    def write_run(self, run: "BenchmarkRun", gates: "Sequence[Gate]", *, most_questions: int) -> None:
        """Write the files of a run.

        Raises:
            RunFolderError: A file that an option names cannot be written.
        """
        self._add_to_job(run, gates, most_questions)
        self._write_summary(run, gates, most_questions)
        if self.junit is not None:
            # Imported here so that --help does not wait for it.
            from graphrag_eval_lc.report.junit import write_junit

            _make_folder_of(self.junit)
            write_junit(run, self.junit, gates=gates)

    def write_comparison(self, comparison: "RunComparison", gates: "Sequence[Gate]", *, most_questions: int) -> None:
        """Write the files of a comparison.

        Raises:
            RunFolderError: A file that an option names cannot be written.
        """
        self._add_to_job(comparison, gates, most_questions)
        self._write_summary(comparison, gates, most_questions)

    def _write_summary(self, run: "BenchmarkRun | RunComparison", gates: "Sequence[Gate]", most_questions: int) -> None:
        if self.summary is None:
            return
        # Imported here so that --help does not wait for it.
        from graphrag_eval_lc.report.markdown_summary import write_summary

        _make_folder_of(self.summary)
        write_summary(run, self.summary, gates=gates, most_questions=most_questions)

    def _add_to_job(self, run: "BenchmarkRun | RunComparison", gates: "Sequence[Gate]", most_questions: int) -> None:
        """Add the summary to that of the job; what goes wrong is a warning, as nobody asked for it."""
        if self.step_summary is None:
            return
        # Imported here so that --help does not wait for it.
        from graphrag_eval_lc.report.markdown_summary import MOST_BYTES, summary_text

        try:
            taken = self.step_summary.stat().st_size if self.step_summary.exists() else 0
            if taken > MOST_BYTES // 2:
                tell(f"Warning: the summary of the job is full, nothing was added to {self.step_summary}.")
                return
            text = summary_text(run, gates, most_questions=most_questions, most_bytes=MOST_BYTES - taken)
            with self.step_summary.open("a", encoding="utf-8") as file:
                file.write(f"\n{text}\n" if taken else f"{text}\n")
        except OSError as problem:
            tell(f"Warning: the summary of the job could not be written: {cannot_write(self.step_summary, problem)}")
        except GraphRAGEvalError as problem:
            tell(f"Warning: the summary of the job could not be written: {problem}")


NO_FILES: Final = CiFiles()


def ci_files(summary: Path | None, junit: Path | None = None, *, no_summary: bool = False) -> CiFiles:
    """Return the files of a command's options, and GitHub's summary of the job where there is one.

    Raises:
        OptionError: A file cannot be written, or two of them are the same.
    """
    for path in (summary, junit):
        if path is not None:
            check_writable(path)
    if summary is not None and junit is not None and summary.resolve() == junit.resolve():
        raise OptionError("--summary and --junit are the same file", path=summary, hint="Give each a file of its own.")
    name = os.environ.get(STEP_SUMMARY)
    step_summary = Path(name) if name and not no_summary else None
    if step_summary is not None and summary is not None and summary.resolve() == step_summary.resolve():
        summary = None  # it is added to, so that what other commands wrote stays
    # From the root, as an agent may change the current folder before they are written.
    return CiFiles(
        None if summary is None else absolute_path(summary),
        None if junit is None else absolute_path(junit),
        None if step_summary is None else absolute_path(step_summary),
        given=[path for path in (summary, junit) if path is not None],
    )


def check_writable(path: Path) -> None:
    """Refuse a file that cannot be written, before there is anything to write; folders are made when it is written."""
    if path.is_dir():
        raise OptionError("this is a folder, not a file", path=path, hint="Give the name of a file in it.")
    there = next(folder for folder in (path, *absolute_path(path).parents) if folder.exists())
    if there != path and not there.is_dir():
        raise OptionError(f"{there} is a file, not a folder", path=path, hint="Give another file.")
    if not os.access(there, os.W_OK):
        raise OptionError(f"{there} may not be written", path=path, hint="Give a file where you may write.")


def _make_folder_of(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise cannot_write(path, problem) from problem
