"""Converts a published dataset of questions, queries and answers to a reference dataset."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Final, cast

from graphrag_eval_lc.dataset.gold import BrokenGoldError, gold_of_sparql
from graphrag_eval_lc.dataset.import_fields import DEFAULT_LANGUAGE, Columns
from graphrag_eval_lc.dataset.import_questions import SourceDataset, SourceQuestion, read_questions, unique_ids
from graphrag_eval_lc.dataset.query_language import STEP_NAMES, Language
from graphrag_eval_lc.dataset.sparql_endpoint import (
    DEFAULT_MAX_BYTES,
    EndpointError,
    EndpointGoneError,
    SparqlEndpoint,
    run_queries,
)
from graphrag_eval_lc.dataset.validation import Problem
from graphrag_eval_lc.errors import OptionError, warn
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.files.writing import json_line, refuse_existing, replace_file, write_data
from graphrag_eval_lc.matching.matchers import StepView
from graphrag_eval_lc.matching.rows import read_sparql_results
from graphrag_eval_lc.matching.rows.row_steps import ROWS
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.records import Response, Template
from graphrag_eval_lc.texts import counted, listed

DEFAULT_TIMEOUT: Final = 60.0
# The query languages that are sent to a SPARQL endpoint. None: the language is unknown, but the user named the step.
_ASKED: Final = frozenset({"SPARQL", None})
# Literals in these quotes may have several lines, which must not be changed.
_LONG_QUOTES: Final = ('"""', "'''")
_RETRIEVAL_HINT: Final = (
    "--retrieval-step retrieval makes them a reference step, for an agent that searches the same documents."
)

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """The options of ``import_dataset``. Without languages a question's text is English, otherwise its first one.

    ``state`` is a file to which the endpoint's results are appended, so that a stopped import can be resumed.
    """

    languages: Sequence[str] = ()
    step_name: str | None = None
    template_id: str | None = None
    keep_empty: bool = False
    columns: Columns = field(default_factory=Columns)
    endpoint: str | None = None
    refresh: bool = False
    timeout: float = DEFAULT_TIMEOUT
    max_bytes: int = DEFAULT_MAX_BYTES
    follow_redirects: bool = False
    retrieval_step: str | None = None
    state: Path | None = None


@dataclass(frozen=True, slots=True)
class Import:
    """An imported dataset."""

    templates: list[Template]
    problems: tuple[Problem, ...]  # what is wrong with single questions, which are left out or have no reference steps
    # sentences for the user, such as how many questions have no reference steps, and what to do about it
    notes: tuple[str, ...]
    responses: tuple[Response, ...] = ()  # the answers of a model in the file, which are not gold
    languages: tuple[Language, ...] = ()  # the languages of the queries
    unanswered: int = 0  # how many queries have no results because the endpoint went away

    @property
    def number_of_questions(self) -> int:
        """The number of questions."""
        return sum(len(template.get("questions") or ()) for template in self.templates)

    @property
    def number_with_steps(self) -> int:
        """The number of questions that have reference steps."""
        questions = (question for template in self.templates for question in template.get("questions") or ())
        return sum("reference_steps" in question for question in questions)


