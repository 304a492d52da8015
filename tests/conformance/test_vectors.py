"""Inputs with outputs computed by real libraries: equal, except for the listed differences and their reasons."""

import json
import math
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from graphrag_eval_lc import compute_aggregates
from graphrag_eval_lc.matching import StepView, match_steps
from graphrag_eval_lc.matching.time_series import do_times_equal, match_data_points_steps, match_time_series_steps

SCORINGS: dict[Any, str] = {
    "last_group": "last_group_only_6_6_1_step_comparison",
    "all_groups": "all_groups_6_6_1_rules",
}

# Deliberate differences from graphrag-eval 6.6.1, by reason.
STEPS_EXCEPTIONS = {
    "steps-sparql-no-required": "required_columns is optional: all columns are required without it",
    "steps-rand-082": "a step must have the reference step's name, even where the output is the same text",
    "steps-iri-sparql-prefix": "an IRI must stand in the output as a whole term, not as the beginning of another",
    "steps-sparql-ref-notjson": "an output with the same text as the reference matches, whatever its form",
}
TIMES_EXCEPTIONS = {
    "ts-eq-095": "the moment of the call may be a text; graphrag-eval raises",
    "ts-eq-096": "the moment of the call may be a text; graphrag-eval finds now unequal to itself",
    "ts-eq-100": "white space around a time does not matter; graphrag-eval raises",
}
AGGREGATES_EXCEPTIONS = {
    "agg-nan": "NaN measures nothing and is left out",
    "agg-steps-output-missing": "a step without an output is no reason to stop; graphrag-eval raises",
    "agg-steps-named-mean": "a tool called mean is no metric of the macro average",
}


def vectors(conformance_dir: Path, name: str) -> list[dict[str, Any]]:
    return list(map(revived, json.loads((conformance_dir / "vectors" / f"{name}.json").read_text())))


def revived(value: Any) -> Any:
    """Return a vector's value with datetimes and NaN restored from JSON."""
    if isinstance(value, dict):
        if set(value) == {"datetime"}:
            return datetime.fromisoformat(value["datetime"])
        return {key: revived(item) for key, item in value.items()}
    if isinstance(value, list):
        return [revived(item) for item in value]
    return math.nan if value == "NaN" else value


def retrieval_scores_differ(vector: dict[str, Any]) -> bool:
    """Return whether a retrieval pair scores differently.

    Here recall@k uses the reference's k and counts every relevant id; graphrag-eval uses the actual step's k and only
    the first k relevant ids.
    """
    for group, references in enumerate(vector["input"]["reference_steps"]):
        for row, reference in enumerate(references):
            if reference["name"] != "retrieval":
                continue
            theirs = vector["expected"]["pair_scores_6_6_1"][group][row]
            for score, actual in zip(theirs, vector["input"]["actual_steps"], strict=True):
                if actual["status"] == "success" and actual["name"] == "retrieval":
                    ours = match_steps([[reference]], [actual]).steps_score
                    if not isinstance(score, float) or not math.isclose(score, ours or 0.0, abs_tol=1e-9):
                        return True
    return False


@pytest.mark.parametrize("scoring", SCORINGS)
def test_steps_match(conformance_dir: Path, scoring: Any) -> None:
    unequal, retrieval = {}, 0
    for vector in vectors(conformance_dir, "steps_match"):
        found = match_steps(vector["input"]["reference_steps"], vector["input"]["actual_steps"], scoring=scoring)
        if "optimal" not in vector["expected"]:
            continue  # graphrag-eval raises on empty groups; unit tests cover this
        expected = vector["expected"]["optimal"][SCORINGS[scoring]]["steps_score"]
        if found.steps_score == pytest.approx(expected, abs=1e-9):
            continue
        if retrieval_scores_differ(vector):
            retrieval += 1
        else:
            unequal[vector["id"]] = (expected, found.steps_score)
    assert set(unequal) == set(STEPS_EXCEPTIONS)
    assert retrieval < 30


