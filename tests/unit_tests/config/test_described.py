from typing import Any

import pytest

from graphrag_eval_lc.config.described import DescribedKey, attribute_texts, described_keys


@pytest.fixture(scope="module")
def keys() -> dict[str, DescribedKey]:
    return {key.path: key for key in described_keys()}


def test_every_key_is_described(keys: dict[str, DescribedKey]) -> None:
    assert [path for path, key in keys.items() if not key.about] == []


@pytest.mark.parametrize(
    ("path", "kind", "default"),
    [
        ("steps.grading", "`binary` or `graded`", '"binary"'),
        ("judges.batch", "whole number, ≥ 1", "1"),
        ("judges.timeout", "number, > 0", "120.0"),
        ("llm.generation.base_url", "text or null", "null"),
        ("llm.generation.temperature", "number or null, ≥ 0, ≤ 2", "0.0"),
        ("gates", "list of sections", "[]"),
        ("gates[].max_lost", "whole number or null, ≥ 0", "null"),
        ("prices.<name>.input", "number, ≥ 0", None),
        ("steps.outputs.<name>.artifact", "true or false", "false"),
    ],
)
def test_types_and_defaults_are_told_in_words(
    keys: dict[str, DescribedKey], path: str, kind: str, default: str | None
) -> None:
    assert (keys[path].takes, keys[path].default) == (kind, default)


def test_texts_of_several_lines_are_joined() -> None:
    from graphrag_eval_lc.config import StepsConfig

    texts: dict[str, Any] = attribute_texts(StepsConfig)
    assert texts["kinds"].startswith("The kind by which reference steps are compared, by their name or that of")
    assert "\n" not in texts["kinds"]
