"""Which columns of a dataset hold the question, its query, its results and its answers, by their names."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from graphrag_eval_lc.dataset.query_language import language_of
from graphrag_eval_lc.dataset.source_shapes import UnknownShapeError, is_blank, plain_name, query_of
from graphrag_eval_lc.errors import DatasetError
from graphrag_eval_lc.matching.rows.media_types import CYPHER_QUERY, SPARQL_QUERY
from graphrag_eval_lc.texts import listed

# The usual names of each column, plain; of several the first one counts.
QUESTIONS: Final = (
    "question", "corrected_question", "question_text", "natural_language_question", "nl_question", "user_input", "input",
    "prompt", "utterance", "nl", "text", "messages",
)  # fmt: skip
# A question that is blank has one of these in its place.
_PARAPHRASES: Final = ("paraphrased_question", "nnqt_question")
QUERIES: Final = (
    "query", "sparql", SPARQL_QUERY, "sparql_wikidata", "sparql_dbpedia18", "cypher", CYPHER_QUERY, "sql", "sql_query",
    "gold_query", "gold_sparql", "gold_sql", "gold_cypher",
)  # fmt: skip
_IDS: Final = ("id", "question_id", "_id", "uid", "qid", "instance_id", "questionid")
_TEMPLATES: Final = ("template_id", "template", "sparql_template_id")
_RESULTS: Final = ("results", "result")
# Results next to a query, answers without one.
_RESULTS_OR_ANSWERS: Final = ("output", "gold")
# What says most clearly that it is gold comes first.
_GOLD: Final = (
    "reference_answer", "reference_answers", "reference", "expected_answer", "expected_answers", "expected_output",
    "expected_response", "gold_answer", "gold_answers", "golden_answer", "golden_answers", "ground_truth",
    "ground_truth_answer", "ground_truths", "target", "target_answer", "ideal", "ideal_answer", "correct_answer",
    "correct_answers", "best_answer", "generation_gt", "reference_output", "reference_outputs", "expected", "label",
)  # fmt: skip
_RESPONSES: Final = (
    "response", "actual_output", "actual_answer", "prediction", "predicted_answer", "model_answer", "model_output",
    "generated_answer", "llm_answer",
)  # fmt: skip
# Gold if nothing else is; next to any name of gold they are answers of a model.
_GOLD_OR_RESPONSES: Final = ("answer", "output")
ANSWERS: Final = (*_GOLD, "answer", "answers", "output", *_RESPONSES, *_RESULTS, "text", "content", "messages")
RELEVANT_IDS: Final = ("relevant_ids", "retrieval_gt")


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of the columns that a user gives; None: found by their usual names.

    Attributes:
        question: What the agent is asked.
        query: The query that answers it.
        id: The question's id.
        template: Its template.
        results: The results of the query.
        answer: The answer in words.
    """

    question: str | None = None
    query: str | None = None
    id: str | None = None
    template: str | None = None
    results: str | None = None
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


def found_fields(names: Sequence[str], records: Sequence[Mapping[str, Any]], given: Columns, path: str) -> Fields:
    """Return the columns that there are, by the given names or the usual ones.

    Args:
        names: The names of all columns.
        records: The records, whose values settle which of several columns holds queries.
        given: The names that the user gives.
        path: The file, for messages.

    Raises:
        DatasetError: A given column is missing, or several may be the query's.
    """
    taken = [getattr(given, role) for role in given.given]
    for name in taken:
        if name not in names:
            raise DatasetError(
                f"there is no column {name}", path=path, line=1, hint=f"The columns are: {all_of(names)}."
            )
    plain = {plain_name(name): name for name in reversed(names) if name not in taken}

    def there(usual: Sequence[str], own: str | None = None) -> list[str]:
        return [own] if own is not None else [plain[each] for each in usual if each in plain]

    questions = there(QUESTIONS, given.question)[:1]
    queries = there(QUERIES, given.query)
    if not questions and given.query is None and "query" in plain and not _has_language(plain["query"], records):
        questions = [plain["query"]]
        queries.remove(plain["query"])
    if len(queries) > 1:
        queries = [
            name for name in queries if any(_holds_query(record.get(name), name) for record in records)
        ] or queries
    if len(queries) > 1:
        hint = f"Say which holds the query: --query-column {queries[0]}."
        raise DatasetError(f"the columns {listed(queries)} may all hold the query", path=path, line=1, hint=hint)
    results = there((*_RESULTS, *(_RESULTS_OR_ANSWERS if queries else ())), given.results)[:1]
    gold = there((*_GOLD, *(() if queries else ("gold",))), given.answer)
    doubtful = [name for name in there(_GOLD_OR_RESPONSES) if name not in results]
    responses = there(_RESPONSES) + (doubtful if gold else [])
    gold += (doubtful if not gold else []) + there(("answers",))
    return Fields(
        questions + (there(_PARAPHRASES) if given.question is None else []), next(iter(queries), None),
        there(_IDS, given.id), there(_TEMPLATES, given.template), next(iter(results), None), gold, responses,
        there(RELEVANT_IDS),
    )  # fmt: skip


def require_fields(found: Fields, names: Sequence[str], path: str) -> None:
    """Raise an error if no column holds questions, or none what a reference is made of.

    Raises:
        DatasetError: One is missing.
    """
    missing = "question" if not found.questions else "query"
    if found.questions and (found.query or found.results or found.gold or found.responses or found.relevant_ids):
        return
    hint = f"Name it: --{missing}-column NAME. The columns are: {all_of(names)}."
    raise DatasetError(f"there is no column with the {missing}", path=path, line=1, hint=hint)


def first_value(record: Mapping[str, Any], names: Sequence[str]) -> tuple[str, Any]:
    """Return the first of some columns that has something in it, and its value."""
    filled = ((name, record[name]) for name in names if not is_blank(record.get(name)))
    return next(filled, (names[0] if names else "", None))


def _has_language(name: str, records: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a column holds queries: some, or only what is no text."""
    texts = [value for record in records if isinstance(value := record.get(name), str)]
    return any(map(language_of, texts)) or not texts


def _holds_query(value: Any, name: str) -> bool:
    try:
        return query_of(value, name) is not None
    except UnknownShapeError:
        return False


def all_of(names: Sequence[str]) -> str:
    """Return the names of columns for a message."""
    return listed([name for name in names if name], 20) or "none"


def unread_gold(record: Mapping[str, Any], names: Sequence[str], read: str) -> Iterator[str]:
    """Yield the further columns of gold of a record that say something else than the one that is read."""
    return (name for name in names if name != read and not is_blank(record.get(name)) and record[name] != record[read])
