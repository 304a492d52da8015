"""SPARQL results are read in the forms that tools return, and nothing else becomes results."""

import json
import time
from typing import Any

import pytest

from graphrag_eval_lc.matching import UnreadableOutput
from graphrag_eval_lc.matching.outputs import CutOutput
from graphrag_eval_lc.matching.rows import compare_sparql_results, parse_sparql_results, read_sparql_results


def literal(text: str) -> dict[str, str]:
    return {"type": "literal", "value": text}


ROWS = [{"name": "Oslo", "n": "5"}, {"name": "Bergen, Norway"}]
BINDINGS = [{name: literal(text) for name, text in row.items()} for row in ROWS]
RESULTS = {"head": {"vars": ["name", "n"]}, "results": {"bindings": BINDINGS}}
PLAIN = json.dumps(RESULTS)
XML = (
    '<?xml version="1.0"?><sparql xmlns="http://www.w3.org/2005/sparql-results#"><head><variable name="name"/>'
    '<variable name="n"/></head><results><result><binding name="name"><literal>Oslo</literal></binding>'
    '<binding name="n"><literal>5</literal></binding></result><result><binding name="name">'
    "<literal>Bergen, Norway</literal></binding></result></results></sparql>"
)
CSV = 'name,n\r\nOslo,5\r\n"Bergen, Norway",\r\n'
TSV = '?name\t?n\n"Oslo"\t"5"\n"Bergen, Norway"\t\n'
MARKDOWN = "| name | n |\n|:---|---:|\n| Oslo | 5 |\n| Bergen, Norway | |\n"
OBJECTS = json.dumps([ROWS[0], {"name": "Bergen, Norway", "n": None}])
LITERALS = "[rdflib.term.Literal('Oslo'), rdflib.term.Literal('5')], [rdflib.term.Literal('Bergen, Norway'), None]"


FORMS = [
    ("\ufeff" + PLAIN, "SPARQL JSON after a byte order mark"),
    (json.dumps(PLAIN), "SPARQL JSON encoded twice"),
    (json.dumps(json.dumps(PLAIN)), "SPARQL JSON encoded twice encoded twice"),
    (json.dumps({"bindings": BINDINGS}), "bindings without a head"),
    (json.dumps(BINDINGS), "a list of bindings"),
    (OBJECTS, "an array of row objects"),
    (json.dumps([["Oslo", "5"], ["Bergen, Norway", None]]), "an array of arrays"),
    (json.dumps({"result": RESULTS}), "SPARQL JSON under result"),
    (json.dumps({"result": PLAIN}), "SPARQL JSON under result"),
    (
        json.dumps({"status": "ok", "data": {"results": json.loads(OBJECTS)}}),
        "an array of row objects under data.results",
    ),
    (json.dumps({"result": RESULTS, "warnings": [{"code": 1}]}), "SPARQL JSON under result"),
    (json.dumps([{"type": "text", "text": PLAIN}]), "SPARQL JSON in a content block"),
    (
        json.dumps([{"type": "text", "text": part} for part in (PLAIN[:30], PLAIN[30:])]),
        "SPARQL JSON in content blocks",
    ),
    (json.dumps({"content": [{"type": "text", "text": CSV}]}), "W3C CSV in a content block under content"),
    (f"```json\n{PLAIN}\n```", "SPARQL JSON in a code fence"),
    (f"Found:\n\n```csv\n{CSV}```\nLet me know.", "W3C CSV in a code fence"),
    (f"Query:\n```sparql\nSELECT * {{}}\n```\nRows:\n```\n{OBJECTS}\n```", "an array of row objects in a code fence"),
    (f"Here are the results: {PLAIN}. Let me know!", "SPARQL JSON beside a sentence"),
    (f"{OBJECTS}\nThese are [all] cities.", "an array of row objects beside a sentence"),
    (f"The store said {XML}, which is all.", "W3C XML beside a sentence"),
    (f"Rows: {json.loads(OBJECTS)!r}", "an array of row objects beside a sentence"),
    (MARKDOWN, "a Markdown table"),
    (f"There are two:\n\n{MARKDOWN}\nLet me know.", "a Markdown table"),
    (XML, "W3C XML"),
    ("\ufeff" + XML, "W3C XML"),
    (CSV, "W3C CSV"),
    (CSV.replace("\r\n", "\n").rstrip(), "W3C CSV"),
    (TSV, "W3C TSV"),
    (repr(RESULTS), "SPARQL JSON as Python shows it"),
    (repr(json.loads(OBJECTS)), "an array of row objects as Python shows it"),
    ("[('Oslo', '5'), ('Bergen, Norway', None)]", "an array of arrays as Python shows it"),
    (f"[{LITERALS}]", "an array of arrays as Python shows it"),
]


