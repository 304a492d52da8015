"""Command output on a real terminal, with terminal control sequences in all data."""

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.terminals import PAYLOADS, commands_in, marked, open_terminal, plain, read_all, shown

from graphrag_eval_lc.cli import main

_TEXTS = [marked(number, payload) for number, payload in enumerate(PAYLOADS)]
_SHOWN = [shown(number, payload) for number, payload in enumerate(PAYLOADS)]
Written = Callable[..., str]


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    step = {"name": "lookup", "args": {}, "id": "c", "status": "success", "output": "x"}
    questions = [
        {"template_id": text, "questions": [{"id": text, "question_text": text, "reference_steps": [[step]]}]}
        for text in _TEXTS
    ]
    responses = [{"question_id": text, "status": "error", "error": text, "actual_steps": []} for text in _TEXTS]
    Path("qa.json").write_text(json.dumps(questions))
    Path("responses.json").write_text(json.dumps([*responses, {**responses[0], "question_id": f"not {_TEXTS[0]}"}]))


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Written:
    """Return a function that runs a command and returns what reaches the terminal from stdout and stderr."""

    def command(*arguments: str) -> str:
        primary, secondary = open_terminal()
        with ThreadPoolExecutor(1) as reader, os.fdopen(secondary, "w", encoding="utf-8") as file:
            reading = reader.submit(read_all, primary)
            with monkeypatch.context() as streams:
                streams.setattr("sys.stdout", file)
                streams.setattr("sys.stderr", file)
                with pytest.raises(SystemExit):
                    main(arguments)
            file.close()
            return reading.result()

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "10000")
    return command


@pytest.mark.parametrize(
    "arguments",
    [
        ("score", "qa.json", "responses.json", "-o", "run", "--worst", "100", "--no-report"),
        ("run", "qa.json", "-a", "json:dumps", "-o", "run", "--dry-run"),
        ("validate", "qa.json", "--responses", "responses.json"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_ids_texts_and_errors_are_written_as_text(written: Written, arguments: tuple[str, ...]) -> None:
    output = written(*arguments)
    assert commands_in(output) == []
    found = plain(output)
    assert "Traceback" not in found
    named = _SHOWN[:1] if arguments[0] == "validate" else _SHOWN
    assert [text for text in named if text not in found] == []
