"""QALD's questions as plain records: XML of QALD-1 to 4, and the JSON variants from QALD-5 on."""

from collections.abc import Mapping
from typing import Any, Final, NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from graphrag_eval_lc.dataset.gold import is_sparql_results
from graphrag_eval_lc.errors import DatasetError

_LARGEST_XML: Final = 100_000_000
_DEEPEST_XML: Final = 20
# The values of an answer in XML, and in the JSON of QALD-5.
_VALUES: Final = ("uri", "string", "number", "date", "boolean")
_IRIS: Final = ("http://", "https://", "urn:")


def is_qald(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a question in one of QALD's own shapes.

    Example:
        >>> is_qald({"question": [{"language": "en", "string": "Who?"}]}), is_qald({"question": "Who?"})
        (True, False)
    """
    question = record.get("question")
    inner = question.get("language") if isinstance(question, Mapping) else question
    return "body" in record or (isinstance(inner, list) and any(isinstance(each, Mapping) for each in inner))


def plain_qald(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question of any of QALD's JSON variants as QALD-9 has it, with ``answers`` as ``results``.

    Example:
        >>> plain_qald({"body": [{"language": "en", "string": "Who?"}], "answers": [{"string": "urn:x"}]})["results"]
        {'results': {'bindings': [{'answer': {'type': 'uri', 'value': 'urn:x'}}]}}
    """
    plain = dict(record)
    if "body" in plain:  # QALD-5
        plain.setdefault("question", plain.pop("body"))
    question = plain.get("question")
    if isinstance(question, Mapping) and isinstance(question.get("language"), list):  # QALD-7
        plain |= {key: value for key, value in question.items() if key != "language"}
        texts = [each for each in question["language"] if isinstance(each, Mapping)]
        plain["question"] = [{"language": each.get("language"), "string": each.get("question")} for each in texts]
        queries = (query for each in texts for key, query in each.items() if str(key).upper() == "SPARQL" and query)
        if (query := next(queries, None)) is not None:
            plain["query"] = {"sparql": query}
    if isinstance(plain.get("query"), str):
        plain["query"] = {"sparql": plain["query"]}
    answers = plain.get("answers")
    told = [each for each in (answers if isinstance(answers, list) else [answers]) if each]
    if told and "results" not in plain and (is_qald(record) or "query" in plain):
        single = [{"string": each} if isinstance(each, str) else each for each in told]
        if all(map(_is_answer, single)):
            plain["results"] = _table(single)
        elif is_sparql_results(told[0]):
            plain["results"] = told
        if "results" in plain:
            del plain["answers"]
    return plain


def _is_answer(value: Any) -> bool:
    return isinstance(value, Mapping) and bool(value) and value.keys() <= set(_VALUES)


def _table(answers: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Return answers that are single values as results of SPARQL."""
    values = [value for each in answers for value in each.values()]
    if len(values) == 1 and ("boolean" in answers[0] or str(values[0]).strip().casefold() in ("true", "false")):
        return {"head": {}, "boolean": values[0]}
    rows = []
    for each in answers:
        names = dict.fromkeys(each, "answer") if len(each) == 1 else {key: key for key in each}
        rows.append({names[key]: _term(key, value) for key, value in each.items()})
    return {"results": {"bindings": rows}}


def _term(kind: str, value: Any) -> dict[str, Any]:
    text = value.strip() if isinstance(value, str) else value
    is_iri = kind == "uri" or (isinstance(text, str) and text.startswith(_IRIS) and " " not in text)
    return {"type": "uri" if is_iri else "literal", "value": text}


def read_qald_xml(text: str, path: str) -> dict[str, Any]:
    """Return QALD's XML as its JSON; without document types, so that nothing is expanded or fetched.

    Raises:
        DatasetError: It is not QALD's XML, has a document type, or is too large.
    """
    if len(text) > _LARGEST_XML:
        what = f"the XML is larger than {_LARGEST_XML // 1_000_000} million characters"
        raise DatasetError(what, path=path, hint="Split it.")
    root = _parsed(text, path)
    if root.tag != "dataset":
        what = f"the XML begins with <{root.tag[:40]}>, and QALD's with <dataset>"
        raise DatasetError(what, path=path, hint="Give QALD's XML, or its questions as JSON or CSV.")
    return {"dataset": {"id": root.get("id")}, "questions": [_question(each) for each in root.iter("question")]}


def _parsed(text: str, path: str) -> Element:
    builder, depth = TreeBuilder(), 0
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True

    def refuse(what: str, hint: str) -> NoReturn:
        raise DatasetError(what, path=path, line=parser.CurrentLineNumber, hint=hint)

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST_XML:
            refuse(f"the XML is nested more than {_DEEPEST_XML} levels deep", "QALD's has five.")
        builder.start(name, attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(name)

    parser.StartDoctypeDeclHandler = lambda *_: refuse("the XML has a document type, which is not read", "Remove it.")
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(text.encode("utf-8", "replace"), True)
    except expat.ExpatError as problem:
        what = f"the dataset to import is not valid XML: {expat.errors.messages.get(problem.code, problem)}"
        raise DatasetError(what, path=path, line=problem.lineno, hint="Fix the XML here.") from problem
    return builder.close()


def _question(element: Element) -> dict[str, Any]:
    texts = [{"language": each.get("lang") or "en", "string": each.text} for each in element.findall("string")]
    answers = [
        {part.tag: part.text for part in each if part.tag in _VALUES} or {"string": (each.text or "").strip()}
        for each in element.iterfind("answers/answer")
    ]
    answers = [each for each in answers if any(each.values())]
    query = next((each.text for each in element.findall("query") if each.text), None)
    return {**element.attrib, "question": texts, "query": query, "answers": answers}
