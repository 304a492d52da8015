"""Writing a run's report at the end of another command, which it must not spoil."""

from pathlib import Path

from graphrag_eval_lc.errors import GraphRAGEvalError, MissingExtraError
from graphrag_eval_lc.registry.exporters import REPORT, exporter


def written_report(folder: Path) -> tuple[Path | None, str | None]:
    """Write the report into a run's folder.

    Returns:
        The file, or None where it could not be written; and what is to be said then.
    """
    try:
        return exporter(REPORT).export(folder), None
    except MissingExtraError as problem:
        return None, f"There is no report: {problem}"
    except GraphRAGEvalError as problem:
        return None, f"Warning: the report could not be written: {problem}"
    except Exception as problem:  # the run is paid for, and all of it is in its folder
        return None, f"Warning: the report could not be written ({type(problem).__name__}: {problem})."
