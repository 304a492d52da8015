import re

import pytest
from metrics_table import BEGIN, END, README, metrics_table, with_metrics_table

from graphrag_eval_lc import metrics
from graphrag_eval_lc.registry.metrics import BUILT_IN


def test_readmes_table_is_what_the_registry_says() -> None:
    text = README.read_text(encoding="utf-8")
    assert text == with_metrics_table(text), "run: make metrics-table"


def test_each_metric_stands_once_and_each_member_of_a_family() -> None:
    named = re.findall(r"`(\w+)`", "".join(row.split("|")[1].split("(")[0] for row in metrics_table().splitlines()))
    assert len(named) == len(set(named))
    assert {spec.key for spec in BUILT_IN if not spec.is_family} <= set(named)
    for family in (spec.key for spec in BUILT_IN if spec.is_family):
        assert any(name.startswith(family) for name in named)


def test_functions_in_it_are_those_of_the_metrics_room() -> None:
    functions = re.findall(r"`(\w+)`", "".join(re.findall(r"\((`.*?`)\)", metrics_table())))
    assert {"recall_at_k", "id_context_precision", "text_context_recall", "ndcg"} <= set(functions)
    assert all(hasattr(metrics, function) for function in functions if not function.startswith("NonLLM"))


def test_text_around_the_table_stays_and_one_without_markers_is_refused() -> None:
    made = with_metrics_table(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    assert made == f"before\n{BEGIN}\n{metrics_table()}{END}\nafter\n"
    with pytest.raises(ValueError, match="has not each of"):
        with_metrics_table(f"{BEGIN} {BEGIN} {END}")