def import_dataset(
    source: str | PathLike[str],
    *,
    language: str | Sequence[str] = DEFAULT_LANGUAGE,
    step_name: str | None = None,
    template_id: str | None = None,
    keep_empty: bool = False,
    retrieval_step: str | None = None,
    responses: str | PathLike[str] | None = None,
    endpoint: str | None = None,
    refresh: bool = False,
    timeout: float = DEFAULT_TIMEOUT,
    max_bytes: int = DEFAULT_MAX_BYTES,
    follow_redirects: bool = False,
    question_column: str | None = None,
    query_column: str | None = None,
    id_column: str | None = None,
    template_column: str | None = None,
    results_column: str | None = None,
    answer_column: str | None = None,
) -> list[Template]:
    """Import a published dataset of questions: JSON, JSON Lines, CSV, QALD's XML, or Parquet.

    The form is recognised: QALD, ragas, deepeval, LangSmith, Hugging Face rows, AutoRAG, Spider, BIRD, LC-QuAD and the
    like. A model's answer, such as ``answer`` next to ``ground_truth``, is never imported as gold.

    Each question with gold results gets one reference step: the query in its arguments, the gold as its output, and
    the columns that the gold binds as ``required_columns``. A question without gold has ``reference_query`` and no
    reference steps: it can be run, but its steps are not scored.

    A ``GraphRAGEvalWarning`` reports each question that is left out or has no gold.

    Args:
        source: The file.
        language: The language of the questions' texts, or several: the first one that a question has. By default
            questions without an English text are imported in their first language.
        step_name: The name of the steps that run the queries. None: ``sparql_query``, ``cypher_query`` or
            ``sql_db_query``, by the query's text or the name of its column.
        template_id: The template of all questions. None: one for each answer type of QALD; the template column of a
            table, else one with the file's name.
        keep_empty: Whether gold without rows becomes a reference step too, although any query without rows matches it.
        retrieval_step: The name of reference steps with the ids of relevant documents, such as ``retrieval``. None:
            these are not imported.
        responses: The file to which answers of a model are written, for ``score``; it must not exist.
        endpoint: The URL of a SPARQL endpoint that runs the queries whose gold is missing or has no rows.
        refresh: Whether the endpoint runs all queries, and replaces all gold.
        timeout: The longest time for a query of the endpoint, in seconds, from the first byte to the last.
        max_bytes: The size of the largest results that the endpoint may send, after decompression.
        follow_redirects: Whether the endpoint may redirect queries to another host.
        question_column: The column of a table with the questions. None for it and the next ones: by the usual names.
        query_column: The column with the queries.
        id_column: The column with the ids; without one the questions are numbered from 1.
        template_column: The column with the template ids.
        results_column: The column with the results of the queries.
        answer_column: The column with the reference answers.

    Returns:
        The templates of a reference dataset.

    Raises:
        DatasetError: The file cannot be read, has an unknown format, or lacks a column; or the endpoint is unreachable.
        MissingExtraError: The file is Parquet, and pyarrow is not installed.
        OptionError: An option does not apply to the file, or has a wrong value.
        RunFolderError: The file of responses cannot be written, or exists.

    Example:
        >>> import json, tempfile
        >>> gold = {"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "uri", "value": "urn:oslo"}}]}}
        >>> text = [{"language": "en", "string": "Which capital?"}]
        >>> question = {"id": 1, "question": text, "query": {"sparql": "SELECT ?x {…}"}, "answers": [gold]}
        >>> with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        ...     json.dump({"dataset": {"id": "grid"}, "questions": [question]}, file)
        ...     file.flush()
        ...     [template] = import_dataset(file.name)
        >>> template["template_id"], template["questions"][0]["reference_steps"][0][0]["required_columns"]
        ('resource', ['x'])
    """
    languages = (language,) if isinstance(language, str) else tuple(language)
    options = ImportOptions(
        languages=() if languages == (DEFAULT_LANGUAGE,) else languages,  # the default need not exist
        step_name=step_name,
        template_id=template_id,
        keep_empty=keep_empty,
        columns=Columns(question_column, query_column, id_column, template_column, results_column, answer_column),
        endpoint=endpoint,
        refresh=refresh,
        timeout=timeout,
        max_bytes=max_bytes,
        follow_redirects=follow_redirects,
        retrieval_step=retrieval_step,
    )
    found = imported(source, options)
    if responses is not None and found.responses:
        write_responses(Path(responses), found)
    for message in (*map(str, found.problems), *found.notes):
        warn(message, stacklevel=2)
    return found.templates


def imported(source: str | PathLike[str], options: ImportOptions, progress: Progress | None = None) -> Import:
    """Import a dataset; see ``import_dataset``. ``progress`` is called with the number of queries run, and of all."""
    if options.refresh and options.endpoint is None:
        raise OptionError("--refresh needs an endpoint", hint="Add --endpoint URL.")
    if options.template_id is not None and options.columns.template is not None:
        what = "one template id is that of all questions, and a template column has one for each"
        raise OptionError(what, hint="Leave one of --template-id and --template-column out.")
    named = options.step_name is not None
    dataset = read_questions(source, options.columns, options.languages, is_step_named=named)
    unanswered = 0
    if options.endpoint is not None:
        languages = {question.language for question in dataset.questions if question.query is not None}
        if languages and not languages & _ASKED:
            what = f"an endpoint answers SPARQL, and the queries are {listed(sorted(map(str, languages)))}"
            raise OptionError(what, hint="Leave --endpoint out, and add a column with the results.")
        unanswered = run_sync(lambda: _query_endpoint(dataset, options, progress))
    templates: dict[str, list[dict[str, Any]]] = {}
    template_of: dict[str, str] = {}
    responses: list[Response] = []
    has_steps = any(question.query is not None or question.gold is not None for question in dataset.questions)
    for identifier, question in unique_ids(dataset.questions):
        own = options.template_id or question.template_id or dataset.template_id
        # The same question twice stays in one template.
        template_id = template_of.setdefault(question.text.casefold(), own)
        if template_id != own:
            dataset.note("The same text as an earlier question, and put into its template", identifier)
        if has_steps and question.query is None:
            dataset.note("Without a query", identifier)
        templates.setdefault(template_id, []).append(_question_record(identifier, question, options, dataset))
        if question.response is not None:
            responses.append({"question_id": identifier, "actual_answer": question.response})
    notes = [*dataset.sentences(), *_repeated(dataset.questions)]
    records = [{"template_id": template_id, "questions": questions} for template_id, questions in templates.items()]
    found = tuple(dict.fromkeys(question.language for question in dataset.questions if question.language is not None))
    return Import(
        cast("list[Template]", records), tuple(dataset.problems), tuple(notes), tuple(responses), found, unanswered
    )


def write_responses(path: Path, found: Import, *, overwrite: bool = False) -> None:
    """Write the answers of a model as responses: a list in JSON or YAML by the file's name, else JSON Lines."""
    if path.suffix.lower() in (".json", ".yaml", ".yml"):
        write_data(path, list(found.responses), overwrite=overwrite)
        return
    refuse_existing(path, overwrite=overwrite)
    replace_file(path, map(json_line, found.responses))


