"""The command `dataset import`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.qald_samples import qald
from support.sparql_stub import answering

from graphrag_eval_lc import load_dataset

Command = Callable[..., int]
IMPORT = ("dataset", "import", "qald.json", "-o", "new.yaml")


@pytest.fixture
def sample(files: Path) -> Path:
    Path("qald.json").write_text(json.dumps(qald(14)))
    return files


def test_qald_dataset_becomes_a_reference_dataset(
    sample: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(*IMPORT) == 0
    output = capsys.readouterr()
    assert output.out == "Wrote 14 questions to new.yaml, 14 of them with reference steps. The queries are SPARQL.\n"
    assert output.err == ""
    assert exit_code("validate", "new.yaml") == 0
    assert capsys.readouterr().out == "No problems found.\n"
    assert exit_code("dataset", "import", "qald.json", "-o", "new.json", "--language", "de,zh") == 0
    assert load_dataset("new.json")[0]["questions"][0]["question_text"] == "哪个 0"


def test_broken_questions_are_reported_and_the_others_are_written(
    sample: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    value = qald(3)
    value["questions"][1]["question"] = []
    value["questions"][2]["answers"] = []
    Path("qald.json").write_text(json.dumps(value))
    assert exit_code(*IMPORT) == 1
    output = capsys.readouterr()
    assert output.out == "Wrote 2 questions to new.yaml, 1 of them with reference steps. The queries are SPARQL.\n"
    broken, note = output.err.splitlines()
    assert broken.startswith("qald.json, question 1: the question has no text in any language.")
    assert note.startswith("Note: Without gold, so that no step is scored")
    assert note.endswith("(1 question): 2. --endpoint URL asks a SPARQL endpoint for it.")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--language", "fr"), "Error: qald.json: there is nothing to import: no question is left."),
        (("--query-column", "sparql"), "Error: QALD's JSON has no columns"),
        (("--endpoint", "foo"), "Error: the endpoint foo is not an HTTP URL."),
        (("--refresh",), "Error: --refresh needs an endpoint."),
        (
            ("--endpoint", "http://127.0.0.1:1/", "--refresh"),
            "Error: the endpoint http://127.0.0.1:1/ cannot be reached",
        ),
        (("--endpoint", "http://127.0.0.1:1/", "--timeout", "0"), "Error: timeout is above 0 seconds, not 0."),
        (("--endpoint", "http://127.0.0.1:1/", "--max-bytes", "0"), "Error: max_bytes is above 0, not 0."),
    ],
)
def test_unimportable_files_are_invalid_input(
    sample: Path, exit_code: Command, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], complaint: str
) -> None:
    assert exit_code(*IMPORT, *options) == 2
    output = capsys.readouterr()
    assert complaint in output.err
    assert output.out == ""
    assert not Path("new.yaml").exists()


def test_table_is_queried_from_an_endpoint(
    sample: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("table.csv").write_text("number,ask,code\nq1,Is it?,ASK {}\nq2,Is it not?,nothing\n")
    names = ("--id-column", "number", "--question-column", "ask", "--query-column", "code", "--step-name", "run_sparql")
    with answering(
        lambda query: (200, '{"head": {}, "boolean": true}', {}) if query == "ASK {}" else (400, "no", {})
    ) as url:
        assert exit_code("dataset", "import", "table.csv", "-o", "new.yaml", "--endpoint", url, *names) == 1
    output = capsys.readouterr()
    assert output.out == "Wrote 2 questions to new.yaml, 1 of them with reference steps. The queries are SPARQL.\n"
    assert f"table.csv, question q2: {url} returns no results: status 400: no." in output.err
    [template] = load_dataset("new.yaml")
    assert template["template_id"] == "table"
    assert template["questions"][0]["reference_steps"][0][0]["name"] == "run_sparql"


def test_endpoint_may_redirect_and_send_up_to_the_limit(
    sample: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("table.csv").write_text("question,sparql\nIs it?,ASK {}\n")
    command = ("dataset", "import", "table.csv", "-o", "new.yaml", "--endpoint")
    with answering(lambda _: (200, '{"head": {}, "boolean": true}', {})) as there:
        with answering(lambda _: (302, "", {"Location": there})) as url:
            assert exit_code(*command, url) == 2
            complaint = (
                f"Error: {url.removesuffix('/sparql')} redirects to another host, {there.removesuffix('/sparql')},"
            )
            assert complaint in capsys.readouterr().err
            assert exit_code(*command, url, "--follow-redirects") == 0
        assert exit_code(*command, there, "--max-bytes", "5", "--overwrite") == 1
    assert "sent more than 5 bytes; --max-bytes (max_bytes) allows more" in capsys.readouterr().err
