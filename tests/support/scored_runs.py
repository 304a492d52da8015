"""Folders of runs with given scores."""

import json
from pathlib import Path
from typing import Any


def write_run(folder: Path, day: int, scores: list[float | None], *, templates: int = 4, **record: Any) -> Path:
    """Write a run with a question of the templates in turn for each score; None failed."""
    folder.mkdir(parents=True)
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
    folder.joinpath("results.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in results))
    errors = scores.count(None)
    micro = {
        "number_of_error_samples": errors,
        "number_of_success_samples": len(scores) - errors,
        "steps_score": {"mean": 0.5},
    }
    folder.joinpath("aggregates.yaml").write_text(json.dumps({"per_template": {}, "micro": micro, "macro": {}}))
    told = {
        "format_version": 2,
        "times": {"started": f"2026-01-{day:02}T00:00:00+00:00"},
        "totals": {},
        "dataset": {"sha256": "d1"},
        **record,
    }
    folder.joinpath("run.json").write_text(json.dumps(told))
    return folder
