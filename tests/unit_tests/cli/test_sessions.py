"""Command-line sessions: the output, exit code and files of each command, as listed in the tables in `sessions`.

A session is a list of steps in a folder with the files of `conftest.py`. A step has one of these keys:

- `$`: a command line. `code` is the exit code (default: 0); `out` and `err` are words in standard output and error,
  `out_is` and `err_is` their whole text, `not` is in neither; `lines` is the number of lines of standard error,
  `out_lines` and `widest` limit the lines of standard output and their length, which `begins` with a text.
- `write`, `append`, `edit`, `rename`, `cd`: files and their content; and the text to append; and a text and its
  replacement; and their new names; the folder of the next steps.
- `dataset`: writes qa.json with a number of `templates` and `questions` (q0 of t0, q1 of t1, …), and responses.jsonl
  with `repeats` correct answers to each of `answered` questions, spread evenly.
- `runs`: run folders with `scores`, one per question `q0`, `q1` … (starting at `first`, or with these `ids`), in a
  number of `templates` (default: one each), of a `metric` (default: steps_score); `values` are added to each result,
  `record` to run.json.
- `judge`: starts an OpenAI stub and writes config.yaml for it (the value is added), and judged.yaml and judged.jsonl,
  which it can judge; `requests` is the number of requests so far.
- `env`: environment variables from then on. `forget`: clears all registrations, as in a new process.
- `text`, `is`, `count`, `json`, `rows`: texts in files; their whole content; the number of occurrences; values in a
  JSON file by dotted keys; columns of a JSON Lines file.
- `absent`, `exists`: paths.
"""

import json
import os
import shlex
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.judged_runs import config_of, judged_dataset, judged_responses
from support.openai_stub import OpenAIStub
from support.scored_runs import run_folder

from graphrag_eval_lc.registry import registered_only_here
from graphrag_eval_lc.registry.plugins import saved_registrations

SESSIONS = {
    f"{path.stem}: {name}": steps
    for path in sorted(Path(__file__).with_name("sessions").glob("*.yaml"))
    for name, steps in yaml.safe_load(path.read_text(encoding="utf-8")).items()
}


def words(text: str) -> str:
    """Return a text without frames and line breaks, which depend on the terminal."""
    return " ".join(text.replace("│", " ").split())


def check_command(step: dict[str, Any], exit_code: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    code = exit_code(*shlex.split(step["$"]))
    out, err = capsys.readouterr()
    shown = f"{step['$']}\n{out}\n{err}"
    assert code == step.get("code", 0), shown
    for text in step.get("out", []):
        assert words(text) in words(out), shown
    for text in step.get("err", []):
        assert words(text) in words(err), shown
    for text in step.get("not", []):
        assert words(text) not in words(out + err), shown
    assert (out, err) == (step.get("out_is", out), step.get("err_is", err))
    assert len(err.splitlines()) == step.get("lines", len(err.splitlines())), shown
    assert out.startswith(step.get("begins", "")), shown
    assert len(out.splitlines()) <= step.get("out_lines", 100_000), shown
    assert max(map(len, out.splitlines()), default=0) <= step.get("widest", 10_000), shown
    assert "Traceback" not in err


def write_dataset(templates: int, questions: int, answered: int, repeats: int = 1) -> None:
    dataset: list[Any] = [{"template_id": f"t{n}", "questions": []} for n in range(templates)]
    for n in range(questions):
        question = {"id": f"q{n}", "question_text": f"What of {n}?"}
        question |= {"reference_steps": [[{"name": "lookup", "output": "1"}]]}
        dataset[n % templates]["questions"].append(question)
    Path("qa.json").write_text(json.dumps(dataset))
    step = {"name": "lookup", "args": {}, "id": "c", "status": "success", "output": "1"}
    lines = [
        {"question_id": f"q{n * (questions // answered)}", "actual_steps": [step], "repeat": repeat}
        for n in range(answered)
        for repeat in range(1, repeats + 1)
    ]
    Path("responses.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def write_judged(stub: OpenAIStub, more: dict[str, Any]) -> None:
    config = config_of(stub, **{key: value for key, value in more.items() if key != "llm"})
    for model, changes in more.get("llm", {}).items():
        config["llm"][model] = None if changes is None else config["llm"][model] | changes
    Path("config.yaml").write_text(yaml.safe_dump(config))
    Path("judged.yaml").write_text(yaml.safe_dump(judged_dataset(3)))
    Path("judged.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in judged_responses(3)))


def write_run(name: str, run: dict[str, Any]) -> None:
    ids = run.get("ids") or range(run.get("first", 0), run.get("first", 0) + len(run["scores"]))
    lines = [
        {
            "template_id": f"t{number % run.get('templates', 1000)}",
            "question_id": f"q{number}",
            "question_text": f"What of [b]{number}?",
            "status": "success",
            run.get("metric", "steps_score"): float(score),
            **run.get("values", {}),
        }
        for number, score in zip(ids, run["scores"], strict=True)
    ]
    run_folder(Path(name), lines, **run.get("record", {}))


def check_files(step: dict[str, Any]) -> None:
    for name, texts in step.get("text", {}).items():
        assert [text for text in texts if words(text) not in words(Path(name).read_text(encoding="utf-8"))] == []
    for name, values in step.get("json", {}).items():
        document = json.loads(Path(name).read_text(encoding="utf-8"))
        assert {keys: reduce(lambda at, key: at[key], keys.split("."), document) for keys in values} == values
    for name, columns in step.get("rows", {}).items():
        rows = [json.loads(line) for line in Path(name).read_text(encoding="utf-8").splitlines()]
        assert {key: [row.get(key) for row in rows] for key in columns} == columns
    for name, text in step.get("is", {}).items():
        assert Path(name).read_text(encoding="utf-8") == text
    for name, counts in step.get("count", {}).items():
        assert {text: Path(name).read_text(encoding="utf-8").count(text) for text in counts} == counts
    assert [name for name in step.get("absent", []) if Path(name).exists()] == []
    assert [name for name in step.get("exists", []) if not Path(name).exists()] == []


@pytest.mark.parametrize("name", SESSIONS)
def test_session(
    name: str,
    files: Path,
    exit_code: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    with registered_only_here():
        forget = saved_registrations()
        for step in SESSIONS[name]:
            if step.get("forget"):
                forget()
            for path, text in step.get("write", {}).items():
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                Path(path).write_text(text, encoding="utf-8")
            for path, text in step.get("append", {}).items():
                with Path(path).open("a", encoding="utf-8") as file:
                    file.write(text)
            if "judge" in step:
                write_judged(request.getfixturevalue("judge"), step["judge"])
            if "dataset" in step:
                write_dataset(**step["dataset"])
            for path, run in step.get("runs", {}).items():
                write_run(path, run)
            for path, (old, new) in step.get("edit", {}).items():
                text = Path(path).read_text(encoding="utf-8")
                assert old in text
                Path(path).write_text(text.replace(old, new), encoding="utf-8")
            for variable, value in step.get("env", {}).items():
                monkeypatch.setenv(variable, value)
            for path, new in step.get("rename", {}).items():
                Path(path).rename(new)
            if "cd" in step:
                os.chdir(step["cd"])  # undone by the `files` fixture
            if "$" in step:
                check_command(step, exit_code, capsys)
            check_files(step)
            if "requests" in step:
                assert len(request.getfixturevalue("judge").requests) == step["requests"]
