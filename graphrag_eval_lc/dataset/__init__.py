"""Loads, checks, drafts and imports reference datasets, and loads recorded responses."""

from graphrag_eval_lc.dataset.loading import (
    RESPONSES,
    TEMPLATES,
    DatasetSource,
    Responses,
    load_dataset,
    load_responses,
    questions_of,
    read_dataset,
    read_responses,
    response_key,
)
from graphrag_eval_lc.public_names import only_public

__all__ = [
    "RESPONSES",
    "TEMPLATES",
    "DatasetSource",
    "Responses",
    "load_dataset",
    "load_responses",
    "questions_of",
    "read_dataset",
    "read_responses",
    "response_key",
]

__dir__ = only_public(globals())
