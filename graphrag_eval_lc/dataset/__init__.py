"""Reference datasets and recorded responses: reading, validating and drafting them."""

from graphrag_eval_lc.dataset.loading import (
    RESPONSES,
    TEMPLATES,
    DatasetSource,
    Responses,
    checked_dataset,
    load_dataset,
    load_response_records,
    load_responses,
    questions_of,
    read_response_records,
    response_key,
    response_records,
    templates_of,
)
from graphrag_eval_lc.public_names import only_public

__all__ = [
    "RESPONSES",
    "TEMPLATES",
    "DatasetSource",
    "Responses",
    "checked_dataset",
    "load_dataset",
    "load_response_records",
    "load_responses",
    "questions_of",
    "read_response_records",
    "response_key",
    "response_records",
    "templates_of",
]

__dir__ = only_public(globals())
