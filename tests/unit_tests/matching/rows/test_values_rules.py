import pytest

from graphrag_eval_lc.config import ValuesConfig
from graphrag_eval_lc.matching.rows.values import ValueRules


@pytest.mark.parametrize("name", ValueRules._fields)
def test_each_switch_of_the_config_is_a_rule(name: str) -> None:
    assert ValueRules.of(ValuesConfig(**{name: False})) == ValueRules.of({name: False}) == ValueRules(**{name: False})


def test_the_config_switches_all_rules() -> None:
    assert tuple(ValuesConfig.model_fields) == ValueRules._fields
