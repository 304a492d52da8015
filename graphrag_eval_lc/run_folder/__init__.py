"""The folder of a run: the names and formats of its files, written so that a crash loses nothing."""

from graphrag_eval_lc.files.opening import RUN_FILE
from graphrag_eval_lc.files.writing import write_data, yaml_text
from graphrag_eval_lc.public_names import only_public
from graphrag_eval_lc.records import Key
from graphrag_eval_lc.run_folder.folder import (
    AGGREGATES_FILE,
    CONFIRMATION,
    FORMAT_VERSION,
    RESPONSES_FILE,
    RESULTS_FILE,
    FolderLock,
    RunFolder,
    read_run,
    recorded_dataset,
)
from graphrag_eval_lc.run_folder.journal import Journal, ResultsFile, Summary, iter_responses, iter_results

__all__ = [
    "AGGREGATES_FILE",
    "CONFIRMATION",
    "FORMAT_VERSION",
    "RESPONSES_FILE",
    "RESULTS_FILE",
    "RUN_FILE",
    "FolderLock",
    "Journal",
    "Key",
    "ResultsFile",
    "RunFolder",
    "Summary",
    "iter_responses",
    "iter_results",
    "read_run",
    "recorded_dataset",
    "write_data",
    "yaml_text",
]

__dir__ = only_public(globals())