def test_greedy_traps(conformance_dir: Path) -> None:
    for vector in vectors(conformance_dir, "steps_greedy_suboptimal"):
        if retrieval_scores_differ(vector | {"expected": pair_scores_of(conformance_dir, vector["id"])}):
            continue
        for key, expected in vector["expected"].items():
            if key == "v6_6_1_all_groups":
                found = match_steps(**vector["input"], scoring="all_groups").steps_score
                assert found == pytest.approx(expected["optimal"], abs=1e-9), vector["id"]


def pair_scores_of(conformance_dir: Path, identifier: str) -> Any:
    return next(v["expected"] for v in vectors(conformance_dir, "steps_match") if v["id"] == identifier)


def test_times_and_time_series_calls(conformance_dir: Path) -> None:
    checked, unequal = 0, set()
    for vector in vectors(conformance_dir, "timeseries"):
        given = vector["input"]
        reference = StepView({"args": given.get("reference_args")})
        actual = StepView({"args": given.get("actual_args"), "execution_timestamp": given.get("anchor")})
        match given["function"]:
            case "do_times_equal":
                found = do_times_equal(given["anchor"], given["reference"], given["actual"])
            case "retrieve_time_series":
                found = match_time_series_steps(reference, actual).score == 1.0
            case "retrieve_data_points":
                found = match_data_points_steps(reference, actual).score == 1.0
            case _:
                continue  # graphrag-eval's own internals
        checked += 1
        if found != vector["expected"].get("result"):
            unequal.add(vector["id"])
    assert checked == 99
    assert unequal == set(TIMES_EXCEPTIONS)


def with_retrieval_at_the_top(expected: dict[str, Any]) -> dict[str, Any]:
    """Move ``retrieval_…`` from a template's ``steps`` to the top level, as in graphrag-eval."""
    for summary in expected["per_template"].values():
        for metric in [key for key in summary.get("steps", {}) if key.startswith("retrieval_")]:
            summary[metric] = summary["steps"].pop(metric)
    return expected


def differences(expected: Any, found: Any, path: str = "") -> list[str]:
    if isinstance(expected, dict) and isinstance(found, dict):
        return [
            line
            for key in expected.keys() | found.keys()
            for line in differences(expected.get(key), found.get(key), f"{path}/{key}")
        ]
    if found is None and isinstance(expected, dict) and not any(expected.values()):
        return []  # graphrag-eval writes 0 for unmeasured values
    if isinstance(expected, float | int) and isinstance(found, float | int):
        return [] if found == pytest.approx(float(expected), rel=1e-9) else [f"{path}: {found}, not {expected}"]
    return [] if expected == found else [f"{path}: {found}, not {expected}"]


def zeros_in_macro(expected: dict[str, Any]) -> bool:
    """Return whether graphrag-eval counted a template without measurements as 0 in the macro mean."""
    return any(
        isinstance(stats, dict) and stats.get("max") == 0 and metric in expected["macro"]
        for summary in expected["per_template"].values()
        for metric, stats in summary.items()
    )


@pytest.mark.parametrize(("errors", "version"), [("exclude", "v5_1_2_errors_excluded"), ("include", "v6_6_1")])
def test_aggregates(conformance_dir: Path, errors: str, version: str) -> None:
    checked = 0
    for vector in vectors(conformance_dir, "aggregates"):
        config = yaml.safe_load(vector["input"].get("config_yaml", "{}")) | {"aggregates": {"errors": errors}}
        found = compute_aggregates(vector["input"]["samples"], config)
        expected = vector["expected"][version]
        if vector["id"] in AGGREGATES_EXCEPTIONS or "error" in expected:
            continue
        expected = with_retrieval_at_the_top(expected)
        found.pop("totals")
        if "steps" not in expected["micro"]:
            found["micro"].pop("steps", None)  # 5.1.2 has no overall steps
        if zeros_in_macro(expected):
            found.pop("macro")
            expected.pop("macro")
        assert differences(expected, found) == [], vector["id"]
        checked += 1
    assert checked >= 40
