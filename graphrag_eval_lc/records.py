"""The types of the records in datasets, responses and results, and the pydantic models that check them."""

import math
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Final, Literal, NotRequired, TypedDict

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, WithJsonSchema
from pydantic_core import PydanticCustomError

Status = Literal["success", "error"]
Id = str | int | float
RelevantIds = list[Id] | list[list[Id]] | dict[Id, float]


class ReferenceStep(TypedDict):
    """A step that a good agent takes, with the output that it should see.

    ``output`` is a string if the step's media type is a text type; recorded datasets also have lists and null.
    ``relevant_ids`` are what a retrieval step should find: ids, ``{id: gain}``, or groups in which one id is enough.
    ``tolerance`` is the share by which numbers of SPARQL results may differ, in all columns.
    ``matches``, in results only, is the id of the actual step that fulfils this one.
    """

    name: str
    args: NotRequired[dict[str, Any]]
    output: NotRequired[Any]
    output_media_type: NotRequired[str | None]
    required_columns: NotRequired[list[str] | None]
    ordered: NotRequired[bool]
    ignore_duplicates: NotRequired[bool]
    strict: NotRequired[bool]
    tolerance: NotRequired[float | None]
    relevant_ids: NotRequired[RelevantIds | None]
    matches: NotRequired[str]


class ActualStep(TypedDict):
    """A tool call that an agent made.

    It has ``output`` if the call succeeded, and ``error`` if it failed. ``execution_timestamp`` is ISO 8601 in UTC,
    ``elapsed_sec`` in seconds. ``parent_id`` is the id of the step inside which this one ran. ``artifact`` is what the
    tool returned in addition to its text. ``full_length`` is the number of characters before an output was cut.
    ``output`` or ``error`` is what the model saw. If the agent changed the tool's result, the original is in
    ``tool_output`` or ``tool_error``. ``cached`` is true if LangGraph's node cache answered and no tool ran.
    In results, retrieval steps also have metrics: ``retrieval_ids_…`` and ``retrieval_text_…``; ``comparison_error``
    says why an output cannot be compared, and ``output_cut`` at which place an output was cut off.
    """

    name: str
    args: dict[str, Any]
    id: str
    status: Status
    output: NotRequired[str]
    error: NotRequired[str]
    execution_timestamp: NotRequired[str]
    elapsed_sec: NotRequired[float]
    parent_id: NotRequired[str]
    attempts: NotRequired[int]
    tool_output: NotRequired[str]
    tool_error: NotRequired[str]
    cached: NotRequired[bool]
    artifact: NotRequired[Any]
    full_length: NotRequired[int]
    comparison_error: NotRequired[str]
    output_cut: NotRequired[str]


class ModelCall(TypedDict):
    """One call of a chat model or LLM. What the provider did not report is absent, never 0.

    ``input_tokens`` include ``cached_input_tokens``, which the provider read from its cache, and
    ``cache_write_input_tokens``, which it wrote to it; ``cache_write_1h_input_tokens`` are those of the written ones
    that it keeps for an hour. ``output_tokens`` include ``reasoning_tokens``. ``finish_reason`` is the provider's word
    for why the answer ended. ``cost`` is in USD.
    ``started_at`` is ISO 8601 in UTC; ``first_token_sec`` the seconds to the first token of a streamed answer.
    ``node`` is the node of the graph in which it ran; in nested graphs ``node_path`` has all nodes from the outermost
    graph. ``agent`` is the agent's name, and ``parent_id`` the id of the step inside which it ran.

    With ``keep_messages``, ``input_messages`` has ranges ``[start, stop)`` of the response's ``llm_messages``,
    ``output_message`` the index of the answer there, and ``tools`` ranges of ``llm_tools``.
    """

    model: NotRequired[str]
    input_tokens: NotRequired[int]
    output_tokens: NotRequired[int]
    total_tokens: NotRequired[int]
    cached_input_tokens: NotRequired[int]
    cache_write_input_tokens: NotRequired[int]
    cache_write_1h_input_tokens: NotRequired[int]
    reasoning_tokens: NotRequired[int]
    finish_reason: NotRequired[str]
    elapsed_sec: NotRequired[float]
    cost: NotRequired[float]
    error: NotRequired[str]
    started_at: NotRequired[str]
    first_token_sec: NotRequired[float]
    node: NotRequired[str]
    node_path: NotRequired[list[str]]
    agent: NotRequired[str]
    parent_id: NotRequired[str]
    input_messages: NotRequired[list[list[int]]]
    output_message: NotRequired[int]
    tools: NotRequired[list[list[int]]]


