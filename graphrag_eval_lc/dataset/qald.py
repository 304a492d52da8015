"""Reading QALD's JSON: questions in several languages, each with a SPARQL query and its results."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from graphrag_eval_lc.dataset.gold import BrokenGoldError, Gold, bindings_of, gold_of_sparql
from graphrag_eval_lc.dataset.source_questions import SourceDataset, SourceQuestion, note_on
from graphrag_eval_lc.errors import DatasetError
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.matching.rows.row_steps import SPARQL_QUERY
from graphrag_eval_lc.texts import listed, shortened

# What QALD says of a question beside its text and query, and what may select questions later.
_KEPT: Final = ("answertype", "aggregation", "onlydbo", "hybrid")
_OTHER_TYPE: Final = "other"


def is_qald(value: Any) -> bool:
    """Return whether parsed JSON is a dataset of QALD.

    Example:
        >>> is_qald({"dataset": {"id": "qald-10"}, "questions": []}), is_qald([{"question": "Who?"}])
        (True, False)
    """
    return isinstance(value, Mapping) and "questions" in value


def read_qald(value: Mapping[str, Any], path: str, languages: Sequence[str]) -> SourceDataset:
    """Read the questions of a dataset; what is wrong with one says so, and leaves the others alone.

    Args:
        value: The parsed JSON.
        path: The file, for messages.
        languages: The languages of the questions' texts, the preferred one first.

    Raises:
        DatasetError: ``questions`` is no list.
    """
    about = value.get("dataset")
    name = about.get("id") if isinstance(about, Mapping) else about
    dataset = SourceDataset(path, str(name or Path(path).stem), SPARQL_QUERY)
    if not isinstance(value["questions"], list):
        raise DatasetError("questions is no list", path=path, key="questions", hint="Give QALD's JSON as it is.")
    without_text: list[str] = []
    in_another: list[str] = []
    for place, record in enumerate(value["questions"]):
        _read_question(dataset, place, record, languages, (without_text, in_another))
    wanted = listed(list(languages))
    there = listed(sorted({each for record in value["questions"] for each, _ in _texts(record)}), 20) or "none"
    hint = f"The languages of the dataset are {there}; --language names others."
    dataset.notes += note_on(f"No text in {wanted}, and left out", without_text, hint)
    dataset.notes += note_on(f"No text in {languages[0]}, and taken in another of the languages", in_another)
    return dataset


def _read_question(
    dataset: SourceDataset, place: int, record: Any, languages: Sequence[str], lists: tuple[list[str], list[str]]
) -> None:
    """Add a question to the dataset, or what is wrong with it."""
    without_text, in_another = lists
    if not isinstance(record, Mapping):
        what = f"questions[{place}] is {shortened(json_text(record), 60)}, no question"
        dataset.add_problem(what, "It is left out.")
        return
    given = record.get("id")
    identifier = str(given).strip() if isinstance(given, str | int | float) else ""
    identifier = identifier or str(place + 1)
    texts = list(_texts(record))
    if not texts:
        what = "the question has no text in any language"
        dataset.add_problem(
            what, "Give its question as a list of {language, string}. It is left out.", question_id=identifier
        )
        return
    found = next(((index, text) for index, each in enumerate(languages) if (text := _text_in(texts, each))), None)
    if found is None:
        without_text.append(identifier)
        return
    if found[0]:
        in_another.append(identifier)
    query = _query(record.get("query"))
    try:
        gold = _gold(record.get("answers"))
    except BrokenGoldError as problem:
        what, hint = f"the gold is broken: {problem}", "Mend answers in the source, or ask an endpoint (--endpoint)."
        dataset.add_problem(what, f"{hint} The question is imported without it.", question_id=identifier)
        gold = None
    for note in gold.notes if gold is not None else ():
        dataset.notes.append(f"Question {identifier}: {note}.")
    kept = {key: record[key] for key in _KEPT if isinstance(record.get(key), str | bool)}
    named = record.get("answertype")
    answer_type = named.strip() if isinstance(named, str) else ""
    answer_type = answer_type or (gold.answer_type if gold else None) or _OTHER_TYPE
    dataset.questions.append(SourceQuestion(identifier, found[1], query, gold, template_id=answer_type, kept=kept))


def _texts(record: Any) -> Iterator[tuple[str, str]]:
    """Yield the languages and texts of a question."""
    given = record.get("question") if isinstance(record, Mapping) else None
    if isinstance(given, str):  # of one language, which is not named
        given = [{"language": "en", "string": given}]
    for each in given if isinstance(given, list) else ():
        text = each.get("string") if isinstance(each, Mapping) else None
        if isinstance(text, str) and text.strip():
            yield str(each.get("language") or "en"), " ".join(text.split())


def _text_in(texts: Sequence[tuple[str, str]], language: str) -> str | None:
    """Return the first text in a language, else in a variety of it, such as zh-cn for zh."""
    wanted = _plain(language)
    exact = (text for each, text in texts if _plain(each) == wanted)
    varieties = (text for each, text in texts if _plain(each).split("-")[0] == wanted)
    return next(exact, None) or next(varieties, None)


def _plain(language: str) -> str:
    return language.strip().casefold().replace("_", "-")


def _query(given: Any) -> str | None:
    text = given.get("sparql") if isinstance(given, Mapping) else given
    return text if isinstance(text, str) and text.strip() else None


def _gold(answers: Any) -> Gold | None:
    """Return the gold of ``answers``; None where there is none. Several tables with the same columns are one.

    Raises:
        BrokenGoldError: It cannot be read.
    """
    tables = [each for each in (answers if isinstance(answers, list) else [answers]) if each]
    if len(tables) < 2:
        return gold_of_sparql(tables[0]) if tables else None
    parts = [gold for each in tables if not (gold := gold_of_sparql(each)).is_empty]
    if not parts or any(part.columns is None or part.columns != parts[0].columns for part in parts):
        raise BrokenGoldError(f"answers has {len(tables)} results, which do not have the same columns")
    rows = [row for each in tables for row in bindings_of(each)]
    return gold_of_sparql({"head": {"vars": list(parts[0].columns or ())}, "results": {"bindings": rows}})
