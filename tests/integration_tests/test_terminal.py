"""Terminal control sequences in all texts of a run, through the commands on a real terminal."""

import csv
import html
import json
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.pytest_projects import command as pytest_command
from support.pytest_projects import environment as pytest_environment
from support.pytest_projects import write_project
from support.terminals import PAYLOADS, commands_in, marked, on_terminal, plain, shown

from graphrag_eval_lc import compare_runs, load_run

pytestmark = pytest.mark.full

_MAIN = "from graphrag_eval_lc.cli import main; main()"
_AGENT = """
import time

def answer(question):
    time.sleep(0.02)
    if "fails" in question:
        raise ValueError(question)
    return question
"""
# Metric names in results may contain anything; a run with them is created in Python.
_SCORED = """
import json, sys
from graphrag_eval_lc import score_responses
payloads = json.loads(open("payloads.json").read())
def metrics(question, response):
    return {name: 0.25 for name in payloads} | {f"{name}_reason": name for name in payloads}
label = sys.argv[2]
score_responses("qa.json", "responses.json", output_dir=sys.argv[1], evaluators=[metrics], label=label, tags=payloads)
"""
_CALLS = """
import json, sys
from graphrag_eval_lc.cli import main
for arguments in json.load(open(sys.argv[1])):
    try:
        main(arguments)
    except SystemExit as ending:
        print("ended with", ending.code)
"""
_TEST = """
import pytest

def agent(question):
    raise ValueError(question)

@pytest.mark.graphrag_dataset("qa.json")
def test_agent(graphrag_question, graphrag_ask):
    assert graphrag_ask(agent, max_retries=0)["steps_score"] >= 0.5
"""
_NUMBERED = tuple(enumerate(PAYLOADS))
_TEXTS = [marked(number, payload) for number, payload in _NUMBERED]


