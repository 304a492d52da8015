"""The section on the knowledge graph: its place, and what explains a failure with it."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from graphrag_eval_lc.config.base import Section, mistake

_NonEmptyText = Annotated[str, Field(min_length=1)]


class GraphConfig(Section):
    """The knowledge graph that the agent queries.

    Scoring never asks the graph: it uses the vocabulary in a file, which ``graphrag-eval-lc dataset lint`` reads once.
    It needs the extra ``graph``.

    Attributes:
        endpoint: The URL of its SPARQL endpoint, or of Neo4j, such as ``neo4j://localhost:7687``, which needs the extra
            ``neo4j`` and is only asked for its vocabulary.
        file: An RDF file, in place of an endpoint.
        vocabulary: A JSON file with the classes and properties of the graph. ``dataset lint`` writes it if it is
            missing.
        ontology: An RDF file whose classes and properties are known too, whether or not the graph has instances.
        prefixes: The prefixes that the endpoint knows without a declaration.
        explain: Whether the diagnosis of a failed query says how the query differs from the reference query, and what
            in it the graph does not have.

    Example:
        >>> GraphConfig(file="grid.ttl").explain
        True
    """

    endpoint: _NonEmptyText | None = None
    file: _NonEmptyText | None = None
    vocabulary: _NonEmptyText | None = None
    ontology: _NonEmptyText | None = None
    prefixes: dict[str, _NonEmptyText] = Field(default_factory=dict)
    explain: bool = True

    @model_validator(mode="after")
    def _is_in_one_place(self) -> Self:
        if self.endpoint is not None and self.file is not None:
            raise mistake("the graph has an endpoint and a file", "Remove one of them.", "file")
        return self