class KeptToolCall(TypedDict):
    """A tool call in a kept message; ``error`` says what is wrong with an invalid one."""

    name: str | None
    args: Any
    id: str | None
    error: NotRequired[str]


class KeptMessage(TypedDict):
    """A message to or from a model, in the form that LangChain's ``convert_to_messages`` accepts.

    ``role`` is system, user, assistant, tool or a model's own. ``content`` is a text or a list of content blocks.
    ``full_length`` is the number of characters of its texts before they were cut.
    """

    role: str
    content: Any
    name: NotRequired[str]
    tool_calls: NotRequired[list[KeptToolCall]]
    invalid_tool_calls: NotRequired[list[KeptToolCall]]
    tool_call_id: NotRequired[str]
    status: NotRequired[str]
    refusal: NotRequired[str]
    reasoning_content: NotRequired[str]
    full_length: NotRequired[int]


class Response(TypedDict):
    """What an agent did and said for one question.

    It has ``error`` if the agent failed; the steps, tokens and time up to the failure are kept. ``question_text`` is
    what the agent was asked, if the response was captured without a dataset. ``elapsed_sec`` is wall time.

    ``started_at`` is ISO 8601 in UTC. ``run_id`` is LangChain's id of the run, by which LangSmith finds its trace. If
    there were several runs, such as a paused one and the one that resumed it, it is the id of the first, and
    ``run_ids`` has all. ``trace_ids`` has the ids of the run in other tracers: ``langsmith``, ``opentelemetry`` with
    ``opentelemetry_span``, ``langfuse`` and ``mlflow``.
    ``tags`` and ``metadata`` are those of its config, with secrets masked. ``llm_messages`` and ``llm_tools`` are the
    messages and tools of the model calls, each once, if they were kept.
    """

    question_id: NotRequired[str]
    question_text: NotRequired[str]
    status: NotRequired[Status]
    error: NotRequired[str]
    actual_answer: NotRequired[str | None]
    actual_steps: NotRequired[list[ActualStep]]
    input_tokens: NotRequired[int]
    output_tokens: NotRequired[int]
    total_tokens: NotRequired[int]
    started_at: NotRequired[str]
    elapsed_sec: NotRequired[float]
    run_id: NotRequired[str]
    run_ids: NotRequired[list[str]]
    trace_ids: NotRequired[dict[str, str]]
    tags: NotRequired[list[str]]
    metadata: NotRequired[dict[str, Any]]
    agent_cost: NotRequired[float]
    llm_calls: NotRequired[list[ModelCall]]
    llm_messages: NotRequired[list[KeptMessage]]
    llm_tools: NotRequired[list[dict[str, Any]]]
    capture_warnings: NotRequired[list[str]]


class Question(TypedDict):
    """One question of a reference dataset.

    ``reference_steps`` are groups of steps. Groups are in order; inside a group the steps may come in any order.
    """

    id: str
    question_text: str
    reference_answer: NotRequired[str | None]
    reference_steps: NotRequired[list[list[ReferenceStep]] | None]
    reference_entities: NotRequired[list[str | list[str]] | None]
    reference_numbers: NotRequired[list[float | dict[str, Any]] | None]
    reference_dates: NotRequired[list[str] | None]
    reference_boolean: NotRequired[bool | None]
    reference_order: NotRequired[list[str | list[str]] | None]
    reference_none: NotRequired[bool | None]


