"""Write run folders with given scores, and read their record."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def run_folder(path: Path, results: Iterable[Mapping[str, Any]], **record: Any) -> Path:
    """Write a run's results and its run.json, and return the folder."""
    path.mkdir(parents=True)
    path.joinpath("results.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in results))
    path.joinpath("run.json").write_text(json.dumps({"format_version": 2, **record}))
    return path


def record_in(folder: Path | str) -> dict[str, Any]:
    """Return the run.json of a folder."""
    record: dict[str, Any] = json.loads(Path(folder, "run.json").read_text(encoding="utf-8"))
    return record


def write_run(folder: Path, day: int, scores: list[float | None], *, templates: int = 4, **record: Any) -> Path:
    """Write a run with one question per score, cycling through the templates. A score of None is a failed question."""
    results: list[dict[str, Any]] = [
        {
            "template_id": f"t{index % templates}",
            "question_id": f"q{index}",
            "question_text": f"{index}?",
            "reference_steps": [[{"name": "s", "output": "1"}]],
            "total_tokens": 100 * day,
            **({"status": "error", "error": "away"} if score is None else {"status": "success", "steps_score": score}),
        }
        for index, score in enumerate(scores)
    ]
    times = {"started": f"2026-01-{day:02}T00:00:00+00:00"}
    run_folder(folder, results, **{"times": times, "totals": {}, "dataset": {"sha256": "d1"}, **record})
    errors = scores.count(None)
    micro = {
        "number_of_error_samples": errors,
        "number_of_success_samples": len(scores) - errors,
        "steps_score": {"mean": 0.5},
    }
    folder.joinpath("aggregates.yaml").write_text(json.dumps({"per_template": {}, "micro": micro, "macro": {}}))
    return folder
