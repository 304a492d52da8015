"""No dataset, agent or tool input crashes the evaluation."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.laws import tried

from graphrag_eval_lc import compute_aggregates, draft_dataset, run_evaluation, validate_dataset
from graphrag_eval_lc.errors import DatasetError, GraphRAGEvalError
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.report.summary import summary_tables
from graphrag_eval_lc.run_folder import yaml_text
from graphrag_eval_lc.view import run_view

SPARQL_JSON = "application/sparql-results+json"

texts = st.text(st.characters() | st.characters(categories=["Cs"]), max_size=8)  # including lone surrogates
numbers = st.integers(-(10**400), 10**400) | st.floats()
anything = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
terms = st.fixed_dictionaries(
    {"type": st.sampled_from(["uri", "literal", "bnode"]) | anything, "value": texts | anything},
    optional={"datatype": st.just("http://www.w3.org/2001/XMLSchema#integer") | anything, "xml:lang": anything},
)
tables = st.fixed_dictionaries(
    {"head": st.just({"vars": ["a", "b"]}) | anything},
    optional={
        "results": st.fixed_dictionaries(
            {"bindings": st.lists(st.dictionaries(st.sampled_from("ab"), terms | anything), max_size=3) | anything}
        )
        | anything,
        "boolean": anything,
    },
)
outputs = st.one_of(
    anything,
    tables.map(json.dumps),
    anything.map(json.dumps),
    st.lists(st.fixed_dictionaries({"id": texts | anything}), max_size=3).map(json.dumps),
)
names = st.sampled_from(
    [
        "sparql_query",
        "retrieval",
        "iri_discovery",
        "autocomplete_search",
        "retrieve_time_series",
        "retrieve_data_points",
    ]
)
args = st.dictionaries(st.sampled_from(["k", "mrid", "limit", "external_id", "start", "end", "query"]), anything)
reference_steps = st.fixed_dictionaries(
    {"name": names},
    optional={
        "args": args,
        "output": outputs,
        "output_media_type": st.sampled_from([SPARQL_JSON, "application/json", None]),
        "required_columns": st.lists(st.sampled_from("abc"), max_size=3) | st.none(),
        "ordered": st.booleans(),
        "ignore_duplicates": st.booleans(),
        "tolerance": st.sampled_from([None, 0, 1e-6, "1e-6"]),
    },
)
actual_steps = st.fixed_dictionaries(
    {"name": names},
    optional={
        "args": args | anything,
        "id": anything,
        "status": st.sampled_from(["success", "error"]) | anything,
        "output": outputs,
        "error": anything,
        "execution_timestamp": anything,
    },
)
groups = st.lists(st.lists(reference_steps, max_size=2), max_size=2)
responses = st.fixed_dictionaries(
    {"actual_steps": st.lists(actual_steps, max_size=3) | anything},
    optional={"actual_answer": anything, "error": anything, "input_tokens": anything, "elapsed_sec": anything},
)
scorings = st.sampled_from(["last_group", "all_groups"])


def error_message(call: Callable[[], object]) -> str | None:
    """Return the message of one of the package's errors; any other error fails the test."""
    try:
        call()
    except GraphRAGEvalError as error:
        return str(error)
    return None


@pytest.mark.full
@tried(4)
@given(groups, responses, scorings, st.booleans())
def test_every_response_can_be_scored_aggregated_written_and_shown(
    reference: Any, response: Any, scoring: str, strict: bool
) -> None:
    dataset: list[Any] = [
        {"template_id": "t", "questions": [{"id": "q", "question_text": "?", "reference_steps": reference}]}
    ]
    config = {"steps": {"scoring": scoring}, "sparql": {"strict": strict}}
    results: list[Any] = run_evaluation(dataset, {"q": response}, config)
    score = results[0].get("steps_score")
    assert score is None or 0.0 <= score <= 1.0
    aggregates = compute_aggregates(results)
    json.loads(json_text(results).encode("utf-8"))
    yaml_text(aggregates)
    summary_tables(run_view(results))


@tried(1)
@given(anything | st.lists(st.fixed_dictionaries({"template_id": anything, "questions": anything})), anything)
def test_any_dataset_or_responses_raise_one_clear_error_or_none(dataset: Any, given_responses: Any) -> None:
    for call in (
        lambda: run_evaluation(dataset, given_responses),
        lambda: validate_dataset(dataset if isinstance(dataset, list) else [dataset]),
        lambda: draft_dataset(given_responses),
    ):
        assert error_message(call) != ""


@tried(1)
@given(groups, st.lists(responses, max_size=2))
def test_validation_and_drafts_accept_everything(reference: Any, captured: list[Any]) -> None:
    dataset: list[Any] = [
        {"template_id": "t", "questions": [{"id": "q", "question_text": "?", "reference_steps": reference}]}
    ]
    for problem in validate_dataset(dataset, {"q": {}}):
        assert str(problem)
    numbered: Any = [{"question_id": str(number), **response} for number, response in enumerate(captured)]
    assert error_message(lambda: draft_dataset(numbered)) != ""


@pytest.mark.parametrize(
    "output",
    [
        pytest.param("x" * 10_000_000, id="10 MB of text"),
        pytest.param(json.dumps([{"id": "d", "text": "x" * 10_000_000}]), id="10 MB of JSON"),
        pytest.param('{"a":' * 50_000 + "1" + "}" * 50_000, id="deep JSON"),
        pytest.param('{"n": ' + "9" * 10_000 + "}", id="huge integer"),
        pytest.param('[{"id": NaN}]', id="NaN"),
        pytest.param('"\\ud800"', id="lone surrogate"),
    ],
)
@pytest.mark.parametrize("name", ["sparql_query", "retrieval", "iri_discovery", "other"])
def test_hostile_outputs_score_0_with_a_short_reason(name: str, output: str) -> None:
    media_type = SPARQL_JSON if name == "sparql_query" else "application/json" if name == "other" else None
    reference = {"name": name, "output": '{"head": {}, "boolean": true}', "output_media_type": media_type}
    if name == "retrieval":
        reference["output"] = '[{"id": "a"}]'
    question = {"id": "q", "question_text": "?", "reference_steps": [[reference]]}
    actual_name = "sparql_query" if name == "iri_discovery" else name
    step = {"name": actual_name, "args": {}, "id": "c", "status": "success", "output": output}
    result: Any = run_evaluation([{"template_id": "t", "questions": [question]}], {"q": {"actual_steps": [step]}})[0]  # type: ignore[list-item, typeddict-item]
    assert result["steps_score"] == 0.0
    reason = result["steps_diagnosis"][0][0]["reason"]
    assert 0 < len(reason) < 600
    json_text(result)


def test_question_text_may_contain_anything() -> None:
    with pytest.raises(DatasetError, match="is not a text"):
        run_evaluation([{"template_id": "t", "questions": [{"id": "q", "question_text": 10**5000}]}], {})  # type: ignore[typeddict-item]