class Template(TypedDict):
    """Questions of one kind."""

    template_id: str
    questions: NotRequired[list[Question] | None]


# The keys of a question that say what its answer must have.
CHECK_KEYS: Final = (
    *("reference_entities", "reference_numbers", "reference_dates"),
    *("reference_boolean", "reference_order", "reference_none"),
)

QuestionWithTemplate = tuple[Template, Question]


class Result(TypedDict):
    """One scored question: its reference, the response, and the scores.

    ``retrieval_missing`` is the number of scored reference steps of retrieval that no actual step fulfilled, and
    ``retrieval_text_missing`` the number of those with texts; absent if the question has no such steps.
    ``steps_score_upper`` is what ``steps_score`` would be if all undecided steps matched; absent if none is undecided.
    ``steps_recall``, ``steps_precision``, ``steps_f1`` and ``steps_order`` cover all groups of reference steps.
    Other keys of the question and of the response are kept.
    """

    template_id: str
    question_id: str
    question_text: str
    reference_answer: NotRequired[str | None]
    reference_steps: NotRequired[list[list[ReferenceStep]] | None]
    actual_answer: NotRequired[str | None]
    actual_steps: list[ActualStep]
    status: Status
    error: NotRequired[str]
    steps_score: NotRequired[float]
    steps_score_upper: NotRequired[float]
    retrieval_missing: NotRequired[int]
    retrieval_text_missing: NotRequired[int]
    input_tokens: NotRequired[int]
    output_tokens: NotRequired[int]
    total_tokens: NotRequired[int]
    elapsed_sec: NotRequired[float]
    steps_recall: NotRequired[float]
    steps_precision: NotRequired[float]
    steps_f1: NotRequired[float]
    steps_order: NotRequired[float]


# The error of a question without a response.
NO_RESPONSE = "there is no response to this question"
# The capture warning of a run that is paused, and why it did not take a reference step.
PAUSED = "the run is paused (interrupted): it waits to be resumed"


def step_status(status: Any) -> Any:
    """Return the status of a step or response as the formats write it: ``Success`` is ``success``."""
    if status in ("success", "error") or not isinstance(status, str):
        return status
    plain = status.strip().lower()
    return plain if plain in ("success", "error") else status


def is_error(record: Mapping[str, Any]) -> bool:
    """Return whether a response or result is of a question that failed."""
    status = record.get("status")
    is_failed = status == "error" if status in ("success", "error") else step_status(status) == "error"
    return is_failed or record.get("error") is not None


class StepsSummary(TypedDict, total=False):
    """How many times each tool was called, by tool name; a part that would be empty is absent."""

    total: dict[str, int]
    once_per_sample: dict[str, int]
    empty_results: dict[str, int]
    errors: dict[str, int]


