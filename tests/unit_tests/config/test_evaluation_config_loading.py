from pathlib import Path

import pytest
from pydantic import ValidationError

from graphrag_eval_lc.config import EvaluationConfig, StepsConfig, load_config
from graphrag_eval_lc.errors import ConfigError


def test_defaults_match_graphrag_eval() -> None:
    config = load_config()
    assert config.steps.scoring == "last_group"
    assert config.sparql.model_dump() == {
        "ordered": False,
        "ignore_duplicates": True,
        "strict": False,
        "tolerance": {"float": 1e-5, "double": 1e-12},
        "values": {"times": True, "durations": True, "wkt": True, "nfc": True, "iri_case": True},
    }
    assert config.aggregates.errors == "exclude"
    assert config.repeats.model_dump() == {"metric": "steps_score", "threshold": 1.0}


def test_path_dict_and_object_load_the_same_config(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("steps:\n  scoring: all_groups\n")
    config = EvaluationConfig(steps=StepsConfig(scoring="all_groups"))
    assert load_config(path) == load_config(str(path)) == load_config({"steps": {"scoring": "all_groups"}}) == config
    assert load_config(config) is config


def test_empty_file_is_an_error_but_a_comment_means_defaults(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("")
    with pytest.raises(ConfigError, match="empty"):
        load_config(path)
    path.write_text("# nothing yet\n")
    assert load_config(path) == EvaluationConfig()


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ({"step": {}}, "Did you mean steps?"),
        ({"steps": {"scorin": "all_groups"}}, "Did you mean scoring?"),
        ({"zzz": 1}, "Known keys here: steps, sparql, aggregates, repeats, llm,"),
        ({"grading": "graded"}, "unknown key grading. Did you mean steps.grading?"),
        ({"node_keys": ["iri"]}, "Known keys here: steps, "),
        ({"steps": {"node_keys": ["iri"]}}, "unknown key steps.node_keys. Did you mean steps.rows.node_keys?"),
        ({"measures": []}, "unknown key measures. Did you mean retrieval.measures?"),
        ({"steps": {"scoring": "first_group"}}, "'last_group' or 'all_groups'"),
        ({"steps": 3}, "a mapping of keys to values is needed here"),
        ({"repeats": {"metric": "total_tokens"}}, "key repeats.metric: 'total_tokens' is not allowed here"),
        ({"repeats": {"threshold": 80}}, "key repeats.threshold: 80 is not allowed here"),
        ({"repeats": {"threshold": float("nan")}}, "key repeats.threshold: nan is not allowed here"),
        ({"repeats": {"threshold": True}}, "key repeats.threshold: True is not allowed here"),
        ({"sparql": {"strict": "yes"}}, "key sparql.strict: 'yes' is not allowed here"),
        ({"sparql": {"tolerance": {"flaot": 1e-3}}}, "Did you mean float?"),
        ({"sparql": {"tolerance": {"decimal": 1e-3}}}, "Known keys here: float, double."),
        ({"sparql": {"tolerance": 1e-3}}, "key sparql.tolerance: a mapping of keys to values is needed here"),
        ({"sparql": {"tolerance": {"float": 1}}}, "key sparql.tolerance.float: 1 is not allowed here. Give a share"),
        ({"sparql": {"tolerance": {"double": -1e-9}}}, "key sparql.tolerance.double: -1e-09 is not allowed here."),
        ({"sparql": {"tolerance": {"float": "5%"}}}, "key sparql.tolerance.float: '5%' is not allowed here."),
        ({"sparql": {"tolerance": {"float": True}}}, "key sparql.tolerance.float: True is not allowed here."),
        ({"sparql": {"tolerance": {"float": None}}}, "key sparql.tolerance.float: None is not allowed here."),
        (
            {"steps": {"rows": {"node_keys": "iri"}}},
            "key steps.rows.node_keys: 'iri' is not allowed here. Write a list: ['iri'].",
        ),
        ({"llm": {"generatoin": {}}}, "Did you mean generation?"),
        ({"judges": {"max_concurency": 4}}, "Did you mean max_concurrency?"),
        ({"judges": {"max_concurrency": 0}}, "key judges.max_concurrency: 0 is not allowed here"),
        (
            {"judges": {"metrics": ["f1"]}},
            "key judges.metrics.0: 'f1' is not allowed here. There are answer_correctness,",
        ),
        ({"judges": {"metrics": ["retrieval_anser"]}}, "Did you mean retrieval_answer? There are answer_correctness, "),
        ({"judges": {"metrics": ["answer_f1"]}}, "Did you mean answer_correctness?"),
        ({"prices": {"gpt-x": {"inptu": 1, "output": 2}}}, "Did you mean input?"),
        ({"prices": {"gpt-x": {"input": 1}}}, "the key output is missing"),
        ({"llm": {"generation": {"provider": "anthropic"}}}, "key llm.generation.model"),
    ],
)
def test_error_names_the_key_and_suggests_the_nearest_one(config: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(config)
    assert complaint in str(caught.value)


def test_yaml_numbers_may_have_an_exponent(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "sparql: {tolerance: {float: 1e-4, double: 1E-9}}\n"
        "repeats: {threshold: 5e-1}\n"
        "judges: {timeout: 1.5e2}\n"
        "prices: {m: {input: 1e-1, output: 1, cached_input: 1e-2}}\n"
    )
    config = load_config(path)
    assert config.sparql.tolerance.model_dump() == {"float": 1e-4, "double": 1e-9}
    assert (config.repeats.threshold, config.judges.timeout) == (0.5, 150.0)
    assert config.prices["m"].model_dump(exclude_none=True) == {"input": 0.1, "output": 1.0, "cached_input": 0.01}
    with pytest.raises(ConfigError, match=r"key repeats.threshold: 'half' is not allowed here"):
        load_config({"repeats": {"threshold": "half"}})


def test_error_in_a_file_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("sparql:\n  strict: true\nsteps:\n  scorin: all_groups\n")
    with pytest.raises(ConfigError, match="line 4"):
        load_config(path)


def test_missing_file_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path / "absent.yaml")


def test_other_types_are_rejected() -> None:
    with pytest.raises(ConfigError, match="cannot be made from list"):
        load_config([1])  # type: ignore[arg-type]


def test_integer_threshold_is_accepted() -> None:
    assert load_config({"repeats": {"threshold": 1}}).repeats.threshold == 1.0


@pytest.mark.parametrize(
    "config",
    [
        {"llm": {"generation": {"api_key": ["pa55word"]}}},
        {"llm": {"generation": {"api_key": 552211}}},
        {"llm": {"generation": {"base_url": ["http://me:pa55word@host"]}}},
    ],
)
def test_error_does_not_show_the_secret(config: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(config)
    assert "pa55word" not in str(caught.value)
    assert "552211" not in str(caught.value)
    with pytest.raises(ValidationError) as raw:
        EvaluationConfig(**config)  # type: ignore[arg-type]
    assert "pa55word" not in str(raw.value)
    assert "552211" not in str(raw.value)


def test_error_across_two_sections_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("steps:\n  scoring: last_group\nanswer_relevance:\n  enabled: true\n")
    with pytest.raises(ConfigError, match=r"config.yaml, line 4, key answer_relevance: .* Add llm: \{\}"):
        load_config(path)
