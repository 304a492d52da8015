"""Aggregates of results: the cases in aggregates.yaml, and checks that do not fit into a table."""

import gc
import json
import math
import weakref
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.aggregation import Aggregator, compute_aggregates
from graphrag_eval_lc.aggregation.statistics import Column
from graphrag_eval_lc.config import load_config
from graphrag_eval_lc.errors import ConfigError, ResponsesError
from graphrag_eval_lc.registry import MetricSpec
from graphrag_eval_lc.run_folder import yaml_text

CASES = yaml.safe_load(Path(__file__).with_name("aggregates.yaml").read_text(encoding="utf-8"))
ABSENT = "absent"


def sample(template_id: str = "t", **values: Any) -> dict[str, Any]:
    status = "error" if "error" in values else "success"
    return {"template_id": template_id, "status": status, **values}


def at(aggregates: Any, path: str) -> Any:
    for key in path.split("/"):
        if key not in aggregates:
            return ABSENT
        aggregates = aggregates[key]
    return aggregates


def is_close(found: Any, expected: Any) -> bool:
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(is_close(found[key], expected[key]) for key in expected)
    return bool(found == (pytest.approx(expected, abs=1e-6) if isinstance(expected, float) else expected))


@pytest.fixture
def own_metrics(metrics: Any) -> None:
    metrics(MetricSpec(key="hops", lower_is_better=True, range=(0.0, 9.0)))
    metrics(MetricSpec(key="saved_sec", unit="seconds", lower_is_better=True, range=(0.0, None)))
    metrics(MetricSpec(key="lost_usd", kind="spent", unit="usd", lower_is_better=True, range=(0.0, None)))


@pytest.mark.usefixtures("own_metrics")
@pytest.mark.parametrize("case", CASES, ids=[case["about"] for case in CASES])
def test_aggregates(case: dict[str, Any]) -> None:
    aggregates = compute_aggregates([sample(**result) for result in case["results"]], case.get("config"))
    for path, expected in case["expected"].items():
        kind, _, of = path.rpartition(" ")
        found = at(aggregates, of)
        assert is_close(list(found) if kind == "keys" else found, expected), (path, found)
    assert yaml.safe_load(yaml_text(aggregates)) == json.loads(json.dumps(aggregates)) == aggregates


SELECT = '{"head": {"vars": ["x"]}, "results": {"bindings": [%s]}}'


@pytest.mark.parametrize(
    ("name", "output", "is_empty"),
    [
        ("s", SELECT % " ", True),
        ("s", '{"results": {"bindings": []}}', True),
        ("s", SELECT % "{}", False),
        ("s", '{"boolean": false}', False),
        ("s", '{"results": "bindings"}', False),
        ("s", '{"note": "\\"bindings\\": []"}', False),
        ("s", '"bindings": []', False),
        ("s", '{"bindings": []}', False),
        *(("s", output, False) for output in ("[]", "", None, 3)),
        ("cypher_query", "[]", True),
        ("read_neo4j_cypher", " [ ]\n", True),
        ("cypher_query", [], True),
        ("sql_db_query", "", True),
        ("cypher_query", "", False),
        ("cypher_query", "[{}]", False),
        ("sql_db_query", "[(0,)]", False),
    ],
)
def test_an_empty_result_is_a_select_without_rows_or_an_empty_list_of_a_known_tool(
    name: str, output: Any, is_empty: bool
) -> None:
    steps = [{"name": name, "status": "success", "output": output}]
    assert ("empty_results" in compute_aggregates([sample(actual_steps=steps)])["micro"]["steps"]) is is_empty


def test_templates_keep_the_given_order_and_aggregates_are_always_available() -> None:
    aggregator = Aggregator(template_ids=["a", "absent", "b"])
    for number, name in enumerate("dbca", start=1):
        aggregator.add(sample(name))
        assert aggregator.aggregates()["totals"]["number_of_samples"] == number
    assert list(aggregator.aggregates()["per_template"]) == ["a", "b", "d", "c"]


@pytest.mark.parametrize("value", [math.nan, math.inf, 10**400, 1e300, "1", None, [1]])
def test_implausible_numbers_are_ignored(value: Any) -> None:
    aggregates = compute_aggregates([sample(elapsed_sec=value), sample(elapsed_sec=1.5)])
    assert aggregates["micro"]["elapsed_sec"]["sum"] == 1.5
    assert aggregates["totals"]["unmeasured_samples"] == {"elapsed_sec": 1}


