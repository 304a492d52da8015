from graphrag_eval_lc.report.formats import args_text, shown_value, without_middle
from graphrag_eval_lc.texts import one_line


def test_one_line_has_no_line_breaks() -> None:
    assert one_line("a\n\n  b", 10) == "a b"
    assert one_line("x" * 10_000_000, 10) == "xxxxxxxxxx…"
    assert one_line("a" + 1_000 * " " + "b" * 10, 10) == "a bbbbbbbb…"


def test_long_text_loses_its_middle_with_a_note() -> None:
    text = without_middle("a" * 15_000 + "b" * 1_234_567 + "c" * 5_000)
    assert text.startswith("a" * 15_000 + "\n… 1,234,567 characters left out")
    assert text.endswith("in results.jsonl …\n" + "c" * 5_000)
    assert without_middle("d" * 20_000) == "d" * 20_000


def test_strings_are_unchanged_and_other_values_are_json() -> None:
    assert shown_value('{"a":1.0}') == '{"a":1.0}'
    assert shown_value({"a": [1, None]}) == '{"a": [1, null]}'
    assert "characters left out" in shown_value(list(range(50_000)))


def test_arguments_are_lines_and_no_arguments_are_blank() -> None:
    assert args_text({"query": "SELECT *\nWHERE {}", "limit": 3}) == "query:\nSELECT *\nWHERE {}\nlimit: 3"
    assert args_text(None) == ""
    assert args_text(7) == "7"
