"""Which columns of a dataset hold the question, its query, its results and its answers, by their names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from graphrag_eval_lc.dataset.import_shapes import UnknownShapeError, is_blank, plain_name, query_of
from graphrag_eval_lc.dataset.query_language import language_of
from graphrag_eval_lc.errors import DatasetError
from graphrag_eval_lc.matching.rows.row_steps import CYPHER_QUERY, SPARQL_QUERY
from graphrag_eval_lc.texts import listed

# The usual names of each column, plain; of several the first one counts.
QUESTIONS: Final = (
    "question", "corrected_question", "question_text", "natural_language_question", "nl_question", "user_input",
    "input", "prompt", "utterance", "nl", "text", "messages", "inputs",
)  # fmt: skip
# A question that is blank has one of these in its place.
_PARAPHRASES: Final = ("paraphrased_question", "nnqt_question")
QUERIES: Final = (
    "query", "sparql", SPARQL_QUERY, "sparql_wikidata", "sparql_dbpedia18", "cypher", CYPHER_QUERY, "sql", "sql_query",
    "gold_query", "gold_sparql", "gold_sql", "gold_cypher",
)  # fmt: skip
_IDS: Final = ("id", "question_id", "_id", "uid", "qid", "instance_id", "questionid")
_TEMPLATES: Final = ("template_id", "template", "sparql_template_id")
_RESULTS: Final = ("results", "result", "answer_json")
# Results if they are rows next to a query, else gold answers.
_GOLD_OR_RESULTS: Final = ("gold", "expected_result", "expected_results", "gold_result", "gold_results")
_TEXTS: Final = ("answer", "answers", "output", "outputs", "response", "responses")
# What says most clearly that it is gold comes first: what stands in front, and whether it is a name of its own.
_GOLD: Final = tuple(dict.fromkeys((
    "reference_answer", "reference", *(
        name
        for front, own in (
            ("reference", ()), ("ref", ()), ("expected", ("expected",)), ("gold", ("gold_label",)), ("golden", ()),
            ("ground_truth", ("ground_truth", "ground_truths")), ("groundtruth", ("groundtruth", "groundtruths")),
            ("gt", ("gt",)), ("target", ("target", "targets")), ("ideal", ("ideal",)), ("correct", ()), ("best", ()),
            ("true", ("truth", "true_label")), ("standard", ()), ("canonical", ()), ("human", ()),
        )
        for name in (*(f"{front}_{text}" for text in _TEXTS), f"answer_{front}", *own)
    ),
    "generation_gt", "label", "outputs",
)))  # fmt: skip
_RESPONSES: Final = (
    "response", "prediction", "predicted",
    *(
        f"{front}_{text}"
        for front in ("actual", "predicted", "model", "generated", "llm", "agent", "system")
        for text in _TEXTS
    ),
)  # fmt: skip
_TRUTH: Final = ("true", "false")
# Gold if nothing else is; next to any name of gold they are answers of a model.
_GOLD_OR_RESPONSES: Final = ("answer", "answer_text", "output")
# What a system retrieved, as ragas has it: an answer next to it is that of the system.
_RETRIEVED: Final = ("contexts", "retrieved_contexts")
ANSWERS: Final = (*_GOLD, "answer", "answers", "output", *_RESPONSES, *_RESULTS, "text", "content", "messages")
RELEVANT_IDS: Final = ("relevant_ids", "retrieval_gt")


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that a user names; None: found by their usual names."""

    question: str | None = None
    query: str | None = None  # the query that answers it
    id: str | None = None
    template: str | None = None
    results: str | None = None  # the results of the query
    answer: str | None = None

    @property
    def given(self) -> list[str]:
        """The columns whose names are given."""
        return [field.name for field in fields(self) if getattr(self, field.name) is not None]


@dataclass(frozen=True, slots=True)
class Fields:
    """The columns of a dataset that hold each field, the one that counts first."""

    questions: Sequence[str]
    query: str | None
    ids: Sequence[str]
    templates: Sequence[str]
    results: str | None
    gold: Sequence[str]
    responses: Sequence[str]
    relevant_ids: Sequence[str]


