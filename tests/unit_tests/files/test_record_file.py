import io
from pathlib import Path

import pytest

from graphrag_eval_lc.dataset.loading import TEMPLATES, response_records
from graphrag_eval_lc.errors import DatasetError
from graphrag_eval_lc.files.record_file import read_records


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("yes", "YAML reads yes as True, which is not a text. Put it in quotes: 'yes'."),
        ("~", "YAML reads ~ as None, which is not a text. Put it in quotes: '~'."),
        ("1.50", "YAML reads 1.50 as 1.5, which is not a text. Put it in quotes: '1.50'."),
        ("0123", "YAML reads 0123 as 83, which is not a text. Put it in quotes: '0123'."),
        ("2024", "2024 is not a text. Put it in quotes."),
        ("[x]", "['x'] is not a text. Give a text, in quotes."),
    ],
)
def test_error_shows_the_value_as_written_in_yaml(value: str, what: str) -> None:
    text = f"- template_id: t\n  questions:\n  - id: q\n    question_text: {value}\n"
    with pytest.raises(DatasetError) as caught:
        read_records(io.StringIO(text), DatasetError, what="reference dataset").check(TEMPLATES, DatasetError)
    assert str(caught.value) == f"line 4, question q, key [0].questions[0].question_text: {what}"


def test_responses_by_id_have_line_numbers() -> None:
    text = "q1:\n  actual_answer: x\n0123:\n  actual_answer: y\n  question_id: z\n"
    records = response_records(io.StringIO(text))
    assert [records.line_of((index, "question_id")) for index in (0, 1)] == [1, 5]
    assert [records.line_of((index, "actual_answer")) for index in (0, 1)] == [2, 4]
    assert records.written((0, "question_id")) is None


def test_mapping_with_a_repeated_id_reports_it() -> None:
    records = response_records(io.StringIO("q1: {}\nq1: {}\n"))
    assert records.values == [{"question_id": "q1"}]
    assert list(records.repeated_keys()) == [("q1", 2)]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("- a: 1\n  a: 2\n", [("a", 2)]),
        ('[{"a": 1,\n"a": 2}]', [("a", 2)]),
        ('{"a": 1}\n\n{"a": 1, "a": 2}\n', [("a", 3)]),
    ],
)
def test_repeated_keys_are_found_in_every_format(text: str, keys: list[tuple[str, int]]) -> None:
    assert list(read_records(io.StringIO(text), DatasetError, what="reference dataset").repeated_keys()) == keys


def test_blank_lines_count_in_line_numbers_of_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "responses.jsonl"
    path.write_text('{"a": 1}\n\n{"a": "ü"}\n')
    records = read_records(path, DatasetError, what="file of responses")
    assert records.values == [{"a": 1}, {"a": "ü"}]
    assert [records.line_of((index,)) for index in range(2)] == [1, 3]
    path.write_text('{"a": 1}\n{"a": 2}{"a": \n')
    with pytest.raises(DatasetError, match="line 2: the file of responses is not valid JSON"):
        read_records(path, DatasetError, what="file of responses")


def test_nul_in_a_path_raises_the_readers_error() -> None:
    with pytest.raises(DatasetError, match="the path has a NUL character"):
        read_records("a\0b", DatasetError, what="reference dataset")