def test_results_are_not_kept_in_memory() -> None:
    class Result(dict[str, Any]):
        pass

    result = Result(sample(question_id="q", actual_steps=[{"name": "s", "output": "text"}]))
    reference = weakref.ref(result)
    aggregator = Aggregator()
    aggregator.add(result)
    del result
    gc.collect()
    assert reference() is None


results = st.lists(
    st.fixed_dictionaries(
        {"template_id": st.sampled_from("ab"), "question_id": st.sampled_from("xyz"), "status": st.just("success")},
        optional={
            "error": st.just("boom"),
            "repeat": st.integers(1, 3),
            "steps_score": st.floats(0, 1),
            "total_tokens": st.integers(0, 1000),
            "elapsed_sec": st.floats(0, 100) | st.integers(0, 100),
            "failed_attempts": st.lists(st.fixed_dictionaries({"elapsed_sec": st.floats(0, 9)}), max_size=2),
        },
    ),
    max_size=12,
)


@given(results, st.randoms(), st.sampled_from(["exclude", "include"]))
def test_order_of_the_results_does_not_matter(samples: list[Any], random: Any, errors: str) -> None:
    def text() -> str:
        aggregator = Aggregator(load_config({"aggregates": {"errors": errors}}), template_ids=["a", "b"])
        for result in samples:
            aggregator.add(result)
        return yaml_text(aggregator.aggregates())

    before = text()
    random.shuffle(samples)
    assert text() == before


@given(st.lists(st.lists(st.sampled_from([0.0, 0.5, 1.0, None]), min_size=3, max_size=3), min_size=1, max_size=5))
def test_pass_at_1_is_the_share_of_samples_that_passed(scores: list[list[float | None]]) -> None:
    samples = [
        sample(question_id=f"q{index}", repeat=repeat, **({"error": "x"} if score is None else {"steps_score": score}))
        for index, repeats in enumerate(scores)
        for repeat, score in enumerate(repeats, 1)
    ]
    repeats = compute_aggregates(samples)["repeats"]
    share = sum(repeats_of.count(1.0) for repeats_of in scores) / len(samples)
    assert repeats["pass@k"]["1"] == repeats["pass^k"]["1"] == pytest.approx(share)
    assert list(repeats["pass@k"].values()) == sorted(repeats["pass@k"].values())
    assert list(repeats["pass^k"].values()) == sorted(repeats["pass^k"].values(), reverse=True)


@given(st.lists(st.integers(-(2**53), 2**53)), st.lists(st.floats(-1e100, 1e100)))
def test_integer_columns_stay_integers_and_mixed_columns_keep_their_values(
    whole: list[float], others: list[float]
) -> None:
    columns = [Column(), Column()]
    for column, values in zip(columns, (whole, whole + others), strict=True):
        column.add(0, values)
        assert column.values() == values
    assert all(isinstance(value, int) for value in columns[0].values())
    columns[0].add(1, [2**53 + 1])  # too large to be exact: the nearest float
    assert columns[0].values()[-1] == float(2**53)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"micro": {}}, "the results cannot be a dict. Give what run_evaluation returned"),
        (None, "the results cannot be a NoneType."),
        ([sample(steps_score=1.0), "q2"], r"key results\[1\]: this is not a result."),
        ([{"question_id": "q1"}], r"key results\[0\]: this is not a result."),
    ],
)
def test_invalid_results_are_one_clear_error(given: Any, complaint: str) -> None:
    with pytest.raises(ResponsesError, match=complaint):
        compute_aggregates(given)


@pytest.mark.parametrize(
    ("repeats", "complaint"),
    [
        (
            {"metric": "step_score"},
            r"repeats\.metric: 'step_score' is not .* Did you mean steps_score\? There are answer",
        ),
        ({"metric": "total_tokens"}, "'total_tokens' is not allowed here.*There are answer_recall, .*steps_score"),
        ({"metric": "retrieval_ids_ndcg@10"}, "Did you mean retrieval_ids_ndcg"),
        ({"metric": "jumps"}, "and those that plugins register"),
        ({"metric": "hops", "threshold": 9.5}, r"repeats\.threshold: 9\.5 is not .*hops goes from 0 to 9\."),
        ({"metric": "answer_relevance", "threshold": -2.0}, r"answer_relevance goes from -1 to 1\."),
    ],
)
@pytest.mark.usefixtures("own_metrics")
def test_invalid_metric_or_threshold_is_reported_with_the_valid_ones(repeats: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        compute_aggregates([], {"repeats": repeats})