def found_fields(
    names: Sequence[str], records: Sequence[Mapping[str, Any]], given: Columns, path: str, *, needs_all: bool
) -> Fields:
    """Return the columns of each field, by the given names or the usual ones.

    With ``needs_all`` there must be a question, and something that a reference is made of.
    """
    all_names = f"The columns are: {listed([name for name in names if name], 20) or 'none'}."
    taken = [getattr(given, role) for role in given.given]
    for name in taken:
        if name not in names:
            raise DatasetError(f"found no column {name}", path=path, line=1, hint=all_names)
    plain = {plain_name(name): name for name in reversed(names) if name not in taken}

    def there(usual: Sequence[str], own: str | None = None) -> list[str]:
        return [own] if own is not None else [plain[each] for each in usual if each in plain]

    questions, queries = there(QUESTIONS, given.question)[:1], there(QUERIES, given.query)
    texts = [text for record in records if isinstance(text := record.get(plain.get("query", "")), str)]
    # Some questions begin as queries do: "Select a line from the list".
    are_questions = sum(language_of(text) is None for text in texts) * 2 > len(texts)
    if not questions and queries[:1] == [plain.get("query")] and are_questions:
        questions, queries = queries[:1], queries[1:]
    if len(queries) > 1:
        queries = [name for name in queries if any(_is_query(record.get(name), name) for record in records)] or queries
    if len(queries) > 1 and needs_all:
        hint = f"Say which holds the query: --query-column {queries[0]}."
        raise DatasetError(f"the columns {listed(queries)} may all hold the query", path=path, line=1, hint=hint)
    rows = there(_GOLD_OR_RESULTS) if queries else []
    rows = [name for name in rows if not any(_is_text(record.get(name)) for record in records)]
    gold = [name for name in there((*_GOLD, *_GOLD_OR_RESULTS), given.answer) if name not in rows]
    of_queries = (*map(plain_name, rows), *(() if gold else ("output",))) if queries else ()
    results = there((*_RESULTS, *of_queries), given.results)[:1]
    doubtful = [name for name in there(_GOLD_OR_RESPONSES) if name not in results]
    responses = there(_RESPONSES)
    if gold or (not responses and there(_RETRIEVED)):
        responses += doubtful
    else:
        gold += doubtful
    gold += there(("answers",))
    relevant, questions = there(RELEVANT_IDS), questions + ([] if given.question else there(_PARAPHRASES))
    if needs_all and not (questions and (queries or results or gold or responses or relevant)):
        missing = "query" if questions else "question"
        hint = f"Name it: --{missing}-column NAME. {all_names}"
        raise DatasetError(f"found no column with the {missing}", path=path, line=1, hint=hint)
    ids, templates = there(_IDS, given.id), there(_TEMPLATES, given.template)
    return Fields(
        questions, next(iter(queries), None), ids, templates, next(iter(results), None), gold, responses, relevant
    )


def _is_query(value: Any, name: str) -> bool:
    try:
        return query_of(value, name) is not None
    except UnknownShapeError:
        return False


def _is_text(value: Any) -> bool:
    """Return whether a value is an answer in words, and no rows or truth value."""
    return isinstance(value, str) and value.strip()[:1] not in ("", "{", "[") and value.strip().casefold() not in _TRUTH


def first_value(record: Mapping[str, Any], names: Sequence[str]) -> tuple[str, Any]:
    """Return the first of some columns that has something in it, and its value."""
    filled = ((name, record[name]) for name in names if not is_blank(record.get(name)))
    return next(filled, (names[0] if names else "", None))


def other_values(record: Mapping[str, Any], names: Sequence[str], read: str) -> list[str]:
    """Return the columns that have something in them other than that of the one which is read."""
    return [name for name in names if not is_blank(record.get(name)) and record[name] != record[read]]
