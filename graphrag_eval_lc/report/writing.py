"""Making the report of a run and writing it to a file."""

from importlib.util import find_spec
from os import PathLike
from pathlib import Path

from graphrag_eval_lc import __version__
from graphrag_eval_lc.comparison.run_source import RunSource
from graphrag_eval_lc.errors import MissingExtraError, OptionError
from graphrag_eval_lc.registry.exporters import REPORT, exporter
from graphrag_eval_lc.registry.own_metrics import recorded_only_here
from graphrag_eval_lc.report.data import report_data
from graphrag_eval_lc.report.page import render_report
from graphrag_eval_lc.report.reported_run import ReportedRun, reported_run
from graphrag_eval_lc.run_folder.atomic import replace_file


@recorded_only_here()
def write_report(run: RunSource, path: str | PathLike[str] | None = None) -> Path:
    """Write the report of a run: one HTML file that needs nothing else.

    Args:
        run: The folder of a run, what ``run_benchmark`` or ``score_run`` gave, or a list of results.
        path: The file; None for ``report.html`` in the run's folder. One that is there is replaced as a whole.

    Returns:
        The file's path.

    Raises:
        RunFolderError: The run cannot be read, or the file cannot be written.
        MissingExtraError: Jinja2 is not installed.
        OptionError: The path is a folder or in a folder that is not there, or no path is given for a run without one.
    """
    if path is not None:
        _check(Path(path))  # before the results are read, which may take long
    reported = reported_run(run)
    target = Path(path) if path is not None else reported.file_of(REPORT)
    replace_file(target, [_page(reported).encode("utf-8")])
    return target


@recorded_only_here()
def report_html(run: RunSource) -> str:
    """Give the report of a run as the text of an HTML page.

    Args:
        run: The folder of a run, what ``run_benchmark`` or ``score_run`` gave, or a list of results.

    Raises:
        RunFolderError: The run cannot be read.
        MissingExtraError: Jinja2 is not installed.
    """
    return _page(reported_run(run))


def _check(path: Path) -> None:
    if path.is_dir():
        raise OptionError(
            "this is a folder", path=path, mend=f"Give a file, such as {path / exporter(REPORT).file_name}."
        )
    if not path.parent.is_dir():
        raise OptionError(
            "the report's folder is not there", path=path.parent, mend="Make it first, or give a file elsewhere."
        )


def _page(run: ReportedRun) -> str:
    if find_spec("jinja2") is None:  # said before the results are read, which may take long
        raise MissingExtraError("A report", "report", "jinja2")
    return render_report(report_data(run, __version__))
