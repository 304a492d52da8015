from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.config import GateConfig, load_config
from graphrag_eval_lc.errors import ConfigError

TEXT = """\
steps: {scoring: last_group}
gates:
- {metric: steps_score, under: 0.9}
- %s
"""


@pytest.mark.parametrize(
    ("gate", "complaint"),
    [
        ("{metric: steps_score, max_drop: -0.1}", "key gates.1.max_drop: -0.1 is not allowed here"),
        ("{metric: steps_score, max_lost: 1.5}", "key gates.1.max_lost: 1.5 is not allowed here"),
        ("{metric: steps_score, under: high}", "key gates.1.under: 'high' is not allowed here"),
        ("{metric: steps_score, undr: 1}", "key gates.1.undr: unknown key gates.1.undr. Did you mean under?"),
        ("{metric: steps_score}", "key gates.1: the gate has no condition. Give one of under, over, max_drop,"),
        ("{under: 1, over: 2}", "key gates.1: a gate has one condition, not under and over"),
        ("{metric: cost, over: '+ten'}", "key gates.1.over: '+ten' is not a number or an increase over the base"),
        ("{metric: cost, over: 10%}", "key gates.1.over: '10%' is not a number or an increase over the baseline"),
        ("{metric: cost, over: true}", "key gates.1.over: True is not a number or an increase over the baseline"),
        ("{metric: cost, over: .inf}", "key gates.1.over: inf is not a number or an increase over the baseline"),
        ("steps_score=0.9", "key gates.1: a mapping of keys to values is needed here. Known keys: metric, template,"),
    ],
)
def test_error_names_file_line_and_key(tmp_path: Path, gate: str, complaint: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(TEXT % gate)
    with pytest.raises(ConfigError) as problem:
        load_config(path)
    assert str(problem.value).startswith(f"{path}, line 4, {complaint}")


@pytest.mark.parametrize(
    ("gate", "over", "needs_baseline"),
    [
        ("30", 30, False),
        ("1e4", 1e4, False),
        ("-1e-2", -0.01, False),
        ("+10%", "+10%", True),
        ("+5e-2", "+5e-2", True),
        ("+0.05", "+0.05", True),
        ("+10", "+10", True),
        ("'+10'", "+10", True),
    ],
)
def test_over_is_a_number_or_an_increase(tmp_path: Path, gate: str, over: Any, needs_baseline: bool) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(TEXT % f"{{metric: total_tokens, over: {gate}}}")
    read = load_config(path).gates[1]
    assert (read.over, read.needs_baseline) == (over, needs_baseline)


@pytest.mark.parametrize(
    ("gate", "needs_baseline"),
    [
        (GateConfig(under=0.9), False),
        (GateConfig(metric="total_tokens", over=9), False),
        (GateConfig(max_drop=0), True),
        (GateConfig(max_lost_per_template=0), True),
    ],
)
def test_gates_of_one_run_need_no_baseline(gate: GateConfig, needs_baseline: bool) -> None:
    assert gate.needs_baseline is needs_baseline


@pytest.mark.parametrize("over", ["+1e999", "+1e999%", f"+{'9' * 400}", 10**400, -(10**400), "1e999"])
def test_bound_that_no_run_could_exceed_is_rejected(over: Any) -> None:
    with pytest.raises(ConfigError, match="not a number or an increase over the baseline"):
        load_config({"gates": [{"metric": "total_tokens", "over": over}]})


def test_empty_metric_name_is_rejected() -> None:
    with pytest.raises(ConfigError, match=r"gates\.0\.metric"):
        load_config({"gates": [{"metric": "", "under": 0.5}]})
