import json

from support.report_samples import table

from graphrag_eval_lc.report.formats import args_text, without_middle
from graphrag_eval_lc.report.formats import shown_value as value_text
from graphrag_eval_lc.texts import one_line


def test_one_line_has_no_breaks_and_no_end() -> None:
    assert one_line("a\n\n  b", 10) == "a b"
    assert one_line("x" * 10_000_000, 10) == "xxxxxxxxxx…"
    assert one_line("a" + 1_000 * " " + "b" * 10, 10) == "a bbbbbbbb…"


def test_a_long_text_loses_its_middle_and_says_so() -> None:
    text = without_middle("a" * 15_000 + "b" * 1_234_567 + "c" * 5_000)
    assert text.startswith("a" * 15_000 + "\n… 1,234,567 characters left out")
    assert text.endswith("in results.jsonl …\n" + "c" * 5_000)
    assert without_middle("d" * 20_000) == "d" * 20_000


def test_sparql_results_have_a_line_for_each_row() -> None:
    text = value_text(table("T1", "T2"))
    assert len(text.splitlines()) == 5
    assert json.loads(text) == json.loads(table("T1", "T2"))


def test_other_short_json_is_laid_out_and_what_is_no_json_stays() -> None:
    assert value_text('{"a":1}') == value_text({"a": 1}).replace('{"a": 1}', '{\n  "a": 1\n}')
    assert value_text('{"a":') == '{"a":'
    assert value_text("[" * 1_000) == "[" * 1_000
    long = json.dumps(list(range(5_000)))
    assert value_text(long) == without_middle(long)


def test_results_with_further_keys_keep_them() -> None:
    text = '{"head": {}, "results": {"bindings": [], "distinct": true}}'
    assert json.loads(value_text(text)) == json.loads(text)


def test_arguments_are_lines_and_nothing_where_there_are_none() -> None:
    assert args_text({"query": "SELECT *\nWHERE {}", "limit": 3}) == "query:\nSELECT *\nWHERE {}\nlimit: 3"
    assert args_text(None) == ""
    assert args_text(7) == "7"
