"""Importing published datasets of questions and queries as reference datasets: QALD, CSV, and JSON records."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Final, cast

from graphrag_eval_lc.dataset.gold import BrokenGoldError, gold_of_sparql, is_ask_query
from graphrag_eval_lc.dataset.qald import is_qald, read_qald
from graphrag_eval_lc.dataset.question_tables import Columns, read_question_table
from graphrag_eval_lc.dataset.source_questions import SourceDataset, SourceQuestion, note_on, unique_ids
from graphrag_eval_lc.dataset.sparql_endpoint import (
    DEFAULT_MAX_BYTES,
    EndpointError,
    EndpointGoneError,
    SparqlEndpoint,
)
from graphrag_eval_lc.dataset.validation import Problem
from graphrag_eval_lc.errors import DatasetError, OptionError, warn
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.files.reading import TextFile, parse_json_at, read_text
from graphrag_eval_lc.matching.matchers import StepView
from graphrag_eval_lc.matching.rows import read_sparql_results
from graphrag_eval_lc.matching.rows.row_steps import ROWS
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.records import Template
from graphrag_eval_lc.texts import counted, listed

DEFAULT_LANGUAGE: Final = "en"
DEFAULT_TIMEOUT: Final = 60.0
_WHAT: Final = "dataset to import"
_TABLES: Final = (".csv", ".tsv", ".txt")
# Where the texts of a query may hold lines of their own, which must stay as they are.
_LONG_QUOTES: Final = ('"""', "'''")

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How a dataset is imported.

    Attributes:
        languages: The languages of the questions' texts in QALD, the preferred one first; empty: English.
        step_name: The name of the steps that run the queries; None: by the column of the queries.
        template_id: The template of all questions; None: by the answer types of QALD, the template column of a table,
            or the file's name.
        keep_empty: Whether a gold without rows is a reference, which any query without rows fits.
        columns: The names of a table's columns.
        endpoint: The URL of a SPARQL endpoint, which is asked for the results that the dataset does not have.
        refresh: Whether it is asked for all results.
        timeout: The longest time for a query, in seconds.
        max_bytes: The size of the largest results that it may send, after decompression.
        follow_redirects: Whether it may redirect to another host.
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


