import re
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from graphrag_eval_lc import metrics

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture(scope="module")
def made_by() -> Iterator[Any]:
    sys.path.insert(0, str(DOCS))
    try:
        from made_by import metric_facts, metrics_page, pages

        yield {"facts": metric_facts, "metrics": metrics_page, "pages": pages}
    finally:
        sys.path.remove(str(DOCS))


def test_generated_pages_are_up_to_date(made_by: Any) -> None:
    has_same_wording = Version(version("typer")) >= Version("0.20")  # older versions word the help differently
    stale = [
        name
        for name, page in made_by["pages"].PAGES.items()
        if (has_same_wording or name != "reference/cli.md")
        and not ((DOCS / name).exists() and (DOCS / name).read_text(encoding="utf-8") == page())
    ]
    assert stale == [], "make reference"


def test_each_metric_has_a_formula(made_by: Any) -> None:
    assert sorted(made_by["facts"].FACTS) == sorted(made_by["metrics"].metric_keys())


def test_functions_named_for_metrics_exist(made_by: Any) -> None:
    lines = re.findall(
        r"^- \*\*In Python:\*\* (.*) of `graphrag_eval_lc.metrics`\.$", made_by["metrics"].metrics_page(), re.M
    )
    functions = set(re.findall(r"`(\w+)`", "".join(lines)))
    assert {"recall_at_k", "text_context_recall", "ndcg"} <= functions
    assert all(hasattr(metrics, function) for function in functions)


def test_metric_examples_return_the_documented_values(made_by: Any) -> None:
    facts = made_by["facts"]
    names: dict[str, Any] = {}
    exec(facts.PREPARED, names)
    shown = {key: fact.value for key, fact in facts.FACTS.items() if fact.code}
    computed = {key: str(round(eval(facts.FACTS[key].code, names), 3)) for key in shown}
    assert computed == shown


def test_each_command_and_each_key_is_documented() -> None:
    from graphrag_eval_lc.config import EvaluationConfig

    cli = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    config = (DOCS / "reference" / "config.md").read_text(encoding="utf-8")
    assert all(f"\n## {name}\n" in cli for name in ("run", "score", "init", "compare", "validate"))
    assert all(f"| `{name}` |" in config for name in EvaluationConfig.model_fields)
    assert "| `--max-cost` |" in cli
