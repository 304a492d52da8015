"""A LangGraph agent, a knowledge graph and a reference dataset that need no key and no network.

It is also an example of how to bring your own: a function that returns a compiled graph
(``graphrag_eval_lc.demo.agent:create_demo_agent``), tools whose outputs are strings, and a dataset whose reference
steps name these tools. The power grid is Nordic by its place names only: stations, plants, lines, events and all
numbers are invented. Needs the extra ``demo``.

Attributes:
    DATASET_PATH: The reference dataset (YAML).
    GRAPH_PATH: The knowledge graph (Turtle, compressed by gzip).
    DOCUMENTS_PATH: The documents to search (JSON Lines: id, title, text).
    TEMPLATES_PATH: The questions that are answered by a query, as templates of ``dataset generate`` (YAML).
    VOCABULARY_PATH: The classes and properties of the graph (JSON), which explain failed queries.
    TIME_SERIES_PATH: The time series (JSON Lines: what they are and belong to; ``time_series.py`` makes their values).
"""

from pathlib import Path

from graphrag_eval_lc.public_names import only_public

_DATA = Path(__file__).parent / "data"

DATASET_PATH = _DATA / "dataset.yaml"
GRAPH_PATH = _DATA / "nordic_grid.ttl.gz"
DOCUMENTS_PATH = _DATA / "documents.jsonl"
TEMPLATES_PATH = _DATA / "templates.yaml"
VOCABULARY_PATH = _DATA / "vocabulary.json"
TIME_SERIES_PATH = _DATA / "time_series.jsonl"

__all__ = ["DATASET_PATH", "DOCUMENTS_PATH", "GRAPH_PATH", "TEMPLATES_PATH", "TIME_SERIES_PATH", "VOCABULARY_PATH"]

__dir__ = only_public(globals())
