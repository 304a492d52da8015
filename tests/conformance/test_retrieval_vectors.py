"""Retrieval metrics without a language model equal AutoRAG, trec_eval, ranx and ragas, except where noted."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import metrics
from graphrag_eval_lc.metrics import Measure, parse_measure, ranking_scores

AUTORAG = {
    "precision": metrics.precision,
    "recall": metrics.recall,
    "f1": metrics.f1,
    "mrr": metrics.reciprocal_rank,
    "map": metrics.average_precision,
    "ndcg": metrics.ndcg,
}
RANX = {"map": "AP", "mrr": "RR", "ndcg": "nDCG", "precision": "P", "recall": "R", "hit_rate": "Success", "f1": "F1"}

# For an average over nothing, ragas returns NaN or raises; this package returns None.
ID_METRICS: dict[str, Callable[..., float | None]] = {
    "IDBasedContextPrecision": metrics.id_context_precision,
    "IDBasedContextRecall": metrics.id_context_recall,
}
TEXT_METRICS: dict[str, Callable[..., float | None]] = {
    "NonLLMContextPrecisionWithReference": metrics.text_context_precision,
    "NonLLMContextRecall": metrics.text_context_recall,
}


def vectors(conformance_dir: Path, name: str) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads((conformance_dir / "vectors" / f"{name}.json").read_text())
    return loaded


def close(value: float | None) -> Any:
    return value if value is None else pytest.approx(value, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", AUTORAG)
def test_groups_as_in_autorag(conformance_dir: Path, name: str) -> None:
    checked = 0
    for vector in vectors(conformance_dir, "retrieval_autorag"):
        expected, groups = vector["expected"], vector["input"]["retrieval_gt"]
        # Repeated ids count once. An empty prediction, which AutoRAG rejects, scores 0.
        formula = expected.get("autorag_on_deduplicated_prediction", expected["autorag_unguarded"])
        score = None if not any(groups) else formula[name]
        assert AUTORAG[name](groups, vector["input"]["retrieved_ids"]) == close(score), vector["id"]
        checked += 1
    assert checked > 50


def test_ids_as_in_trec_eval_ir_measures_and_ranx(conformance_dir: Path) -> None:
    checked = 0
    for vector in vectors(conformance_dir, "retrieval_ids"):
        relevant, retrieved = vector["input"]["relevant_ids"], vector["input"]["retrieved_ids"]
        expected = dict(vector["expected"].get("pytrec_eval", {})) | vector["expected"].get("ir_measures", {})
        for name, score in vector["expected"].get("ranx", {}).items():
            stem, at, cutoff = name.partition("@")
            expected[RANX[stem] + at + cutoff] = score
        measures = {name: parse_measure(name) for name in expected}
        scores = ranking_scores(relevant, retrieved, measures.values())
        for name, measure in measures.items():
            assert scores[measure.key] == measure(relevant, retrieved) == close(expected[name]), (vector["id"], name)
            checked += 1
    assert checked > 1000


def test_average_precision_by_both_conventions(conformance_dir: Path) -> None:
    checked = 0
    for vector in vectors(conformance_dir, "retrieval_ids"):
        relevant, retrieved = vector["input"]["relevant_ids"], vector["input"]["retrieved_ids"]
        if not relevant or len(set(relevant)) < len(relevant) or len(set(retrieved)) < len(retrieved):
            continue  # repeated ids count once here, but twice in the libraries
        for convention, score in vector["expected"]["ap_by_convention"].items():
            normalize: Any = "relevant" if convention.startswith("divided_by_relevant") else "retrieved_relevant"
            given = metrics.average_precision(relevant, retrieved, normalize=normalize)
            assert given == close(score), (vector["id"], convention)
            checked += 1
    assert checked > 80


def test_capped_recall(conformance_dir: Path) -> None:
    checked = 0
    for vector in vectors(conformance_dir, "retrieval_ids"):
        relevant, retrieved = vector["input"]["relevant_ids"], vector["input"]["retrieved_ids"]
        for k, score in vector["expected"].get("capped_recall_at_k", {}).items():
            assert metrics.recall_at_k(relevant, retrieved, int(k)) == close(score), (vector["id"], k)
            assert Measure("R_cap", int(k))(relevant, retrieved) == close(score), (vector["id"], k)
            checked += 1
    assert checked > 100


@pytest.mark.parametrize("name", ID_METRICS)
def test_contexts_by_id_as_in_ragas(conformance_dir: Path, name: str) -> None:
    chosen = [each for each in vectors(conformance_dir, "context_precision_ragas") if name in each["expected"]]
    assert len(chosen) > 20
    for vector in chosen:
        given, expected = vector["input"], vector["expected"][name]
        score = ID_METRICS[name](given["retrieved_context_ids"], given["reference_context_ids"])
        assert score == close(None if expected == "NaN" else expected), vector["id"]


@pytest.mark.parametrize("name", TEXT_METRICS)
def test_contexts_by_text_as_in_ragas(conformance_dir: Path, name: str) -> None:
    chosen = [each for each in vectors(conformance_dir, "context_precision_ragas") if name in each["expected"]]
    assert len(chosen) > 20
    for vector in chosen:
        given, expected = vector["input"], vector["expected"][name]
        score = TEXT_METRICS[name](
            given["retrieved_contexts"], given["reference_contexts"], threshold=given["threshold"]
        )
        assert not math.isnan(expected), vector["id"]
        assert score == close(expected), vector["id"]
