from typing import Any

import pytest

from graphrag_eval_lc.config import EvaluationConfig, OutputConfig, load_config
from graphrag_eval_lc.errors import ConfigError


def loaded(outputs: Any) -> EvaluationConfig:
    return load_config({"steps": {"outputs": outputs}})


def test_outputs_are_declared_by_tool() -> None:
    config = loaded({"run_sparql": {"format": "csv", "path": "result.rows", "artifact": True}})
    assert config.steps.outputs == {"run_sparql": OutputConfig(format="csv", path="result.rows", artifact=True)}
    assert EvaluationConfig().steps.outputs == {}


@pytest.mark.parametrize(
    ("outputs", "complaint"),
    [
        ({"t": {"path": ""}}, "the path is empty. Write the keys with dots"),
        ({"t": {"path": "a..b"}}, "'a..b' is not a path: it has an empty key"),
        ({"t": {"path": 5}}, "steps.outputs.t.path"),
        ({"t": {"format": "yaml"}}, "steps.outputs.t.format"),
        ({"t": {"fromat": "csv"}}, "fromat"),
        ({"t": {}}, "nothing is said of this tool's outputs. Give format, path or artifact: true."),
        ({"t": {"artifact": False}}, "nothing is said of this tool's outputs"),
        ({"t": "csv"}, "steps.outputs.t"),
        ({"": {"format": "csv"}}, "steps.outputs"),
    ],
)
def test_error_names_key_and_problem(outputs: Any, complaint: str) -> None:
    with pytest.raises(ConfigError) as problem:
        loaded(outputs)
    assert complaint in str(problem.value)
