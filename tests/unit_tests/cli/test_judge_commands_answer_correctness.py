"""The command `answer-correctness`, over HTTP."""

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.openai_stub import Fault, OpenAIStub, StubRequest, finish_reason, http_error

from graphrag_eval_lc.judges.answer_tables import read_table, table_lines

Command = Callable[..., int]
COMMAND = ("answer-correctness", "-i", "in.tsv", "-o", "out/out.tsv")
HEADER = ["Question", "Reference answer", "Actual answer"]


def claims_of(request: StubRequest) -> dict[str, Any]:
    """Return the claims of an answer: `answer 7` has 7 correct, one wrong and one missing."""
    number = re.findall(r"^answer (\d+)", request.user, re.MULTILINE)[-1]
    return {
        "reason": f"reason {number}",
        "true_positives": [f"it is {number}"],
        "false_positives": ["wrong"],
        "false_negatives": ["missing"],
    }


@pytest.fixture
def stub(files: Path) -> Iterator[OpenAIStub]:
    with OpenAIStub() as stub:
        stub.answer = claims_of
        (files / "config.yaml").write_text(f"llm: {{generation: {{base_url: '{stub.base_url}', api_key: k}}}}\n")
        yield stub


def write(count: int) -> None:
    rows = [[f"question {number}", f"reference {number}", f"answer {number}"] for number in range(count)]
    Path("in.tsv").write_bytes(b"".join(table_lines([HEADER, *rows])))


def column(name: str) -> list[str]:
    table = read_table("out/out.tsv")
    return [row[table.columns.index(name)] for row in table.rows]


def test_csv_with_dataset_column_names_is_written_as_csv(stub: OpenAIStub, exit_code: Command) -> None:
    Path("in.csv").write_text('question_text,reference_answer,actual_answer\n"question 0, once",reference 0,answer 0\n')
    arguments = ("answer-correctness", "-i", "in.csv", "-o", "out.csv", "-c", "config.yaml", "--quiet")
    assert exit_code(*arguments) == exit_code(*arguments) == 0
    table = read_table("out.csv")
    assert table.columns[:4] == ("question_text", "reference_answer", "actual_answer", "#Reference")
    assert table.rows[0][:4] == ["question 0, once", "reference 0", "answer 0", "2"]