@dataclass(frozen=True, slots=True)
class Import:
    """An imported dataset.

    Attributes:
        templates: The dataset.
        problems: What is wrong with single questions, which are left out or have no reference steps.
        notes: Sentences for the user, such as how many questions have no reference steps, and how to mend it.
    """

    templates: list[Template]
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]

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
    """Import a dataset of questions and queries: QALD-9 and QALD-10 JSON, CSV, or JSON records.

    Each question with gold results gets one reference step: the query in its arguments, the gold as its output, and
    the columns that the gold binds as ``required_columns``. A question without gold has ``reference_query`` and no
    reference steps: it can be asked, and its steps are not scored.

    A ``GraphRAGEvalWarning`` tells each question that is left out or has no gold.

    Args:
        source: The file.
        language: The language of the questions' texts in QALD, or several, of which a question's first one is taken.
        step_name: The name of the steps that run the queries. None: ``sparql_query``; with a column of Cypher
            ``cypher_query``, with one of SQL ``sql_db_query``.
        template_id: The template of all questions. None: one for each answer type of QALD; the template column of a
            table, else one with the file's name.
        keep_empty: Whether a gold without rows is a reference step too, which any query without rows fits.
        endpoint: The URL of a SPARQL endpoint, which is asked for the gold that the dataset lacks, or has without rows.
        refresh: Whether the endpoint is asked for all gold.
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
        DatasetError: The file cannot be read, has another form, or lacks a column; or nothing answers at the endpoint.
        OptionError: An option does not go with the file, or has a wrong value.

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
    columns = Columns(question_column, query_column, id_column, template_column, results_column, answer_column)
    languages = (language,) if isinstance(language, str) else tuple(language)
    # The default goes with any file.
    given = () if languages == (DEFAULT_LANGUAGE,) else languages
    options = ImportOptions(
        given, step_name, template_id, keep_empty, columns, endpoint, refresh, timeout, max_bytes, follow_redirects
    )
    found = imported(source, options)
    for message in (*map(str, found.problems), *found.notes):
        warn(message, stacklevel=2)
    return found.templates


def imported(source: str | PathLike[str], options: ImportOptions, progress: Progress | None = None) -> Import:
    """Import a dataset; see ``import_dataset``.

    Args:
        source: The file.
        options: The options.
        progress: Called with how many queries the endpoint has been asked, and of how many.

    Raises:
        DatasetError: The file cannot be read, has another form, or lacks a column; or nothing answers at the endpoint.
        OptionError: An option does not go with the file, or has a wrong value.
    """
    if options.refresh and options.endpoint is None:
        raise OptionError("refresh asks no endpoint", hint="Give its URL: --endpoint URL.")
    if options.template_id is not None and options.columns.template is not None:
        what = "one template id is that of all questions, and a template column has one for each"
        raise OptionError(what, hint="Leave one of --template-id and --template-column out.")
    dataset = _read(source, options)
    if options.step_name is not None:
        dataset.step_name = options.step_name
    if options.endpoint is not None:
        run_sync(lambda: _ask(dataset, options, progress))
    templates: dict[str, list[dict[str, Any]]] = {}
    template_of: dict[str, str] = {}
    lists: dict[str, list[str]] = {name: [] for name in ("query", "gold", "empty", "kept", "moved", "other", "own")}
    for identifier, question in unique_ids(dataset.questions):
        own = options.template_id or question.template_id or dataset.template_id
        # A question that stands there twice is one of one template.
        template_id = template_of.setdefault(question.text.casefold(), own)
        if template_id != own:
            lists["moved"].append(identifier)
        written = _written(identifier, question, dataset.step_name, options.keep_empty, lists)
        templates.setdefault(template_id, []).append(written)
    notes = [*dataset.notes, *_repeated(dataset.questions), *_lacking(dataset, lists, options)]
    records = [{"template_id": template_id, "questions": questions} for template_id, questions in templates.items()]
    return Import(cast("list[Template]", records), tuple(dataset.problems), tuple(notes))


def _read(source: str | PathLike[str], options: ImportOptions) -> SourceDataset:
    """Return the questions of a file.

    Raises:
        DatasetError: It cannot be read.
        OptionError: An option does not go with it.
    """
    file = read_text(source, DatasetError, what=_WHAT)
    records = None if Path(source).suffix.lower() in _TABLES else _json(file)
    if isinstance(records, Mapping) and is_qald(records):
        if options.columns.given:
            what = f"QALD's JSON has no columns, so that the {options.columns.given[0]} column cannot be named"
            raise OptionError(what, hint="Leave the option out.")
        return read_qald(records, str(source), options.languages or (DEFAULT_LANGUAGE,))
    if options.languages:
        raise OptionError("only QALD's JSON has languages", hint="Leave --language out.")
    dataset = read_question_table(file, records, options.columns)
    if options.endpoint is not None and not dataset.is_sparql:
        what = f"an endpoint answers SPARQL, and the queries are those of {dataset.step_name} steps"
        raise OptionError(what, hint="Leave --endpoint out, and add a column with the results.")
    return dataset


def _json(file: TextFile) -> Any:
    """Return parsed JSON; None for a text that is a table. JSON Lines are a list."""
    if file.format == "jsonl":
        lines = enumerate(file.text.split("\n"), start=1)
        return [
            parse_json_at(line, DatasetError, what=_WHAT, path=file.path, line=number)
            for number, line in lines
            if line.strip()
        ]
    if file.format == "json":
        return parse_json_at(file.text, DatasetError, what=_WHAT, path=file.path)
    if (file.path or "").lower().endswith((".yaml", ".yml")):
        hint = "Published datasets are QALD's JSON, CSV or JSON records; a reference dataset needs no import."
        raise DatasetError("YAML is not imported", path=file.path, hint=hint)
    return None


async def _ask(dataset: SourceDataset, options: ImportOptions, progress: Progress | None) -> None:
    """Take the results of the endpoint for the questions that need them, or say why there are none."""
    places = [
        place
        for place, question in enumerate(dataset.questions)
        if question.query and (options.refresh or question.gold is None or question.gold.is_empty)
    ]
    async with SparqlEndpoint(
        options.endpoint or "", options.timeout, options.max_bytes, follows_redirects=options.follow_redirects
    ) as endpoint:
        for number, place in enumerate(places, start=1):
            question = dataset.questions[place]
            try:
                query = question.query or ""
                gold = gold_of_sparql(await endpoint.results(query), is_ask=is_ask_query(query))
            except EndpointGoneError as problem:
                left = counted(len(places) - number + 1, "query was not asked", "queries were not asked")
                what = f"{endpoint.name} no longer answers ({problem}), and {left}"
                dataset.add_problem(what, "Import again when it runs.", question_id=question.id)
                return
            except (EndpointError, BrokenGoldError) as problem:
                what = f"{endpoint.name} gives no results: {problem}"
                kept = "The gold of the file stays." if question.gold is not None else "It has no reference steps."
                dataset.add_problem(what, f"Mend the query, or ask later. {kept}", question_id=question.id)
            else:
                dataset.questions[place] = replace(question, gold=gold)
            if progress is not None:
                progress(number, len(places))


def _written(
    identifier: str, question: SourceQuestion, step_name: str, keep_empty: bool, lists: dict[str, list[str]]
) -> dict[str, Any]:
    """Return a question as the dataset has it, and list what it lacks."""
    written: dict[str, Any] = {"id": identifier, "question_text": question.text, **question.kept}
    if question.answer is not None:
        written["reference_answer"] = question.answer
    query = None if question.query is None else _tidy(question.query)
    if query is None:
        lists["query"].append(identifier)
    gold = question.gold
    if gold is None or (gold.is_empty and not keep_empty):
        if gold is not None or query is not None:
            lists["gold" if gold is None else "empty"].append(identifier)
        return written if query is None else {**written, "reference_query": query}
    if gold.is_empty:
        lists["kept"].append(identifier)
    args = {} if query is None else {"query": query}
    step = {"name": step_name, "args": args, **gold.as_step_keys()}
    reference = StepView(step)
    if StepViews().kind_of(reference) is not ROWS:
        lists["own" if reference.is_read_by(read_sparql_results) else "other"].append(identifier)
    return {**written, "reference_steps": [[step]]}


def _tidy(query: str) -> str:
    """Return a query without blanks at the ends of its lines, which YAML writes as a block then."""
    if any(quotes in query for quotes in _LONG_QUOTES):
        return query
    return "\n".join(line.rstrip() for line in query.strip().replace("\r\n", "\n").split("\n"))


def _repeated(questions: Sequence[SourceQuestion]) -> Iterator[str]:
    """Say which ids stand there several times."""
    repeated = [identifier for identifier, number in Counter(each.id for each in questions).items() if number > 1]
    if repeated:
        what = f"Several questions have the same id ({counted(len(repeated), 'id')}): {listed(repeated, 10)}."
        yield f"{what} The first keeps it, the others are called {repeated[0]}-2 and so on."


def _lacking(dataset: SourceDataset, lists: dict[str, list[str]], options: ImportOptions) -> Iterator[str]:
    """Say which questions have no query or no gold, and how to mend it."""
    add = ""
    if options.endpoint is None:
        add = "--endpoint URL asks a SPARQL endpoint for it." if dataset.is_sparql else "Add a column with the results."
    unscored = "so that no step is scored; the query stands in reference_query"
    little = "A reference without rows tells little, as any query without rows fits it; --keep-empty keeps it."
    moved = "The same text as an earlier question, and put into the template of that one"
    yield from note_on(moved, lists["moved"])
    yield from note_on("Without a query", lists["query"])
    yield from note_on(f"Without gold, {unscored}", lists["gold"], add)
    yield from note_on(f"The gold is empty, {unscored}", lists["empty"], f"{little} {add}".strip())
    yield from note_on("The gold is empty, and any query without rows fits it", lists["kept"])
    otherwise, name = "compared as a text or JSON", dataset.step_name
    rows = """Store rows, as in [{"name": "Oslo"}]."""
    yield from note_on(f"The gold cannot be read as rows, and is {otherwise}", lists["other"], rows)
    kinds = f"Have its rows compared: steps: {{kinds: {{{name}: rows}}}} in the config."
    yield from note_on(f"The gold is {otherwise}, as no step kind serves {name}", lists["own"], kinds)