def _text_from_number(value: object) -> object:
    """Return the text of an id that YAML reads as a number because it has no quotes."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Identifier = Annotated[
    str,
    BeforeValidator(_text_from_number),
    Field(min_length=1),
    WithJsonSchema({"type": ["string", "integer"], "minLength": 1}),
]


def _listed(value: object) -> object:
    if isinstance(value, str | bytes) or not isinstance(value, Collection):
        raise PydanticCustomError("relevant_ids", "Give a list of ids, a list of groups of ids, or gains by id")
    return value


_ID_SCHEMA: dict[str, Any] = {"type": ["string", "number"]}
_GainsOrIds = Annotated[
    Any,
    AfterValidator(_listed),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "array", "items": _ID_SCHEMA, "minItems": 1},
                {"type": "array", "items": {"type": "array", "items": _ID_SCHEMA, "minItems": 1}, "minItems": 1},
                {"type": "object", "additionalProperties": {"type": "number", "minimum": 0}, "minProperties": 1},
            ]
        }
    ),
]


def relative_tolerance(value: object) -> float:
    """Return a relative tolerance as a number, also from a text: YAML 1.1 reads 1e-6 as a text."""
    try:
        tolerance = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]  # it raises
    except (TypeError, ValueError, OverflowError):
        tolerance = math.nan
    if not 0 <= tolerance < 1:
        raise PydanticCustomError("tolerance", "Give a share from 0 to below 1, such as 1e-6 for a millionth")
    return tolerance


RelativeTolerance = Annotated[
    float,
    BeforeValidator(relative_tolerance),
    WithJsonSchema({"type": "number", "minimum": 0, "exclusiveMaximum": 1}),
]


class _Checked(BaseModel):
    # Records are checked and stay dicts, so that their other keys need not be kept here.
    model_config = ConfigDict(
        extra="ignore", json_schema_extra={"additionalProperties": True}, use_attribute_docstrings=True
    )


class ReferenceStepModel(_Checked):
    """A step that a good agent makes."""

    name: Annotated[str, Field(min_length=1)]
    """The step's name, such as sparql_query, iri_discovery, retrieval, or the tool's own."""
    args: dict[str, Any] | None = None
    """The arguments. They are compared for retrieve_time_series and retrieve_data_points; retrieval reads k."""
    output: Any = None
    """What the tool returns; for iri_discovery the IRI, for retrieval a JSON array of objects with an id."""
    output_media_type: str | None = None
    """application/sparql-results+json, text/csv, text/tab-separated-values, text/tsv, application/sparql-results+xml, \
text/boolean, text/turtle, application/x-turtle, application/n-triples, application/ld+json, application/rdf+xml, \
application/trig, application/n-quads: rows; application/json: JSON values, with required_columns or of queries rows; \
none: rows of queries, else texts."""
    required_columns: list[str] | None = None
    """The columns that must be there, under any name. Without it: all; []: only whether there are rows."""
    ordered: bool | None = None
    """Whether the rows must come in this order, duplicates too."""
    ignore_duplicates: bool | None = None
    """Whether unordered rows are compared as a set; false compares them as a bag."""
    strict: bool | None = None
    """Whether rows are compared as RDF terms, with kind, datatype and language tag; false compares values."""
    tolerance: RelativeTolerance | None = None
    """The share by which the numbers of SPARQL results may differ, integers apart: 1e-6 is a millionth."""
    relevant_ids: _GainsOrIds | None = None
    """What a retrieval step should find, in place of the ids in output: ids, groups of which one will do, or gains."""


def _no_boolean(value: object) -> object:
    """Refuse true and false, which Python takes for 1 and 0."""
    if isinstance(value, bool):
        raise PydanticCustomError("no_boolean", "Give a number, not true or false")
    return value


class ReferenceNumberModel(_Checked):
    """A number that the answer must have."""

    value: Annotated[float, Field(allow_inf_nan=False), BeforeValidator(_no_boolean)]
    """The number."""
    unit: str | None = None
    """Its unit, such as kV; the answer may have another one of the same quantity, or none."""
    tolerance: RelativeTolerance | None = None
    """The share by which the answer may differ: 0.01 is one per cent. Rounding is always allowed."""


# One form for each type of input, so that errors name the key and not all the forms that were tried.
_ReferenceNumber = Annotated[
    ReferenceNumberModel,
    BeforeValidator(
        lambda value: value if isinstance(value, Mapping) else {"value": value},
        json_schema_input_type=float | ReferenceNumberModel,
    ),
]
_Name = Annotated[str, Field(min_length=1)]
_Names = Annotated[list[_Name], Field(min_length=1)]
_Entity = Annotated[
    _Names,
    BeforeValidator(
        lambda value: value if isinstance(value, list | tuple) else [value], json_schema_input_type=_Name | _Names
    ),
]


class QuestionModel(_Checked):
    """A question with its reference."""

    id: Identifier
    """The question's id, unique in the dataset."""
    question_text: str
    """What the agent is asked."""
    reference_answer: Any = None
    """The right answer."""
    reference_steps: list[list[ReferenceStepModel]] | None = None
    """Groups of steps. The groups come one after the other, the steps inside a group in any order."""
    reference_entities: Annotated[list[_Entity], Field(min_length=1)] | None = None
    """What the answer must name: for each entity its IRI or name, or a list of those of which one will do."""
    reference_numbers: Annotated[list[_ReferenceNumber], Field(min_length=1)] | None = None
    """The numbers that the answer must have, with unit and tolerance if you like."""
    reference_dates: Annotated[list[_Name], Field(min_length=1)] | None = None
    """The dates or times that the answer must have, as 2024-05-02 or 2024-05-02T14:30:00Z."""
    reference_boolean: StrictBool | None = None
    """Whether the answer must say yes."""
    reference_order: Annotated[list[_Entity], Field(min_length=2)] | None = None
    """What the answer must name in this order, as in reference_entities."""
    reference_none: StrictBool | None = None
    """Whether the answer must say that there is none."""