@pytest.mark.parametrize(("output", "form"), FORMS)
def test_each_form_holds_the_same_rows_and_says_what_it_is(output: str, form: str) -> None:
    results = read_sparql_results(output)
    assert (results.form, results.row_count) == (form, 2)
    compared = compare_sparql_results(RESULTS, output)
    assert compared.score == 1.0, compared.reason
    assert compared.reason.endswith(f" It was read from {form}.")
    assert compare_sparql_results(output, PLAIN).score == 1.0


@pytest.mark.parametrize(("output", "form"), [*FORMS, (PLAIN, "SPARQL JSON")])
def test_no_beginning_of_an_output_is_read_as_fewer_rows(output: str, form: str) -> None:
    ends_of_lines = {at for at in range(len(output)) if output[at - 1] in "\r\n" or output[at] in "\r\n"}
    is_table = any(name in form for name in ("CSV", "TSV", "Markdown"))
    has_cut = False
    for length in range(1, len(output)):
        try:
            results = read_sparql_results(output[:length])
        except CutOutput:
            has_cut = True
        except UnreadableOutput:
            pass
        else:
            # Nothing tells that a table lacks its last lines, or a part of the last cell.
            last_cell = output[:length].rpartition("," if "CSV" in form else "\t")[2]
            assert results.row_count == 2 or (is_table and (length in ends_of_lines or "\n" not in last_cell))
    assert has_cut


def test_plain_sparql_json_is_read_as_before_and_its_reason_says_no_more() -> None:
    assert read_sparql_results(PLAIN) == parse_sparql_results(PLAIN)
    assert "read from" not in compare_sparql_results(RESULTS, PLAIN).reason


PROSE = [
    "",
    "   \n",
    "Sorry, I found no rows.",
    "no results",
    "name",
    "name,n",
    "name,n\n",
    "name\n",
    "name\nOslo\nBergen",
    "Hello,\nthere are cities, rivers, lakes.",
    "Oslo, Bergen and Paris are cities.\nThey lie in Norway, Norway and France.",
    "Error,code\ntimeout,500\n",
    "Error\r\nsomething failed\r\n",
    "?",
    "?name\n",
    "a\tb",
    "name\tn\n",
    "Traceback (most recent call last):\n  File \"x.py\", line 1\nKeyError: 'a'",
    "I looked at [1] and [2]: nothing.",
    "The answer is [].",
    "The answer is {}.",
    "<html><body>502 Bad Gateway</body></html>",
    "```\nno results\n```",
    "```csv\nno results found\n```",
    "@prefix : <urn:> .\n:a :b :c .",
    "| is a pipe",
    "[INFO] connected\n[INFO] done",
    '{"error": "bad query", "results": []}',
    '{"errors": [{"message": "bad"}], "data": []}',
    '[{"error": "bad query"}]',
    '{"isError": true, "content": [{"type": "text", "text": "[]"}]}',
    '{"name": "Oslo"}',
    '["Oslo", "Bergen"]',
    "[1, 2, 3]",
    "5",
    "null",
    '[{"type": "text", "text": "no rows were found"}]',
    '{"items": []}',
    "[[1, 2], [3]]",
    '[{"@id": "urn:a", "name": "Oslo"}]',
    '{"@graph": [{"@id": "urn:a", "urn:name": [{"@value": "Oslo"}]}]}',
]


@pytest.mark.parametrize("output", PROSE)
def test_what_is_no_results_stays_unreadable(output: str) -> None:
    with pytest.raises(UnreadableOutput) as problem:
        read_sparql_results(output)
    assert not isinstance(problem.value, CutOutput)
    empty = {"head": {"vars": ["name"]}, "results": {"bindings": []}}
    assert compare_sparql_results(empty, output).unreadable is not None