def command(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run the command on a terminal, and check that it prints no control sequences and no traceback."""
    code, written = on_terminal(["-c", _MAIN, *arguments], folder)
    assert commands_in(written) == []
    assert "Traceback" not in written
    assert "bug in graphrag-eval-lc" not in written
    return code, plain(written)


def missing(text: str, numbered: Iterable[tuple[int, str]] = _NUMBERED) -> list[str]:
    """Return the payloads that are not legible in a text."""
    return [shown(number, payload) for number, payload in numbered if shown(number, payload) not in text]


def dataset(texts: Sequence[str], *, has_steps: bool = True) -> list[dict[str, Any]]:
    """Return one template per text, with a question that has it as id, text and step name."""
    return [
        {
            "template_id": text,
            "questions": [
                {
                    "id": text,
                    "question_text": f"{text} {'fails' if place % 2 else ''}",
                    **({"reference_steps": [[{"name": text, "output": text}]]} if has_steps else {}),
                }
            ],
        }
        for place, text in enumerate(texts)
    ]


def responses(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Return a failed or successful response per question, and one to an unknown question."""
    found = []
    for place, text in enumerate(texts):
        step = {"name": f"{text}!", "args": {text: text}, "id": "c", "status": "error", "error": text}
        failed = {"question_id": text, "status": "error", "error": text, "actual_steps": [step]}
        good = {**step, "status": "success", "output": text}
        answered = {"question_id": text, "actual_answer": text, "actual_steps": [good]}
        found.append(failed if place % 3 == 0 else answered)
    return [*found, {**found[-1], "question_id": f"unknown {texts[0]}"}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a dataset, an agent, responses, and two scored runs."""
    made = tmp_path_factory.mktemp("terminal")
    (made / "agent.py").write_text(_AGENT)
    (made / "payloads.json").write_text(json.dumps(_TEXTS))
    (made / "qa.json").write_text(json.dumps(dataset(_TEXTS)))
    (made / "responses.json").write_text(json.dumps(responses(_TEXTS)))
    for name, label in (("runs/a", _TEXTS[0]), ("runs/b", _TEXTS[4])):
        code, written = on_terminal(["-c", _SCORED, name, label], made)
        assert (code, commands_in(written)) == (0, [])
        record = json.loads((made / name / "run.json").read_text())
        (made / name / "run.json").write_text(json.dumps({**record, "label": "".join(_TEXTS) + name}))
    return made


@pytest.mark.parametrize("is_quiet", [False, True])
def test_run_shows_its_questions_and_errors_as_text(folder: Path, is_quiet: bool, tmp_path: Path) -> None:
    code, text = command(
        folder,
        *("run", "qa.json", "-a", "agent.py:answer", "-o", str(tmp_path / "run"), "--max-retries", "0"),
        *("--worst", "100", "--label", _TEXTS[0], *(["--quiet"] if is_quiet else [])),
    )
    assert code == 0
    assert missing(text) == []


def test_dry_run_names_questions_as_text(folder: Path) -> None:
    code, text = command(folder, "run", "qa.json", "-a", "agent.py:answer", "-o", "dry", "--dry-run")
    assert code == 0
    assert missing(text) == []


def test_score_shows_templates_tools_errors_and_unknown_ids_as_text(folder: Path, tmp_path: Path) -> None:
    code, text = command(folder, "score", "qa.json", "responses.json", "-o", str(tmp_path / "scored"), "--worst", "100")
    assert code == 0
    assert missing(text) == []
    assert f"unknown {shown(0, PAYLOADS[0])}" in text


def test_compare_shows_labels_metrics_and_flips_as_text(folder: Path) -> None:
    code, text = command(folder, "compare", "runs/a", "runs/b", "--fail-under", f"{_TEXTS[0]}=0.9", "--html", "c.html")
    assert code == 1
    assert missing(text) == []
    assert f"Gate failed: B: {shown(0, PAYLOADS[0])}" in text


@pytest.mark.parametrize("more", [(), ("--trend",)])
def test_lists_of_runs_show_labels_and_metrics_as_text(folder: Path, more: tuple[str, ...]) -> None:
    code, text = command(folder, "runs", "runs", *more, "--metric", _TEXTS[0])
    assert code == 0
    assert missing(text) == []


def test_validate_shows_ids_and_keys_as_text(folder: Path) -> None:
    templates = dataset(_TEXTS)
    for template, text in zip(templates, _TEXTS, strict=True):
        template["questions"][0]["reference_steps"] = [[{"name": text, "output_media_type": text, text: text}]]
        template["questions"][0]["reference_anwser"] = text
    (folder / "odd.json").write_text(json.dumps(templates))
    _, text = command(folder, "validate", "odd.json", "--responses", "responses.json")
    assert missing(text) == []


def test_validate_names_broken_questions_as_text(folder: Path) -> None:
    templates = [{"template_id": text, "questions": [{"id": text, "question_text": 7}]} for text in _TEXTS]
    (folder / "broken.json").write_text(json.dumps(templates))
    code, text = command(folder, "validate", "broken.json")
    assert code == 1
    assert missing(text) == []


def commands(folder: Path, calls: Sequence[Sequence[str]]) -> list[str]:
    """Run commands one after the other on a terminal; return each output, with its exit code at the end."""
    (folder / "calls.json").write_text(json.dumps(calls))
    code, written = on_terminal(["-c", _CALLS, "calls.json"], folder)
    assert code == 0
    assert commands_in(written) == []
    assert "Traceback" not in written
    assert "bug in graphrag-eval-lc" not in written
    shown_by = re.split(r"(?<=ended with )(\w+)", plain(written))
    assert len(shown_by) == 2 * len(calls) + 1
    return [text + code for text, code in zip(shown_by[::2], shown_by[1::2], strict=False)]


def test_json_is_the_same_document_with_json_escapes(folder: Path, tmp_path: Path) -> None:
    calls = [
        ("run", "qa.json", "-a", "agent.py:answer", "--quiet", "--max-retries", "0", "-o", str(tmp_path / "run")),
        ("score", "qa.json", "responses.json", "-o", str(tmp_path / "scored")),
        ("compare", "runs/a", "runs/b"),
        ("validate", "qa.json", "--responses", "responses.json"),
        ("runs", "runs"),
        ("runs", "--trend", "runs"),
    ]
    for text in commands(folder, [(*arguments, "--json") for arguments in calls]):
        document, _ = json.JSONDecoder().raw_decode(text, text.index("{\n"))  # warnings come before and after it
        found = json.dumps(document, ensure_ascii=False)
        assert all(json.dumps(each, ensure_ascii=False)[1:-1] in found for each in _TEXTS[:3])


def ends_of(folder: Path, *arguments: str) -> str:
    """Run a command with each payload in its arguments, all invalid, and return the terminal output."""
    ends = commands(folder, [[each.replace("{}", text) for each in arguments] for text in _TEXTS])
    assert all(text.endswith("ended with 2") for text in ends)
    return "".join(ends)


@pytest.mark.parametrize(
    "arguments", [("score", "{}.json", "x", "-o", "o"), ("runs", "{}"), ("compare", "{}", "runs/b")]
)
def test_missing_files_are_named_as_text(folder: Path, arguments: tuple[str, ...]) -> None:
    # A path collapses slashes and cannot contain the null character.
    in_paths = [each for each in _NUMBERED if "//" not in each[1] and "\0" not in each[1]]
    assert missing(ends_of(folder, *arguments), in_paths) == []


@pytest.mark.parametrize("arguments", [("--{}",), ("{}",), ("runs", "--last", "{}")], ids=" ".join)
def test_invalid_arguments_contain_no_terminal_commands(folder: Path, arguments: tuple[str, ...]) -> None:
    # Newer versions of click have their own escapes.
    assert "Usage:" in ends_of(folder, *arguments)


def test_drafts_imports_and_plugins_are_shown_as_text(folder: Path) -> None:
    code, _ = command(folder, "dataset", "draft", "responses.json", "-o", "draft.json", "--dataset", "qa.json")
    assert code == 0
    with (folder / "questions.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("id", "question", "query"), *((text, text, text) for text in _TEXTS)])
    code, _ = command(folder, "dataset", "import", "questions.csv", "-o", "imported.json", "--overwrite")
    assert code in (0, 1)


def test_log_warnings_and_uncaught_errors_are_text(folder: Path) -> None:
    code, written = on_terminal(
        [
            "-c",
            "import json, logging, sys\n"
            "logging.basicConfig(level=logging.DEBUG)\n"
            "from graphrag_eval_lc import run_benchmark, run_evaluation\n"
            "from graphrag_eval_lc.errors import DatasetError\n"
            "texts = json.loads(open('payloads.json').read())\n"
            "def retry_on(error): raise RuntimeError(''.join(texts))\n"
            "def agent(question): raise ValueError(''.join(texts))\n"
            "print(repr(run_benchmark(agent, 'qa.json', retry_on=retry_on, limit=1, label=texts[0])))\n"
            "run_evaluation(json.loads(open('qa.json').read()), json.loads(open('responses.json').read()))\n"
            "raise DatasetError(''.join(texts), path=texts[0], question_id=texts[1], key=texts[2])\n",
        ],
        folder,
    )
    assert code == 1
    assert commands_in(written) == []
    assert "retry_on raised RuntimeError" in written
    assert f"unknown {shown(0, PAYLOADS[0])}" in written
    error = written.partition("DatasetError: ")[2]
    assert missing(error) == []


def test_traceback_of_debug_is_text(folder: Path) -> None:
    (folder / "broken.py").write_text(f"raise RuntimeError({''.join(_TEXTS)!r})")
    code, written = on_terminal(["-c", _MAIN, "--debug", "run", "qa.json", "-a", "broken.py:x", "-o", "d"], folder)
    assert code == 1
    assert commands_in(written) == []
    assert "Traceback" in written
    assert missing(written) == []


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "ascii:strict"])
def test_no_terminal_encoding_crashes_a_command(folder: Path, encoding: str, tmp_path: Path) -> None:
    code, written = on_terminal(
        ["-c", _MAIN, "score", "qa.json", "responses.json", "-o", str(tmp_path / "scored")],
        folder,
        environment={"PYTHONIOENCODING": encoding},
    )
    assert code == 0
    assert "Scores by template" in written
    assert "\x1b[2J" not in written


def test_pytest_shows_failures_gates_and_folders_as_text(tmp_path: Path) -> None:
    project = write_project(tmp_path / "project", _TEST)
    (project / "qa.json").write_text(json.dumps(dataset(_TEXTS)))
    gates = [f"--graphrag-fail-under={_TEXTS[place]}/steps_score=0.9" for place in (0, 4, 27)]
    arguments = pytest_command(
        f"--graphrag-output=runs/{_TEXTS[4]}", "--color=no", "-q", "-p", "no:cacheprovider", *gates
    )
    code, written = on_terminal(arguments[1:], project, environment=pytest_environment(TERM="xterm-256color"))
    assert code == 1
    assert commands_in(written) == []
    assert missing(plain(written)) == []
    assert f"Gate failed: {shown(0, PAYLOADS[0])}/steps_score" in plain(written)
    assert f"Written to runs/{shown(4, PAYLOADS[4])}" in plain(written)


def test_notebooks_show_text(folder: Path) -> None:
    run, other = load_run(folder / "runs/a"), load_run(folder / "runs/b")
    comparison = compare_runs(run, other)
    texts = [repr(run), run._repr_html_(), run.results._repr_html_(), str(comparison), repr(comparison)]
    texts += [comparison._repr_html_(), *map(str, comparison.gate_results({_TEXTS[0]: 0.9}))]
    assert [commands_in(text) for text in texts] == [[] for _ in texts]
    assert [text for text in map(html.escape, map(shown, *zip(*_NUMBERED, strict=True))) if text not in texts[5]] == []


def test_broken_or_different_record_is_reported_as_text(folder: Path, tmp_path: Path) -> None:
    options = ("--limit", "2", "--max-retries", "0", "--no-report", "--quiet")
    asked = ("run", "qa.json", "-a", "agent.py:answer", *options, "-o")
    command(folder, *asked, str(tmp_path / "run"))
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    calls: list[tuple[str, ...]] = []
    for key in ("agent", "questions", "config", "label"):
        run = str(shutil.copytree(tmp_path / "run", tmp_path / key))
        (tmp_path / key / "run.json").write_text(json.dumps({**record, key: hostile(record.get(key, ""))}))
        calls += [(*asked, run), ("score", run, "--no-report"), ("runs", run), ("compare", run, "runs/a")]
    commands(folder, calls)


def hostile(value: Any) -> Any:
    """Return a JSON value whose strings all start with a control sequence."""
    if isinstance(value, dict):
        return {key: hostile(item) for key, item in value.items()}
    if isinstance(value, list):
        return [hostile(item) for item in value]
    return "".join(_TEXTS) + value if isinstance(value, str) else value