class TemplateModel(_Checked):
    """Questions of one kind."""

    template_id: Identifier
    """The template's id, unique in the dataset."""
    questions: list[QuestionModel] | None = None
    """The questions."""


_Tokens = Annotated[int, Field(ge=0), BeforeValidator(_no_boolean)]
_Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False), BeforeValidator(_no_boolean)]


class ActualStepModel(_Checked):
    """A tool call that the agent made."""

    name: str
    """The tool's name."""
    status: str | None = None
    """success or error."""
    args: Any = None
    """The arguments of the call."""
    output: Any = None
    """What the tool returned, as a text."""
    error: Any = None
    """Why the call failed."""
    full_length: Any = None
    """The number of characters of an output that was cut as it was kept."""
    tool_output: Any = None
    """What the tool itself returned, if the agent changed it before the model saw it."""
    tool_error: Any = None
    """The tool's own error, if the agent made a result of it."""
    cached: Any = None
    """Whether LangGraph's node cache answered, so that no tool ran."""


class ResponseModel(_Checked):
    """What the agent did and said for one question."""

    question_id: Identifier
    """The id of the question that it answers."""
    actual_steps: list[ActualStepModel] | None = None
    """The tool calls in order."""
    actual_answer: Any = None
    """The agent's answer."""
    error: Any = None
    """Why the agent failed; a response with it is an error sample."""
    input_tokens: _Tokens | None = None
    """Tokens of all prompts."""
    output_tokens: _Tokens | None = None
    """Tokens of all model answers."""
    total_tokens: _Tokens | None = None
    """All tokens."""
    elapsed_sec: _Seconds | None = None
    """Seconds from question to answer, by the clock on the wall."""
    started_at: Any = None
    """When the run began, as an ISO 8601 text in UTC."""
    run_id: Any = None
    """LangChain's id of the run, by which its trace is found."""
    run_ids: Any = None
    """The ids of all runs that make the response, if there are several: one was paused, others resumed it."""
    trace_ids: Any = None
    """The ids of the run's traces in other tools: langsmith, opentelemetry, opentelemetry_span, langfuse, mlflow."""
    tags: Any = None
    """The tags of the run's config, a list of texts."""
    metadata: Any = None
    """The metadata of the run's config, an object; secrets are masked."""
    llm_calls: Any = None
    """The calls of models, a list of objects: model, tokens, started_at, first_token_sec, node, agent and others."""
    llm_messages: Any = None
    """What the model calls received and returned, each message once: a list of objects with role and content."""
    llm_tools: Any = None
    """The definitions of the tools that models were given, each once."""


Key = tuple[str, int]
"""The key of a response: its question id, and the repeat of the question, from 1."""
