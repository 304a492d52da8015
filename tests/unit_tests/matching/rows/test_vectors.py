"""Tables of inputs and outcomes, one file per format or topic; ``vectors/README.md`` documents their keys."""

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import run_evaluation
from graphrag_eval_lc.matching import CutOutput, UnreadableOutput
from graphrag_eval_lc.matching.rows import compare_sparql_results, read_sparql_results

VECTORS = Path(__file__).parent / "vectors"
CASES = Path(os.environ.get("GRAPHRAG_EVAL_LC_CONFORMANCE_DIR", "none")) / "cases" / "rows" / "cases.jsonl"
XSD = "http://www.w3.org/2001/XMLSchema#"


def check_all(path: Path, check: Callable[[dict[str, Any]], None]) -> None:
    """Check all lines of a file, and fail with every wrong one."""
    wrong = []
    for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        try:
            check(line)
        except AssertionError as problem:
            wrong.append(f"{line['id']}: {problem}")
    assert wrong == [], "\n\n".join(wrong)


def term(cell: Any) -> Any:
    """Return an RDF term as in SPARQL JSON."""
    if isinstance(cell, list):
        return {"type": "triple", "value": dict(zip(("subject", "predicate", "object"), map(term, cell), strict=True))}
    if not isinstance(cell, str):
        return cell
    if cell.startswith("_:"):
        return {"type": "bnode", "value": cell[2:]}
    if cell.startswith("<") and cell.endswith(">"):
        return {"type": "uri", "value": cell[1:-1]}
    if found := re.fullmatch(r"(.*)\^\^(\S+)", cell, re.DOTALL):
        datatype = found[2] if ":" in found[2] else XSD + found[2]
        return {"type": "literal", "value": found[1], "datatype": datatype}
    if found := re.fullmatch(r"(.*)@([a-z]{2})", cell, re.DOTALL):
        return {"type": "literal", "value": found[1], "xml:lang": found[2]}
    return {"type": "literal", "value": cell}


def output(value: Any) -> Any:
    """Return an output, expanding the short form of SPARQL JSON."""
    if not isinstance(value, dict) or list(value) != ["sparql"]:
        return value
    names, *rows = value["sparql"]
    cells = [[(name, term(cell)) for name, cell in zip(names, row, strict=True) if cell is not None] for row in rows]
    return {"head": {"vars": names}, "results": {"bindings": list(map(dict, cells))}}


def compared(reference: Any, actual: Any, options: dict[str, Any]) -> dict[str, Any]:
    found = compare_sparql_results(output(reference), output(actual), **options)
    is_reference_error = not found.score and " at fault" in found.reason
    outcome = "reference_fault" if is_reference_error else "unreadable" if found.unreadable else found.outcome
    counts = {"missing_row_count": found.missing_row_count, "extra_row_count": found.extra_row_count}
    return {"outcome": outcome, "columns": found.columns, "grade": found.grade, "reason": found.reason, **counts}


def read(inputs: Any, **options: Any) -> dict[str, Any]:
    try:
        results = read_sparql_results(output(inputs), **options)
    except CutOutput as problem:
        return {"outcome": "cut", "reason": str(problem)}
    except UnreadableOutput as problem:
        return {"outcome": "unreadable", "reason": str(problem)}
    cells = [[column.readable(row) for column in results.columns.values()] for row in range(results.row_count)]
    found = {"columns": list(results.variables), "row_count": results.row_count, "rows": cells}
    return {"outcome": "read", "boolean": results.boolean, **found}


def matched(step: dict[str, Any], call: dict[str, Any], config: dict[str, Any] | None = None) -> dict[str, Any]:
    question = {"id": "q", "question_text": "?", "reference_steps": [[{"args": {}, **step}]]}
    actual = {"name": step["name"], "id": "c", "args": {}, "status": "success", **call}
    dataset = [{"template_id": "t", "questions": [question]}]
    [result] = run_evaluation(dataset, [{"question_id": "q", "actual_steps": [actual]}], config)
    diagnosis, score = result["steps_diagnosis"][0][0], result["steps_score"]
    is_unreadable = diagnosis["outcome"] == "mismatch" and "comparison_error" in result["actual_steps"][0]
    outcome = "match" if score == 1 else "unreadable" if is_unreadable else diagnosis["outcome"]
    return {"outcome": outcome, "score": score, "reason": diagnosis.get("reason", "")}


def found_by(vector: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the outcome of a vector, once per direction of comparison."""
    inputs = {key: value for key, value in vector.items() if key not in ("id", "why", "expected")}
    if "step" in inputs:
        yield matched(**inputs)
    elif "output" in inputs:
        yield read(inputs.pop("output"), **inputs)
    elif "cells" in inputs:
        one, other = ({"sparql": [[name], [cell]]} for name, cell in zip("ab", inputs.pop("cells"), strict=True))
        yield compared(one, other, inputs)
        yield compared(other, one, inputs)
    else:
        yield compared(inputs.pop("reference"), inputs.pop("actual"), inputs)


@pytest.mark.parametrize("path", sorted(VECTORS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_vectors(path: Path) -> None:
    check_all(path, check_vector)


def check_vector(vector: dict[str, Any]) -> None:
    expected = vector["expected"]
    expected = expected if isinstance(expected, dict) else {"outcome": expected}
    for found in found_by(vector):
        for key, value in expected.items():
            allowed = value if key == "outcome" and isinstance(value, list) else [value]
            if key == "reason":
                assert value in found["reason"], vector["why"]
            elif key == "grade":
                assert found["grade"] == pytest.approx(value, abs=5e-4), vector["why"]
            else:
                assert found[key] in allowed, f"{vector['why']} {found.get('reason')}"


def test_vectors_have_unique_names() -> None:
    for path in VECTORS.glob("*.jsonl"):
        names = [json.loads(line)["id"] for line in path.read_text(encoding="utf-8").splitlines()]
        assert len(set(names)) == len(names), path.name


@pytest.mark.skipif(not CASES.exists(), reason="GRAPHRAG_EVAL_LC_CONFORMANCE_DIR is not set")
def test_cases() -> None:
    """The cases of the conformance folder; a wrong value in a format must be read, and be a mismatch."""
    check_all(CASES, check_case)


def check_case(case: dict[str, Any]) -> None:
    step = {"name": case["step_name"], "output": case["reference_output"]}
    if case["media_type"]:
        step["output_media_type"] = case["media_type"]
    step |= {key: case[key] for key in ("required_columns", "ordered", "ignore_duplicates") if key in case}
    found = matched(step, {"output": case["actual_output"]}, case.get("config"))
    assert found["outcome"] == case["expected"], f"{case['why']} {found['reason']}"