def test_answers_are_judged_with_their_cost(
    stub: OpenAIStub, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    write(2)
    assert exit_code(*COMMAND, "-c", "config.yaml", "--quiet") == 0
    output = capsys.readouterr()
    # 1,000 input and 100 output tokens of gpt-4o-mini
    assert output.out == "Wrote 2 rows to out/out.tsv.\nCost: $0.00042 (2 answers judged now)\n"
    assert output.err == ""
    assert column("#Reference") == column("#PTarget") == ["2", "2"]
    assert column("#Matching") == ["1", "1"]
    assert column("Reasoning") == ["reason 0", "reason 1"]
    assert column("True positives") == ['["it is 0"]', '["it is 1"]']


def test_graphrag_eval_options_are_accepted(stub: OpenAIStub, exit_code: Command) -> None:
    write(1)
    options = ("--input-tsv-file-path", "in.tsv", "--output-tsv-file-path", "out/out.tsv")
    assert exit_code("answer-correctness", *options, "--config-yaml-file-path", "config.yaml") == 0
    assert column("Reasoning") == ["reason 0"]


def test_without_a_config_the_default_openai_model_is_used(
    stub: OpenAIStub, exit_code: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(1)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", stub.base_url)
    assert exit_code(*COMMAND) == 0
    assert stub.requests[0].body["model"] == "gpt-4o-mini"


@pytest.mark.full
def test_order_of_a_thousand_rows_does_not_depend_on_answer_times(stub: OpenAIStub, exit_code: Command) -> None:
    draw = random.Random(1)
    write(1000)
    bounded = Path("config.yaml").read_text().replace("api_key: k", "api_key: k, max_tokens: 50")
    Path("config.yaml").write_text(bounded + "judges: {max_concurrency: 32}\n")
    stub.latency_sec = 0.01
    stub.chat_faults.extend(
        finish_reason("length") if draw.random() < 0.02 else None if draw.random() < 0.9 else Fault(delay_sec=0.05)
        for _ in range(1000)
    )
    assert exit_code(*COMMAND, "-c", "config.yaml", "-q") == 0
    assert 1 < stub.most_in_flight <= 32
    assert len(stub.requests) == 1000
    expected = [f"reason {number}" for number in range(1000)]
    reasons, errors = column("Reasoning"), column("Error")
    failed = [number for number, error in enumerate(errors) if error]
    assert 0 < len(failed) < 60
    assert all("did not come to the end" in errors[number] for number in failed)
    assert [reason or expected[place] for place, reason in enumerate(reasons)] == expected
    assert exit_code(*COMMAND, "-c", "config.yaml", "-q") == 0
    assert len(stub.requests) == 1000 + len(failed)
    assert column("Reasoning") == expected
    assert not any(column("Error"))


def test_errors_are_counted_and_fail_the_command_if_no_row_succeeds(
    stub: OpenAIStub, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    write(2)
    stub.chat_faults.extend([http_error(400, "too long"), None])
    Path("config.yaml").write_text(Path("config.yaml").read_text() + "judges: {max_concurrency: 1}\n")
    assert exit_code(*COMMAND, "-c", "config.yaml", "-q") == 0
    assert "1 row could not be judged. Run the same command to retry them." in capsys.readouterr().err
    Path("config.yaml").write_text(Path("config.yaml").read_text().replace("api_key: k", "api_key: wrong"))
    assert exit_code(*COMMAND, "-c", "config.yaml", "-q", "--overwrite") == 1
    error = capsys.readouterr().err
    assert "2 rows could not be judged" in error
    assert "Check the API key." in error
    assert "Check the API key." in column("Error")[1]


@pytest.mark.full
def test_model_that_rejects_everything_is_one_error_and_marks_each_row(
    stub: OpenAIStub, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    write(200)
    Path("config.yaml").write_text(Path("config.yaml").read_text().replace("api_key: k", "api_key: wrong"))
    assert exit_code(*COMMAND, "-c", "config.yaml", "-q") == 1
    assert len(stub.requests) < 30
    error = capsys.readouterr().err
    assert "refused 3 requests in a row and is asked nothing more" in error
    assert "200 rows could not be judged" in error
    assert all(column("Error"))
    Path("config.yaml").write_text(Path("config.yaml").read_text().replace("api_key: wrong", "api_key: k"))
    assert exit_code(*COMMAND, "-c", "config.yaml", "-q") == 0
    assert not any(column("Error"))


def test_unpriced_model_is_reported(stub: OpenAIStub, exit_code: Command, capsys: pytest.CaptureFixture[str]) -> None:
    write(1)
    Path("config.yaml").write_text(Path("config.yaml").read_text().replace("api_key: k", "api_key: k, model: mine"))
    assert exit_code(*COMMAND, "-c", "config.yaml", "-q") == 0
    output = capsys.readouterr()
    assert "Cost: not known (1 answer judged now)" in output.out
    assert "no price is known for mine" in output.err


def test_judged_rows_are_not_judged_again_and_removed_rows_are_reported(
    stub: OpenAIStub, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    write(2)
    exit_code(*COMMAND, "-c", "config.yaml", "-q")
    write(1)
    capsys.readouterr()
    assert exit_code(*COMMAND, "-c", "config.yaml", "-q") == 0
    output = capsys.readouterr()
    assert "All of these answers had been judged before" in output.out
    assert "judged answers that are no longer in the input were left out of out/out.tsv: 1." in output.err
    assert len(stub.requests) == 2


def test_windows_file_with_huge_and_quoted_cells_is_read(stub: OpenAIStub, exit_code: Command) -> None:
    huge = "5 " + "x" * 500_000
    rows = f'\ufeffQuestion\tReference answer\tActual answer\r\n"a ""b""\tc\r\nd"\t{huge}\tanswer 5\r\n'
    Path("in.tsv").write_bytes(rows.encode())
    assert exit_code(*COMMAND, "-c", "config.yaml") == 0
    assert column("Question") == ['a "b"\tc\r\nd']
    assert column("Reference answer") == [huge]
    assert column("Reasoning") == ["reason 5"]
