from typing import Any

import pytest

from graphrag_eval_lc.config import (
    CustomEvaluationConfig,
    EvaluationConfig,
    RetrievalConfig,
    is_reserved_key,
    load_config,
    with_measures,
)
from graphrag_eval_lc.errors import ConfigError


def loaded(**section: Any) -> RetrievalConfig:
    return load_config({"retrieval": section}).retrieval


def test_without_measures_the_defaults_are_used() -> None:
    assert [str(measure) for measure in loaded().parsed_measures()] == [
        "P",
        "R",
        "F1",
        "RR",
        "AP",
        "nDCG",
        "Success",
        "Rprec",
    ]
    assert [str(measure) for measure in loaded(measures=["p@5", "MRR"]).parsed_measures()] == ["P@5", "RR"]
    assert list(loaded(measures=[]).parsed_measures()) == []


def test_tool_may_be_a_name_or_a_name_with_an_id_column() -> None:
    config = loaded(steps=["search_docs", {"name": "sparql_query", "column": "doc"}, {"name": "find"}])
    assert config.document_step_names() == {"retrieval", "search_docs", "find"}
    assert config.columns() == {"search_docs": None, "sparql_query": "doc", "find": None}


def test_tools_are_matched_after_steps_names_renames_them() -> None:
    config = loaded(steps=["search_docs", {"name": "run_sparql", "column": "?doc"}, {"name": "find", "column": "d"}])
    names = {"search_docs": "search", "run_sparql": "sparql_query", "find": "retrieval", "other": "calc"}
    assert config.document_step_names(names) == {"retrieval", "search_docs", "search"}
    document_tools = {"search_docs": None, "search": None}
    assert config.columns(names) == {**document_tools, "run_sparql": "doc", "sparql_query": "doc", "find": "d"}


@pytest.mark.parametrize(
    ("section", "complaint"),
    [
        ({"measures": ["P", "ndgc@10"]}, "retrieval.measures.1: unknown measure 'ndgc@10'. Did you mean nDCG"),
        ({"measures": ["P@0"]}, "retrieval.measures.0: the cut-off of 'P@0'"),
        ({"measures": ["Rprec@5"]}, "Rprec has no cut-off. It uses the number of relevant ids."),
        ({"measures": [5]}, "retrieval.measures.0"),
        ({"measures": "P@5"}, "retrieval.measures: 'P@5' is not allowed here"),
        ({"steps": [{"nam": "x"}]}, "retrieval.steps.0.nam: unknown key retrieval.steps.0.nam. Did you mean name?"),
        ({"steps": ["a", {"name": "a", "column": "c"}]}, "retrieval.steps.1.name: the name a appears twice"),
        ({"steps": [3]}, "retrieval.steps.0: a mapping of keys to values is needed here. Known keys: name, column."),
        ({"steps": [""]}, "retrieval.steps.0.name"),
        ({"steps": [{"name": "a", "column": "?"}]}, "retrieval.steps.0.column"),
        ({"steps": [{"name": "a", "column": 5}]}, "retrieval.steps.0.column"),
        ({"missing": "0"}, "'absent' or 'zero'"),
        ({"text": {"threshold": 1.5}}, "retrieval.text.threshold"),
        ({"text": {"distance": "cosine"}}, "retrieval.text.distance"),
        ({"measure": []}, "Did you mean measures?"),
    ],
)
def test_error_names_the_key(section: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(**section)
    assert complaint in str(caught.value)


def test_choosing_measures_changes_nothing_else() -> None:
    section = {"steps": ["a", {"name": "b", "column": "c"}], "missing": "zero", "text": {"enabled": False}}
    config = load_config({"retrieval": section, "steps": {"scoring": "all_groups"}})
    other = with_measures(config, ["P@5"])
    assert other.retrieval.measures == ["P@5"]
    assert with_measures(other, []).retrieval.model_copy(update={"measures": None}) == config.retrieval
    assert (other.steps, config.retrieval.measures) == (config.steps, None)
    with pytest.raises(ConfigError, match=r"retrieval\.measures\.0: unknown measure"):
        with_measures(config, ["x"])


def test_recorded_section_can_be_loaded_again() -> None:
    config = loaded(steps=["a", {"name": "b", "column": "c"}], measures=["P@5"])
    assert load_config({"retrieval": config.model_dump()}).retrieval == config


@pytest.mark.parametrize("key", ["retrieval_missing", "retrieval_ids_ndcg@10", "retrieval_text_error"])
def test_measured_keys_are_reserved(key: str) -> None:
    assert is_reserved_key(key)
    with pytest.raises(ValueError, match="reserved"):
        CustomEvaluationConfig(name="mine", inputs=["question"], instructions="Rate.", outputs={key: "x"})


def test_section_has_defaults() -> None:
    assert EvaluationConfig().retrieval == RetrievalConfig()
