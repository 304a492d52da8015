"""Measures of matched retrieval steps, and steps that are missing."""

import json
from typing import Any

import pytest

from graphrag_eval_lc.config import RetrievalConfig
from graphrag_eval_lc.matching import StepView
from graphrag_eval_lc.matching.retrieval import RetrievalMeasures, RetrievalPair, retrieval_measures
from graphrag_eval_lc.metrics import DEFAULT_MEASURES


def documents(**texts: str | None) -> str:
    return json.dumps([{"id": key, **({} if text is None else {"text": text})} for key, text in texts.items()])


def measured(reference: dict[str, Any], actual: dict[str, Any] | None, **section: Any) -> RetrievalMeasures:
    pair = (
        RetrievalPair(StepView(reference))
        if actual is None
        else RetrievalPair(StepView(reference), StepView(actual), 3)
    )
    return retrieval_measures([pair], RetrievalConfig.model_validate(section))


def test_ids_have_every_measure() -> None:
    reference, actual = {"output": documents(a=None, b=None)}, {"output": documents(x=None, b=None)}
    (record,) = measured(reference, actual).of_steps.values()
    assert list(record) == [f"retrieval_ids_{measure.key}" for measure in DEFAULT_MEASURES]
    two_documents = measured(reference, actual, measures=["P@5", "RR"])
    assert two_documents.of_steps == {3: {"retrieval_ids_precision@5": 0.2, "retrieval_ids_reciprocal_rank": 0.5}}
    assert measured(reference, actual, measures=[]).of_steps == {}


def test_texts_are_compared_if_both_sides_have_them() -> None:
    reference = {"output": documents(a="The cable was repaired in May.", b=None)}
    actual = {"output": documents(z="The cable was repaired in may", a="Something else")}
    record = measured(reference, actual, measures=[]).of_steps[3]
    assert record == {"retrieval_text_precision": 1.0, "retrieval_text_recall": 1.0, "retrieval_text_f1": 1.0}
    assert measured(reference, actual, measures=[], text={"enabled": False}).of_steps == {}
    assert measured(reference, actual, measures=[], text={"threshold": 1.0}).of_steps[3]["retrieval_text_recall"] == 0.0
    for without in ({"output": documents(a=None)}, {"output": documents(a=" ")}):
        assert measured(reference, without, measures=[]).of_steps == {}
        assert measured(without, actual, measures=[]).of_steps == {}


def test_gains_and_groups_are_measured() -> None:
    actual = {"output": documents(b=None, a=None)}
    graded = measured({"relevant_ids": {"a": 2, "b": 1, "c": 0}}, actual, measures=["R", "nDCG"]).of_steps[3]
    assert graded["retrieval_ids_recall"] == 1.0
    assert 0.8 < float(graded["retrieval_ids_ndcg"]) < 1.0
    grouped = measured({"relevant_ids": [["a", "z"], ["y"]]}, actual, measures=["R"]).of_steps[3]
    assert grouped == {"retrieval_ids_recall": 0.5}


def test_unmatched_reference_steps_are_missing() -> None:
    with_texts, without = {"output": documents(a="one")}, {"relevant_ids": ["a"]}
    assert measured(with_texts, None) == RetrievalMeasures({}, {"retrieval_missing": 1, "retrieval_text_missing": 1})
    assert measured(without, None) == RetrievalMeasures({}, {"retrieval_missing": 1})
    assert measured(with_texts, None, text={"enabled": False}).of_result == {"retrieval_missing": 1}
    found = measured(with_texts, {"output": documents(a="one")})
    assert found.of_result == {"retrieval_missing": 0, "retrieval_text_missing": 0}
    assert retrieval_measures([], RetrievalConfig()) == RetrievalMeasures({}, {})


@pytest.mark.parametrize("reference", [{"output": "[]"}, {"output": "oops"}, {"relevant_ids": {"a": 0}}, {}])
def test_reference_without_relevant_ids_is_neither_measured_nor_missing(reference: dict[str, Any]) -> None:
    assert measured(reference, None) == RetrievalMeasures({}, {})
    assert measured(reference, {"output": documents(a="one")}) == RetrievalMeasures({}, {})


def test_unmeasurable_step_says_why() -> None:
    reference = {"output": documents(a="one")}
    record = measured(reference, {"output": "oops"}).of_steps[3]
    assert record == {"retrieval_ids_error": "the output is not JSON: oops"}
    long = "x" * 300_000
    actual = {"output": documents(a=long)}
    record = measured({"output": documents(a=long)}, actual, measures=["P"]).of_steps[3]
    assert record["retrieval_ids_precision"] == 1.0
    assert "too long" in str(record["retrieval_text_error"])
    assert "retrieval_text_f1" not in record
