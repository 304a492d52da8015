"""Replay recorded comparisons and parsed rows, and show differences from the recorded outcomes.

``python tests/goldens/rows.py [--op compare] [--limit N] [--show N] [--verdicts] [FILE …]`` replays against the package
in the current folder. Each line of a file is one record: an operation (``compare``, ``read``, ``row_step``, ``steps``),
its inputs and its outcome. Exit codes: 0 no differences, 1 differences.
"""

import argparse
import gzip
import json
import signal
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from types import FrameType
from typing import Any

Record = dict[str, Any]
RECORDS = "rows.jsonl.gz"
KINDS_OF_FIELDS = {
    "verdict": ("verdict", "error", "raises"),
    "columns": ("columns", "boolean"),
    "rows": ("row_count", "missing_row_count", "extra_row_count", "row_precision", "row_recall"),
    "cells": ("cells",),
    "shapes": ("shapes",),
    "assignment": ("assignment",),
    "score": ("score",),
    "grade": ("grade",),
    "form": ("form",),
}
"""The fields of outcomes by kind; a difference counts as the first kind in which it is."""
_LONGEST_SEC = 10


class TooSlow(BaseException):
    """A record took too long. Only the replay catches this error."""


def read_records(path: Path) -> list[Record]:
    """Return the records of a file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def outcome_of(record: Record) -> Record:
    """Return the outcome of a record with the current code. Never raises."""
    try:
        with _at_most(_LONGEST_SEC), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _OPERATIONS[record["op"]](record)
    except TooSlow:
        return {"raises": f"not done in {_LONGEST_SEC} s"}
    except Exception as problem:
        return {"raises": type(problem).__name__}


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# --- the operations --------------------------------------------------------------------------------------------------


def _compare(record: Record) -> Record:
    from graphrag_eval_lc.matching.rows import compare_sparql_results

    found = compare_sparql_results(record["reference"], record["actual"], **record["options"])
    is_at_fault = not found.score and " at fault" in found.reason
    return {
        "verdict": "reference_fault" if is_at_fault else "unreadable" if found.unreadable else found.outcome,
        "columns": found.columns,
        "missing_row_count": found.missing_row_count,
        "extra_row_count": found.extra_row_count,
        "row_precision": round(found.row_precision, 4),
        "row_recall": round(found.row_recall, 4),
        "grade": round(found.grade, 4),
        "form": _form_of(record["actual"]),
    }


def _read(record: Record) -> Record:
    from graphrag_eval_lc.matching import CutOutput, UnreadableOutput
    from graphrag_eval_lc.matching.rows import read_sparql_results

    try:
        results = read_sparql_results(record["output"], format=record.get("format"), path=record.get("path"))
    except CutOutput:
        return {"error": "cut"}
    except UnreadableOutput:
        return {"error": "unreadable"}
    cells, shapes = [], []
    for name, column in results.columns.items():
        of_cells = column.shapes if isinstance(column.shapes, list) else [column.shapes] * results.row_count
        cells.append([name, [text if shape[0] else None for text, shape in zip(column.texts, of_cells, strict=True)]])
        shapes.append([name, of_cells])
    return {
        "columns": list(results.variables),
        "row_count": results.row_count,
        "boolean": results.boolean,
        "cells": _digest(cells),
        "shapes": _digest(shapes),
        "form": results.form,
    }


def _row_step(record: Record) -> Record:
    from graphrag_eval_lc.config import OutputConfig, RowsConfig
    from graphrag_eval_lc.matching import StepView
    from graphrag_eval_lc.matching.rows import match_row_steps

    rows, declared = record.get("rows"), record.get("declared")
    found = match_row_steps(
        StepView(record["reference"], rows=rows and RowsConfig.model_validate(rows)),
        StepView(record["actual"], declared=declared and OutputConfig.model_validate(declared)),
    )
    is_at_fault = not found.score and " at fault" in found.reason()
    verdict = "match" if found.score else "undecided" if found.is_undecided else "mismatch"
    return {
        "verdict": "reference_fault" if is_at_fault else "unreadable" if found.unreadable else verdict,
        "grade": round(found.grade(), 4) if found.grade else None,
        "form": _form_of(record["actual"].get("output")),
    }


def _steps(record: Record) -> Record:
    from graphrag_eval_lc.config import RetrievalConfig, SparqlConfig, StepsConfig
    from graphrag_eval_lc.matching import match_steps

    given = record["config"]
    steps = StepsConfig.model_validate(given.get("steps", {}))
    found = match_steps(
        record["reference_steps"],
        record["actual_steps"],
        scoring=steps.scoring,
        grading=steps.grading,
        names=steps.names,
        kinds=steps.kinds,
        outputs=steps.outputs,
        rows=steps.rows,
        sparql=SparqlConfig.model_validate(given.get("sparql", {})),
        retrieval=RetrievalConfig.model_validate(given.get("retrieval", {})),
    )
    score = found.steps_score
    return {
        "verdict": [[step.outcome for step in group] for group in found.diagnosis],
        "assignment": [[match.group, match.reference, match.actual] for match in found.matches],
        "score": None if score is None else round(score, 6),
        "form": "steps",
    }


_OPERATIONS: dict[str, Callable[[Record], Record]] = {
    "compare": _compare,
    "read": _read,
    "row_step": _row_step,
    "steps": _steps,
}


def _form_of(output: Any) -> str:
    from graphrag_eval_lc.matching import UnreadableOutput
    from graphrag_eval_lc.matching.rows import read_sparql_results

    try:
        return str(read_sparql_results(output).form)
    except UnreadableOutput:
        return "no form"


def _digest(value: Any) -> str:
    return sha256(json.dumps(value).encode()).hexdigest()[:12]


# --- differences -----------------------------------------------------------------------------------------------------


def kind_of_difference(old: Record, new: Record) -> str | None:
    """Return the first kind of field in which two outcomes differ, or None."""
    for kind, fields in KINDS_OF_FIELDS.items():
        if any(old.get(field) != new.get(field) for field in fields):
            return kind
    return None


def _shown(outcome: Record, kind: str) -> str:
    if kind == "verdict" and not isinstance(outcome.get("verdict"), list):
        return str(outcome.get("verdict") or outcome.get("error") or outcome.get("raises") or "read")
    return kind


def main() -> None:
    """Replay the records, and exit with 0 or 1."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    here = Path(__file__).resolve().parent
    parser.add_argument("files", nargs="*", type=Path, help="files of records; by default the one of the goldens")
    parser.add_argument("--op", action="append", choices=list(_OPERATIONS), help="replay only this operation")
    parser.add_argument("--limit", type=int, metavar="N", help="replay only about N records, evenly spread")
    parser.add_argument("--show", type=int, default=2, metavar="N", help="show N examples of each group (default: 2)")
    parser.add_argument("--width", type=int, default=300, help="characters of each input that are shown")
    parser.add_argument("--verdicts", action="store_true", help="compare verdicts only")
    parser.add_argument("--grep", metavar="TEXT", help="replay only records that contain a text")
    parser.add_argument("--from", dest="of_from", metavar="old->new", help="show only groups with this change")
    arguments = parser.parse_args()
    sys.path.insert(0, str(Path.cwd()))
    import graphrag_eval_lc.matching  # noqa: F401 - without it, no record can be replayed

    found = [here / name for name in (f"inputs/{RECORDS}", RECORDS) if (here / name).exists()]
    records = [record for path in arguments.files or found[:1] for record in read_records(path)]
    records = [record for record in records if not arguments.op or record["op"] in arguments.op]
    if arguments.grep:
        records = [record for record in records if arguments.grep in json.dumps(record, ensure_ascii=False)]
    if arguments.limit:
        records = records[:: max(1, len(records) // arguments.limit)]
    groups: dict[tuple[str, ...], list[tuple[Record, Record]]] = defaultdict(list)
    start, counts = time.monotonic(), dict.fromkeys(_OPERATIONS, 0)
    for record in records:
        counts[record["op"]] += 1
        old, new = record["outcome"], json.loads(json.dumps(outcome_of(record)))
        kind = kind_of_difference(old, new)
        if kind is None or (arguments.verdicts and kind != "verdict"):
            continue
        change = f"{_shown(old, kind)} -> {_shown(new, kind)}" if kind == "verdict" else kind
        groups[record["op"], change, old.get("form") or "no form"].append((record, new))
    _report(groups, arguments)
    differing = sum(map(len, groups.values()))
    print(f"{sum(counts.values())} records in {time.monotonic() - start:.0f} s, {differing} differ.", counts)
    sys.exit(1 if differing else 0)


def _report(groups: dict[tuple[str, ...], list[tuple[Record, Record]]], arguments: argparse.Namespace) -> None:
    wanted = (arguments.of_from or "").replace(" ", "").replace("->", " -> ")
    shown = {key: group for key, group in groups.items() if wanted in key[1]}
    for (operation, change, form), group in sorted(shown.items(), key=lambda each: -len(each[1])):
        print(f"=== {len(group)} × {operation}: {change} ({form})")
        for record, new in sorted(group, key=lambda each: len(json.dumps(each[0])))[: arguments.show]:
            fields = {key for key in {*record["outcome"], *new} if record["outcome"].get(key) != new.get(key)}
            print(f"  {record['id']}")
            for key, value in record.items():
                if key not in ("op", "id", "outcome") and value not in (None, {}):
                    print(f"    {key}: {json.dumps(value, ensure_ascii=False)[: arguments.width]}")
            for key in sorted(fields):
                print(f"    {key}: {record['outcome'].get(key)!s:.200} -> {new.get(key)!s:.200}")


if __name__ == "__main__":
    main()