async def _query_endpoint(dataset: SourceDataset, options: ImportOptions, progress: Progress | None) -> int:
    """Query the endpoint for the questions that need gold, and report the queries that failed.

    Returns the number of queries that are still without results because the endpoint went away.
    """
    places = [
        place
        for place, question in enumerate(dataset.questions)
        if question.query
        and question.language in _ASKED
        and (options.refresh or question.gold is None or question.gold.is_empty)
    ]
    async with SparqlEndpoint(
        options.endpoint or "", options.timeout, options.max_bytes, follows_redirects=options.follow_redirects
    ) as endpoint:
        queries = (dataset.questions[place].query or "" for place in places)
        outcomes = await run_queries(endpoint, queries, state=options.state, on_progress=progress)
    gone: list[str] = []
    for place in places:
        question = dataset.questions[place]
        outcome = outcomes[question.query or ""]
        if isinstance(outcome, EndpointGoneError):
            gone.append(str(outcome))
            continue
        try:
            if isinstance(outcome, EndpointError):
                raise outcome
            dataset.questions[place] = replace(question, gold=gold_of_sparql(outcome))
        except (EndpointError, BrokenGoldError) as problem:
            what = f"{endpoint.name} returns no results: {problem}"
            kept = "The gold of the file stays." if question.gold is not None else "It has no reference steps."
            dataset.add_problem(what, f"Fix the query, or ask later. {kept}", question_id=question.id)
    if gone:
        left = counted(len(gone), "query has no results", "queries have no results")
        dataset.add_problem(f"{endpoint.name} no longer answers ({gone[0]}), and {left}", "Import again when it runs.")
    return len(gone)


def _question_record(
    identifier: str, question: SourceQuestion, options: ImportOptions, dataset: SourceDataset
) -> dict[str, Any]:
    """Return a question as it is written to the reference dataset, and note what it lacks."""
    written: dict[str, Any] = {"id": identifier, "question_text": question.text, **question.kept}
    if question.answer is not None:
        written["reference_answer"] = question.answer
    groups: list[list[dict[str, Any]]] = []
    if question.relevant_ids is not None and options.retrieval_step is None:
        dataset.note("The ids of relevant documents are not imported", identifier, _RETRIEVAL_HINT)
    elif question.relevant_ids is not None:
        groups.append([{"name": options.retrieval_step, "relevant_ids": question.relevant_ids}])
    gold = question.gold
    query = None if question.query is None else _tidy(question.query)
    if gold is not None and (options.keep_empty or not gold.is_empty):
        if gold.is_empty:
            dataset.note("The gold is empty, and any query without rows fits it", identifier)
        name = options.step_name or STEP_NAMES[question.language or "SPARQL"]
        step = {"name": name, "args": {} if query is None else {"query": query}, **gold.as_step_keys()}
        _note_kind(identifier, step, dataset)
        groups.append([step])
    elif gold is not None or query is not None:
        hints = [] if gold is None else ["Any query that returns no rows would match; --keep-empty keeps it."]
        if question.language != "SPARQL":
            hints.append("Add a column with the results.")
        elif options.endpoint is None:
            hints.append("--endpoint URL asks a SPARQL endpoint for it.")
        lacks = "Without gold" if gold is None else "The gold is empty"
        kind = f"{question.language} query" if question.language else "query"
        unscored = f"so that no step is scored; the {kind} is in reference_query"
        dataset.note(f"{lacks}, {unscored}", identifier, " ".join(hints))
        written |= {} if query is None else {"reference_query": query}
    return written | ({"reference_steps": groups} if groups else {})


def _note_kind(identifier: str, step: dict[str, Any], dataset: SourceDataset) -> None:
    """Note a reference step whose output is not compared as rows."""
    reference = StepView(step)
    if StepViews().kind_of(reference) is ROWS:
        return
    name, otherwise = step["name"], "compared as a text or JSON"
    if reference.is_read_by(read_sparql_results):
        hint = f"Have its rows compared: steps: {{kinds: {{{name}: rows}}}} in the config."
        dataset.note(f"The gold is {otherwise}, as no step kind serves {name}", identifier, hint)
    else:
        hint = """Store rows, as in [{"name": "Oslo"}]."""
        dataset.note(f"The gold cannot be read as rows, and is {otherwise}", identifier, hint)


def _tidy(query: str) -> str:
    """Remove spaces at the ends of a query's lines, so that YAML can write the query as a block."""
    if any(quotes in query for quotes in _LONG_QUOTES):
        return query
    return "\n".join(line.rstrip() for line in query.strip().replace("\r\n", "\n").split("\n"))


def _repeated(questions: Sequence[SourceQuestion]) -> Iterator[str]:
    """Report the ids that several questions have."""
    repeated = [identifier for identifier, number in Counter(each.id for each in questions).items() if number > 1]
    if repeated:
        what = f"Several questions have the same id ({counted(len(repeated), 'id')}): {listed(repeated, 10)}."
        yield f"{what} The first keeps it, the others are called {repeated[0]}-2 and so on."
