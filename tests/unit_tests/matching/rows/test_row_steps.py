"""The step kind rows: media types, RDF graphs, the same text, and texts that LangChain's SQL tool cut."""

from importlib import import_module
from typing import Any

import pytest

from graphrag_eval_lc.config import OutputConfig
from graphrag_eval_lc.dataset.validation import validate_dataset
from graphrag_eval_lc.matching import StepView, UnreadableOutput
from graphrag_eval_lc.matching.rows import match_row_steps, readers

TURTLE = "@prefix ex: <urn:> . ex:a ex:b 420 , [ ex:c 'x'@en ] ."
LONG = " ".join(f"feeder {number} of the north busbar" for number in range(20))


def outcome(reference: Any, actual: Any, **more: Any) -> str:
    step = {"name": "sql_db_query", "output": reference, **more}
    return match_row_steps(StepView(step), StepView({"name": "sql_db_query", "output": actual})).outcome


@pytest.mark.parametrize(
    ("text", "form", "columns"),
    [
        (TURTLE, "Turtle", 3),
        (f"```turtle\n{TURTLE}\n```", "Turtle", 3),
        ('{"@id": "urn:a", "urn:b": [{"@value": 420}, {"urn:c": "x"}]}', "JSON-LD", 3),
        ("<urn:a> <urn:b> <urn:c> <urn:g> .", "N-Quads", 4),
    ],
)
def test_a_graph_is_rows_of_a_subject_a_predicate_and_an_object(text: str, form: str, columns: int) -> None:
    results = readers.read_graph(text)
    assert (results.form, len(results.columns), results.is_graph) == (form, columns, True)


@pytest.mark.parametrize(
    "text",
    [
        None,
        5,
        "",
        "Hasle is a substation.",
        "<html>x</html>",
        '[{"s": "urn:a"}]',
        '{"@context": "https://x.org", "a": 1}',
    ],
)
def test_what_is_not_a_graph_is_unreadable(text: Any) -> None:
    with pytest.raises(UnreadableOutput):
        readers.read_graph(text)


def test_a_graph_needs_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_libraries(name: str) -> Any:
        if name in ("pyoxigraph", "rdflib"):
            raise ImportError(name)
        return import_module(name)

    monkeypatch.setattr(readers, "import_module", without_libraries)
    readers._library.cache_clear()
    with pytest.raises(UnreadableOutput, match=r"graphrag-eval-lc\[graph\]"):
        readers.read_graph(TURTLE)
    readers._library.cache_clear()


@pytest.mark.parametrize(
    ("name", "actual", "expected"),
    [
        ("Hasle", f"{LONG[:250]}...", "undecided"),
        ("Nea", f"{LONG[:250]}...", "mismatch"),
        ("Hasle", f"another text {LONG[:250]}...", "mismatch"),
        ("Hasle", LONG, "match"),
        ("Hasle", "feeder...", "mismatch"),
    ],
)
def test_a_text_that_the_sql_tool_cut_is_undecided_only_if_all_else_matches(
    name: str, actual: str, expected: str
) -> None:
    assert outcome(str([("Hasle", LONG)]), str([(name, actual)])) == expected


def test_the_same_text_is_a_match_unless_an_artifact_is_compared() -> None:
    assert outcome("There is none.", " There is none.\n") == "match"
    assert outcome("", " ", output_media_type="text/csv") == "match"  # no rows, as the tool writes them
    reference = StepView({"name": "sparql_query", "output": "[]"})
    declared = OutputConfig(artifact=True)
    assert match_row_steps(reference, StepView({"name": "sparql_query", "output": "[]"}, declared=declared)).score == 0


@pytest.mark.parametrize("output", ["Hasle", "'Hasle'", '"Hasle"', " Hasle\n"])
def test_a_bare_text_is_a_cell_only_if_it_is_the_only_one_of_the_reference(output: str) -> None:
    assert outcome('[{"name": "Hasle"}]', output) == "match"
    assert outcome('[{"name": "Hasle"}, {"name": "Nea"}]', output) == "mismatch"


@pytest.mark.parametrize(
    ("media_type", "output", "what"),
    [
        (
            "text/html",
            "<p>x</p>",
            "outputs of the media type text/html cannot be compared, other than as the same text",
        ),
        ("application/vnd.api+json", "[1]", None),
        ("text/plain", "x", None),
        ("text/turtle", "<urn:a> <urn:b> <urn:c> .", None),
    ],
)
def test_validate_says_which_media_types_cannot_be_compared(media_type: str, output: str, what: str | None) -> None:
    step = {"name": "x", "output": output, "output_media_type": media_type}
    question = {"id": "q", "question_text": "?", "reference_steps": [[step]]}
    found = validate_dataset([{"template_id": "t", "questions": [question]}])
    assert [problem.what for problem in found] == ([] if what is None else [what])