@pytest.mark.parametrize(
    "output",
    ["[]", '{"bindings": []}', '{"results": []}', '{"data": {"rows": []}}', "?a\t?b\n", "| a |\n|---|\n", "a,b\r\n"],
)
def test_no_rows_are_no_rows_where_the_form_says_so(output: str) -> None:
    empty = {"head": {"vars": ["name"]}, "results": {"bindings": []}}
    is_csv = output.startswith("a,b")  # names alone may be a sentence, unless something declares them
    results = read_sparql_results(output, format="csv" if is_csv else None)
    assert results.row_count == 0
    assert compare_sparql_results(empty, results).score == 1.0


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ('{"nodes": [{"a": 1}], "edges": [{"b": 1}]}', "nodes, edges"),
        ('{"results": [], "suggestions": [{"b": 1}]}', "results, suggestions"),
        (f"First {OBJECTS}, then {PLAIN}", "2 things that may be the results"),
        (f"```\n{CSV}```\n```\n{PLAIN}\n```", "2 code fences"),
        (f"{MARKDOWN}\nand\n\n{MARKDOWN}", "2 Markdown tables"),
    ],
)
def test_where_several_things_may_be_the_results_none_is_taken(output: str, said: str) -> None:
    with pytest.raises(UnreadableOutput, match=said):
        read_sparql_results(output)


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (PLAIN[:90], "JSON breaks off in row 1"),
        (PLAIN[:-30], "JSON breaks off in row 2"),
        (PLAIN[:90] + "... (1,234 more characters)", "JSON breaks off"),
        (PLAIN[:90] + "…", "JSON breaks off"),
        (PLAIN + "\n... [truncated]", "after the JSON stands"),
        (PLAIN[:60] + "[... 900 characters omitted ...]" + PLAIN[-40:], "JSON breaks off"),
        (f"Here: {OBJECTS[:40]}", "JSON breaks off"),
        (f"```json\n{PLAIN[:80]}", "JSON breaks off"),
        (f"```csv\n{CSV}", "code fence has no end"),
        (XML[:-60], "XML breaks off in row 2"),
        (CSV[:-4], "inside a cell in quotes"),
        ("name,n\nOslo,5\nBerg", "CSV breaks off in row 2"),
        ("name,n\nOslo,5\n... (90 more rows)", "CSV ends with"),
        (TSV[:-5], "TSV breaks off in row 2"),
        (MARKDOWN[:-8], "Markdown table breaks off in row 2"),
        (MARKDOWN + "| ... | ... |\n", "leaves rows out"),
        (MARKDOWN + "\n[output truncated]", "Markdown table ends with"),
        (repr(ROWS)[:-20], "Python value breaks off"),
        (json.dumps({"result": PLAIN[:90]}), "JSON breaks off"),
        ('{"head": {"vars": ["name"]}, "results": {"bindings": [{"name": {"type": "uri", "value": "urn:', "row 1"),
    ],
)
def test_results_that_end_before_their_end_are_cut_and_undecided(output: str, said: str) -> None:
    with pytest.raises(CutOutput, match=said):
        read_sparql_results(output)
    compared = compare_sparql_results(RESULTS, output)
    assert (compared.score, compared.outcome, compared.unreadable) == (0.0, "undecided", None)
    assert compared.cut is not None
    assert compared.cut in compared.reason


@pytest.mark.parametrize(
    "output", ["[{'name': x}]", '{"a": 1,}', '[{"a": 1} {"b": 2}]', "[{]", '{"a" 1', "name,n\nOslo"]
)
def test_garbage_is_not_cut(output: str) -> None:
    with pytest.raises(UnreadableOutput) as problem:
        read_sparql_results(output)
    assert not isinstance(problem.value, CutOutput)


@pytest.mark.parametrize("output", [XML.replace("<sparql", '<!DOCTYPE a [<!ENTITY b "c">]><sparql', 1)])
def test_xml_with_entities_is_refused(output: str) -> None:
    with pytest.raises(UnreadableOutput, match="DTD"):
        read_sparql_results(output)


@pytest.mark.parametrize(
    ("format", "output"),
    [
        ("json", PLAIN),
        ("xml", XML),
        ("csv", CSV),
        ("tsv", TSV),
        ("markdown", MARKDOWN),
        ("rows", OBJECTS),
        ("python", repr(json.loads(OBJECTS))),
    ],
)
def test_a_declared_format_is_used_alone(format: Any, output: str) -> None:
    assert compare_sparql_results(RESULTS, read_sparql_results(output, format=format)).score == 1.0
    with pytest.raises(UnreadableOutput, match=f"steps.outputs declares \\(format: {format}\\)"):
        read_sparql_results(XML if format != "xml" else PLAIN, format=format)


def test_a_declared_column_of_csv_is_read_where_it_would_not_be_guessed() -> None:
    assert read_sparql_results("name\nOslo\nBergen", format="csv").row_count == 2
    with pytest.raises(UnreadableOutput):
        read_sparql_results("Error: timeout", format="csv")


def test_a_path_leads_to_the_results_and_its_mistakes_name_the_keys() -> None:
    output = json.dumps({"result": {"rows": json.loads(OBJECTS), "csv": CSV}, "other": [{"a": 1}]})
    for path, format in (("result.rows", None), ("result.csv", "csv")):
        read = read_sparql_results(output, path=path, format=format)  # type: ignore[arg-type]
        assert compare_sparql_results(RESULTS, read).score == 1.0
    assert read_sparql_results(output, path="other.0.a".removesuffix(".0.a")).variables == ("a",)
    with pytest.raises(
        UnreadableOutput, match=r"result has no key row \(steps.outputs says result.row\); its keys are rows"
    ):
        read_sparql_results(output, path="result.row")
    with pytest.raises(UnreadableOutput, match="the output is no JSON"):
        read_sparql_results("Sorry", path="result")


def test_an_unknown_format_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="there is no format 'yaml'; there are json, xml, csv"):
        read_sparql_results(PLAIN, format="yaml")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "output",
    [
        "The quick brown fox, jumps over the dog.\n" * 25_000,
        "word " * 200_000,
        "[1] see {x} " * 90_000,
        "a | b\n" * 150_000,
    ],
    ids=["lines", "one line", "brackets", "pipes"],
)
def test_a_long_text_is_refused_quickly(output: str) -> None:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        with pytest.raises(UnreadableOutput):
            read_sparql_results(output)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.5  # some 30 ms where nothing else runs
