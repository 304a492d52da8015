"""Files in the formats of published datasets, imported by the real command."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import load_dataset, load_responses, run_evaluation, validate_dataset
from graphrag_eval_lc.cli.main import main
from graphrag_eval_lc.matching.rows import read_sparql_results

STEP_NAMES = {"sparql": "sparql_query", "sql": "sql_db_query", "cypher": "cypher_query"}
KEYS = ("question", "reference_answer", "query", "language", "gold", "response")


@pytest.fixture(scope="module")
def cases(conformance_dir: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((conformance_dir / "cases" / "imports" / "expected.json").read_text())
    return found


def command(*arguments: str) -> int:
    """Run a command and return its exit code."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


def gold_of(output: str) -> Any:
    results = read_sparql_results(output)
    if results.boolean is not None:
        return results.boolean
    plain = json.loads(output)
    rows = plain["results"]["bindings"] if isinstance(plain, dict) else plain
    cells = [[cell["value"] if isinstance(cell, dict) else str(cell) for cell in row.values()] for row in rows]
    return {"rows": sorted(cells)}


def imported(question: Any, responses: dict[str, Any]) -> dict[str, Any]:
    """Return the imported question with the keys of the table."""
    [step] = [step for group in question.get("reference_steps", ()) for step in group] or [None]
    query = step["args"].get("query") if step else question.get("reference_query")
    names = {name: language for language, name in STEP_NAMES.items()}
    return {
        "question": question["question_text"],
        "reference_answer": question.get("reference_answer"),
        "query": query,
        "language": names[step["name"]] if step else None,
        "gold": gold_of(step["output"]) if step else None,
        "response": responses.get(question["id"], {}).get("actual_answer"),
    }


def test_every_file_is_imported_as_expected(
    conformance_dir: Path, cases: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = {
        name: found
        for name, case in cases.items()
        if (found := mistakes(conformance_dir, name, case, tmp_path, capsys))
    }
    assert wrong == {}


def mistakes(
    conformance_dir: Path, name: str, case: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]
) -> list[Any]:
    """Return how an import differs from the expectation."""
    source, output, answers = conformance_dir / "cases" / "imports" / name, folder / f"{name}.yaml", folder / f"{name}l"
    code = command("dataset", "import", str(source), "-o", str(output), "--responses", str(answers))
    printed = "".join(capsys.readouterr())
    if "hint" in case:
        command("validate", str(source))
        both = (printed, "".join(capsys.readouterr()))
        return [both for word in case["hint"] if code == 0 or not all(word in each for each in both)]
    if case.get("refused"):
        is_refused = code and not output.exists() and all(each in printed for each in case["names"])
        return [] if is_refused else [code, printed]
    if code:
        return [code, printed]
    found = [each for each in case.get("reported", ()) if each not in printed]
    found += [each for each in case.get("not_offered", ()) if each in printed]
    dataset, responses = load_dataset(output), load_responses(answers) if answers.exists() else {}
    found += [problem for problem in validate_dataset(dataset) if problem.severity == "error"]
    ours = sorted(
        (imported(question, responses) for each in dataset for question in each["questions"] or ()),
        key=lambda each: each["question"],
    )
    meant = sorted(case["questions"], key=lambda each: each["question"])
    if len(ours) != len(meant):
        return [*found, ours]
    for one, other in zip(ours, meant, strict=True):
        language = other["language"]
        if one["language"] is None and language is not None:
            named = printed.casefold().partition("the queries are ")[2]
            found += [] if named.startswith(language) else [(language, printed)]
            one["language"] = language
        if other["gold"] is not None and isinstance(other["gold"], dict):
            other["gold"]["rows"].sort()
        found += [(key, one[key], other.get(key)) for key in KEYS if one[key] != other.get(key)]
    scored = {result["question_id"]: result.get("actual_answer") for result in run_evaluation(dataset, responses)}
    found += [each for each in responses if scored.get(each) != responses[each]["actual_answer"]]
    return found


def test_parquet_without_the_extra_names_it(
    conformance_dir: Path, cases: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for name, case in cases.items():
        if "extra" in case:
            source = conformance_dir / "cases" / "imports" / name
            assert command("dataset", "import", str(source), "-o", str(tmp_path / "qa.yaml")) == 2
            assert f"graphrag-eval-lc[{case['extra']}]" in capsys.readouterr().err
