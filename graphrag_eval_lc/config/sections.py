"""The configuration sections on steps, SPARQL results, retrieval, aggregates, repeats, capture and the graph."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from graphrag_eval_lc.config.base import Section, mistake
from graphrag_eval_lc.metrics import DEFAULT_MEASURES, Distance, Measure, parse_measure
from graphrag_eval_lc.records import RelativeTolerance
from graphrag_eval_lc.registry.metrics import FAMILIES, MAIN_METRIC, RETRIEVAL_IDS, RETRIEVAL_TEXT
from graphrag_eval_lc.registry.step_kinds import RETRIEVAL

Scoring = Literal["last_group", "all_groups"]
Grading = Literal["binary", "graded"]


OutputFormat = Literal["json", "xml", "csv", "tsv", "markdown", "rows", "python"]


def _path_of_keys(path: str) -> str:
    if not all(key.strip() for key in path.split(".")):
        what = f"{path!r:.40} is not a path: it has an empty key" if path else "the path is empty"
        raise mistake(what, "Write the keys with dots between them, such as result.rows, or leave path out.")
    return path


class OutputConfig(Section):
    """Where a tool's results are and what form they have, if this cannot be detected.

    ``path`` and ``artifact`` only apply if an output is parsed as SPARQL results, documents or JSON. Steps that are
    compared as texts are always compared by their outputs.

    Attributes:
        format: The form of SPARQL results: ``json`` (SPARQL 1.1 JSON), ``xml``, ``csv``, ``tsv``, a ``markdown``
            table, ``rows`` (a JSON array of objects) or ``python`` (its repr); None: detected.
        path: The keys that lead to the results in a JSON output, such as ``result.rows``, with numbers for indices of
            an array; None: the whole output.
        artifact: Whether the step's artifact is read in place of its output.

    Example:
        >>> OutputConfig(format="csv", path="result.rows").artifact
        False
    """

    format: OutputFormat | None = None
    path: Annotated[str, AfterValidator(_path_of_keys)] | None = None
    artifact: bool = False

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.format is None and self.path is None and not self.artifact:
            raise mistake("nothing is said of this tool's outputs", "Give format, path or artifact: true.")
        return self


class RowsConfig(Section):
    """How rows of a query language are compared; most of it is in the section ``sparql``.

    Attributes:
        node_keys: The properties that identify a node or a relationship of a property graph, such as ``[iri, name]``:
            those of them that it has are compared. If it has none, or none are named, its labels (of a relationship
            its type) and all its properties are compared, without the ids of the store.
        list_order: Whether the order of the elements of a list in a cell counts. Cypher's ``collect()`` has none unless
            the rows before it are sorted.
    """

    node_keys: list[Annotated[str, Field(min_length=1)]] = Field(default_factory=list)
    list_order: bool = True


class StepsConfig(Section):
    """How the steps of a question become its ``steps_score``.

    Attributes:
        scoring: ``last_group``: only the last group of reference steps counts. ``all_groups``: the mean over the
            groups, going back from the last and stopping after a group that is not fully matched. graphrag-eval 6.6.1
            scores all groups, its version 5 only the last one.
        names: Step names by tool name, for tools with other names than the reference steps:
            ``{search_docs: retrieval}``.
        outputs: How the results of tools are read, by the name of the tool or of its steps (as in ``names``); the tool
            name takes precedence: ``{sparql_query: {format: csv}}``.
        kinds: The kind by which reference steps are compared, by the name of the steps or of the tool:
            ``{read_neo4j_cypher: rows}``. It overrides the kind that follows from names and media types. Retrieval
            steps always stay retrieval.
        rows: How rows of a query language are compared.
        grading: ``binary``: a step matches or does not, and ``scoring`` determines ``steps_score``. ``graded``: a step
            earns partial credit, and ``steps_score`` is ``steps_f1`` over all groups, each matched separately, so
            ``scoring`` has no effect.
    """

    scoring: Scoring = "last_group"
    names: dict[str, str] = Field(default_factory=dict)
    outputs: dict[Annotated[str, Field(min_length=1)], OutputConfig] = Field(default_factory=dict)
    kinds: dict[Annotated[str, Field(min_length=1)], str] = Field(default_factory=dict)
    rows: RowsConfig = Field(default_factory=RowsConfig)
    grading: Grading = "binary"

    @model_validator(mode="after")
    def _scored_in_one_way(self) -> Self:
        if self.grading == "graded" and self.scoring != "last_group":
            what = f"scoring: {self.scoring} has no effect if steps are graded"
            raise mistake(what, "Remove it: all groups count, each for itself.", "scoring")
        return self

    @property
    def counted(self) -> Scoring:
        """The groups that count for ``steps_score``: ``last_group`` or ``all_groups``."""
        return "all_groups" if self.grading == "graded" else self.scoring


class ToleranceConfig(Section):
    """The relative difference up to which two numbers are equal, by XSD datatype: a share of the larger, 0 to below 1.

    If two numbers have different datatypes, the larger tolerance counts. There is no tolerance between decimals, or for
    integers.

    Attributes:
        float: For xsd:float.
        double: For xsd:double, and for numbers without a datatype that are not integers.
    """

    float: RelativeTolerance = 1e-5
    double: RelativeTolerance = 1e-12


class ValuesConfig(Section):
    """Which terms are compared by meaning and not by spelling; none of them if ``strict`` is true.

    Attributes:
        times: xsd:dateTime, dateTimeStamp, date and time. Values with a time zone are compared by instant, and never
            equal a value without one. The same applies to texts without a datatype that are points in time (with or
            without a zone) or times of day with a zone.
        durations: xsd:duration, dayTimeDuration and yearMonthDuration: P1D is PT24H, P1M is not P30D.
        wkt: geo:wktLiteral: spacing and case are ignored, and numbers are compared as numbers.
        nfc: Literals and IRIs are compared in Unicode normalization form C.
        iri_case: The case of percent-encoding in IRIs is ignored (RFC 3986, 6.2.2.1).
    """

    times: bool = True
    durations: bool = True
    wkt: bool = True
    nfc: bool = True
    iri_case: bool = True


class SparqlConfig(Section):
    """How SPARQL results are compared if the reference step does not say.

    Attributes:
        ordered: Compare the rows in order, with duplicates.
        ignore_duplicates: Compare unordered rows as a set; false compares them as a bag.
        strict: Compare RDF terms with kind, datatype and language tag; false compares values.
        tolerance: How much numbers may differ where values are compared; 1e-8 is always allowed.
        values: Which terms are compared by meaning and not by spelling.
    """

    ordered: bool = False
    ignore_duplicates: bool = True
    strict: bool = False
    tolerance: ToleranceConfig = Field(default_factory=ToleranceConfig)
    values: ValuesConfig = Field(default_factory=ValuesConfig)

    def step_defaults(self) -> dict[str, Any]:
        """Return the defaults for the keys of a reference step; ``values`` stays an object, as no step has it."""
        return {**self.model_dump(exclude={"values"}), "values": self.values}


class AnswerGroundingConfig(Section):
    """Whether answers are compared with the rows that they came from, without a model.

    Attributes:
        enabled: Whether each IRI, number, date and name of an answer is looked up in the outputs of the agent's
            successful steps: ``answer_grounded`` and the keys next to it.

    Example:
        >>> AnswerGroundingConfig(enabled=True).enabled
        True
    """

    enabled: bool = False


class AnswerChecksConfig(Section):
    """What answers must say, without a model; see the keys ``reference_entities`` and others of questions.

    Attributes:
        infer: ``required_columns``: the answer must contain the values in the required columns of the reference rows,
            unless the question has one of these keys. Only rows of scored steps count, and only if there are at most
            100.

    Example:
        >>> AnswerChecksConfig(infer="required_columns").infer
        'required_columns'
    """

    infer: Literal["required_columns"] | None = None


class AggregatesConfig(Section):
    """Which responses the statistics include.

    Attributes:
        errors: ``exclude`` leaves failed questions out of the statistics. ``include`` counts their scores as 0, or as
            the greatest value if lower is better.
    """

    errors: Literal["exclude", "include"] = "exclude"


class RepeatsConfig(Section):
    """When a sample passes, for pass@k and pass^k of questions asked several times.

    Attributes:
        metric: The score that decides: one of this package, of a plugin or of a custom evaluation; for a score of
            steps, its mean over the sample's steps.
        threshold: The lowest score that passes or, if lower is better, the highest. It must be in the score's range.
    """

    metric: str = MAIN_METRIC
    threshold: float = Field(default=1.0, allow_inf_nan=False)


def _known_measure(text: str) -> str:
    try:
        parse_measure(text)
    except ValueError as problem:
        what, _, hint = str(problem).partition(": ")
        raise mistake(what, _sentence(hint)) from None
    return text


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?')) or not text else '.'}"


def _without_mark(column: Any) -> Any:
    return column.removeprefix("?") if isinstance(column, str) else column


class RetrievalStepConfig(Section):
    """A tool whose steps count as retrieval; in a file its name alone is enough.

    Attributes:
        name: The name of the tool, or of its steps if ``steps.names`` renames them.
        column: The column of its SPARQL results with the ids, with or without a question mark; None for tools that
            return documents.

    Example:
        >>> RetrievalStepConfig.model_validate("search_docs").name
        'search_docs'
    """

    name: str = Field(min_length=1)
    column: Annotated[Annotated[str, Field(min_length=1)] | None, BeforeValidator(_without_mark)] = None

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, values: Any) -> Any:
        return {"name": values} if isinstance(values, str) else values


class TextSimilarityConfig(Section):
    """How retrieved texts are compared with those of the reference step, if both have texts.

    Attributes:
        enabled: Whether they are compared.
        threshold: The similarity from which two texts count as the same, 0 to 1.
        distance: The distance behind the similarity; see ``metrics.text_context_precision``.
    """

    enabled: bool = True
    threshold: float = Field(default=0.5, ge=0.0, le=1.0)
    distance: Distance = "levenshtein"


class RetrievalConfig(Section):
    """Which steps count as retrieval, and how they are measured without a language model.

    Attributes:
        measures: Measures of the retrieved ids, such as ``P@5`` and ``nDCG@10``; None for precision, recall, F1, RR,
            AP, nDCG, Success and Rprec without a cut-off; an empty list for none.
        steps: The tools that count as retrieval in addition to ``retrieval``: ``[search_docs]``, or for SPARQL results
            ``[{name: sparql_query, column: document}]``.
        missing: ``absent`` leaves reference steps that no step matched out of the metrics; ``zero`` counts them as 0.
        text: How texts are compared.

    Example:
        >>> RetrievalConfig(steps=["search_docs", {"name": "sparql_query", "column": "document"}]).columns()
        {'search_docs': None, 'sparql_query': 'document'}
    """

    measures: list[Annotated[str, AfterValidator(_known_measure)]] | None = None
    steps: list[RetrievalStepConfig] = Field(default_factory=list)
    missing: Literal["absent", "zero"] = "absent"
    text: TextSimilarityConfig = Field(default_factory=TextSimilarityConfig)

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        seen: set[str] = set()
        for index, step in enumerate(self.steps):
            if step.name in seen:
                raise mistake(f"the name {step.name} appears twice", "Remove one of them.", "steps", str(index), "name")
            seen.add(step.name)
        return self

    def parsed_measures(self) -> Sequence[Measure]:
        """Return the measures."""
        return DEFAULT_MEASURES if self.measures is None else _parsed_measures(tuple(self.measures))

    def metric_keys(self) -> dict[str, tuple[str, ...]]:
        """Return the keys of the metrics, by family.

        Example:
            >>> RetrievalConfig(measures=["P@5"], text=TextSimilarityConfig(enabled=False)).metric_keys()
            {'retrieval_ids_': ('retrieval_ids_precision@5',), 'retrieval_text_': ()}
        """
        of_texts = FAMILIES[RETRIEVAL_TEXT].members if self.text.enabled else ()
        return {
            RETRIEVAL_IDS: tuple(f"{RETRIEVAL_IDS}{measure.key}" for measure in self.parsed_measures()),
            RETRIEVAL_TEXT: tuple(f"{RETRIEVAL_TEXT}{measure}" for measure in of_texts),
        }

    def document_step_names(self, names: Mapping[str, str] | None = None) -> frozenset[str]:
        """Return the names of the steps that return documents.

        Args:
            names: ``steps.names``, whose names of the tools' steps count too.
        """
        return frozenset({RETRIEVAL, *(name for name, column in self.columns(names).items() if column is None)})

    def columns(self, names: Mapping[str, str] | None = None) -> dict[str, str | None]:
        """Return by step name which column of SPARQL results has the ids; None for steps that return documents.

        Args:
            names: ``steps.names``, whose names of the tools' steps count too.
        """
        columns = {step.name: step.column for step in self.steps}
        for step in self.steps:
            # An entry for the step name itself takes precedence over one for a tool renamed to it.
            name = (names or {}).get(step.name, RETRIEVAL)
            if name != RETRIEVAL:
                columns.setdefault(name, step.column)
        return columns


@lru_cache(maxsize=64)
def _parsed_measures(measures: tuple[str, ...]) -> tuple[Measure, ...]:
    return tuple(parse_measure(text) for text in measures)


_NonEmptyText = Annotated[str, Field(min_length=1)]


def _switch_or_names(value: Any) -> Any:
    is_names = isinstance(value, list) and all(isinstance(name, str) and name for name in value)
    if isinstance(value, bool) or is_names:
        return value
    raise mistake(f"{value!r:.80} is not allowed here", "Give true, false or a list of tool names.")


def _function_spec(value: Any) -> Any:
    if value is None or value == "secrets":
        return value
    if not isinstance(value, str):
        what = "a config cannot hold a function" if callable(value) else f"{value!r:.80} is not a spec of a function"
        hint = "Name it as text, package.module:function, or pass capture={'redact': function} to run_benchmark."
        raise mistake(what, hint)
    place, _, attribute = value.rpartition(":")
    if not place or not attribute:
        hint = "Write package.module:function or path/to/file.py:function, or secrets."
        raise mistake(f"{value!r:.80} is not a spec of a function", hint)
    return value


class NodeConfig(Section):
    """How a node that runs queries without a tool becomes a step.

    Attributes:
        args: The step's arguments: for each name the keys that lead to its value in the node's input, which is usually
            the state, such as ``{query: statement}``. What the input lacks is left out.
        output: The keys that lead to the results in what the node returns, such as ``cyphers.0.records``; None: all of
            it.

    Example:
        >>> NodeConfig(args={"query": "cypher_statement"}, output="records").output
        'records'
    """

    args: dict[_NonEmptyText, Annotated[str, AfterValidator(_path_of_keys)]] = Field(default_factory=dict)
    output: Annotated[str, AfterValidator(_path_of_keys)] | None = None


class CaptureConfig(Section):
    """What is kept of the agent's runs; see ``GraphRAGEvalCallbackHandler``.

    It is used if an agent is asked. The scoring of recorded responses ignores it, and imports nothing that it names.

    Attributes:
        step_names: Step names in the responses by tool name, for other readers of them; ``steps.names`` maps tools to
            reference steps, and may still change when a run is scored again.
        retrieval_documents: Whether the output of a retriever tool is its documents, as a JSON array of ``{id, text}``:
            true for all tools, or the names of some.
        nodes: The nodes of a LangGraph agent that run queries without a tool, by name: each of their runs is a step.
        max_output_chars: The length in characters to which outputs and errors of steps are cut; None: uncut.
        redact: A function that is applied to args, outputs, artifacts, errors and messages before they are kept:
            ``package.module:function`` or ``path/to/file.py:function``, relative to the current folder; or
            ``secrets``, which masks keys, tokens and passwords, in answers too.
        keep_artifacts: Whether steps have the artifact of a tool.
        keep_messages: Whether responses have the input and output messages of each model call.

    Example:
        >>> CaptureConfig(retrieval_documents=["search_docs"]).keep_artifacts
        True
    """

    step_names: dict[_NonEmptyText, _NonEmptyText] = Field(default_factory=dict)
    retrieval_documents: Annotated[bool | list[str], BeforeValidator(_switch_or_names)] = False
    nodes: dict[_NonEmptyText, NodeConfig] = Field(default_factory=dict)
    max_output_chars: int | None = Field(default=None, ge=0)
    redact: Annotated[str | None, BeforeValidator(_function_spec)] = None
    keep_artifacts: bool = True
    keep_messages: bool = False


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
