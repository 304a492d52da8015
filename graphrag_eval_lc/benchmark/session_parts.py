"""What the processes of a session of pytest wrote down, from which its runs are made, at its end or after a kill."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from graphrag_eval_lc.files.opening import open_to_read
from graphrag_eval_lc.json_values import parse_json
from graphrag_eval_lc.records import Response
from graphrag_eval_lc.run_folder.journal import journal_lines

PARTS = ".pytest-parts"
PLAN = "plan.json"
_LONGEST = 80
_NOT_IN_A_NAME = re.compile(r"[^\w.-]+")


@dataclass(frozen=True, slots=True)
class CollectedRun:
    """What is known of a run of the session, from what its processes wrote.

    Attributes:
        plan: What was collected: ``key``, ``name``, ``test``, ``templates``, ``selected`` and so on.
        record: Its run.json as it began; None where nothing was asked.
        asked: The last record of each question, by its id.
    """

    plan: Mapping[str, Any]
    record: dict[str, Any] | None = None
    asked: dict[str, Mapping[str, Any]] = field(default_factory=dict)


def collected_runs(folder: Path) -> list[CollectedRun]:
    """Read what the processes of a session wrote so far.

    Of several records of a question, as of a test that was run again, the one that was written last counts.

    Raises:
        RunFolderError: A journal cannot be read.
    """
    runs: dict[str, CollectedRun] = {}
    parts = sorted(path for path in folder.iterdir() if path.is_dir())
    for part in parts:
        for plan in _read(part / PLAN).get("runs", ()):
            runs.setdefault(plan["key"], CollectedRun({**plan, "dataset": str(part / plan["dataset"])}))
    for key, run in runs.items():
        records = [_read(part / f"{key}.run.json") for part in parts]
        known = sorted((record for record in records if record), key=lambda record: str(record["times"]["started"]))
        judged = [record for record in known if "judges" in record]
        asked: dict[str, Mapping[str, Any]] = {}
        for record in _journaled(part / f"{key}.jsonl" for part in parts):
            before = asked.get(record["question_id"])
            if before is None or before["at"] <= record["at"]:
                asked[record["question_id"]] = record
        runs[key] = CollectedRun(
            run.plan, (known[0] | (judged or known)[0] | {"times": known[0]["times"]}) if known else None, asked
        )
    return list(runs.values())


def _journaled(paths: Iterator[Path]) -> Iterator[dict[str, Any]]:
    for path in paths:
        for line in journal_lines(path) if path.exists() else ():
            if line.record is not None and "at" in line.record:  # a last line may be cut off, where a process died
                yield line.record


def unanswered(question: Mapping[str, Any], why: str) -> Response:
    """Return the response of a question that got no answer."""
    given = {"question_id": str(question["id"]), "question_text": question["question_text"]}
    return cast("Response", {**given, "status": "error", "error": why, "actual_steps": []})


def _read(path: Path) -> dict[str, Any]:
    try:
        with open_to_read(path) as file:
            read = parse_json(file.read().decode("utf-8"))
    except (OSError, ValueError):  # a process that died before it wrote it
        return {}
    return read if isinstance(read, dict) else {}


def folder_names(runs: Iterable[tuple[str, str]]) -> list[str]:
    """Return a folder's name for each run, unlike the others.

    Args:
        runs: The name of each run and the node id of its test.

    Example:
        >>> folder_names([("test_agent", "tests/test_a.py::test_agent"), ("test_agent", "tests/test_b.py::test_agent")])
        ['test_a.test_agent', 'test_b.test_agent']
    """
    given = list(runs)
    names = [_plain(name) for name, _ in given]
    for longer in (_with_module, _with_path):
        names = [
            longer(name, test) if _is_twice(name, names) else name for name, (_, test) in zip(names, given, strict=True)
        ]
    taken: set[str] = set()
    for place, name in enumerate(names):
        number = 1
        while (unique := name if number == 1 else f"{name}_{number}").casefold() in taken:
            number += 1
        names[place] = unique
        taken.add(unique.casefold())
    return names


def _is_twice(name: str, names: Sequence[str]) -> bool:
    return [each.casefold() for each in names].count(name.casefold()) > 1


def _with_module(name: str, test: str) -> str:
    module, *classes, _ = test.split("::")
    return _plain(".".join([module.rpartition("/")[2].removesuffix(".py"), *classes, name]))


def _with_path(name: str, test: str) -> str:
    folder, _, _ = test.partition("::")[0].rpartition("/")
    return _plain(f"{folder}.{name}") if folder else name


def _plain(name: str) -> str:
    """Return a name that every file system takes."""
    return _NOT_IN_A_NAME.sub("_", name).strip("._")[:_LONGEST] or "run"
