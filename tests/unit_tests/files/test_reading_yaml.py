from typing import Any

import pytest
from support.machine_speed import processor_seconds

from graphrag_eval_lc.errors import DatasetError
from graphrag_eval_lc.files.reading import MAX_DEPTH, TextFile, line_of, parse_yaml


def parsed(text: str) -> Any:
    return parse_yaml(TextFile(text, "qa.yaml", "yaml"), DatasetError, what="reference dataset")


def billion_laughs(levels: int) -> str:
    return "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, levels))


def nested_merges(levels: int) -> str:
    first = "a0: &a0 {" + ", ".join(f"k{n}: 1" for n in range(20)) + "}\n"
    return first + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, levels))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("[" * 100_000, "nested", id="brackets that never close"),
        pytest.param("- " * 100_000 + "x", "nested", id="dashes on one line"),
        *(
            pytest.param(f"a:{ending}{'- ' * 100_000}x", "nested", id=f"dashes after {ending!a}")
            for ending in ("\n", "\r", "\x85", "\u2028", "\u2029")
        ),
        pytest.param("".join("  " * n + "a:\n" for n in range(3_000)), "nested", id="ever deeper indentation"),
        pytest.param(billion_laughs(12), "aliases", id="aliases of aliases"),
        pytest.param(nested_merges(20), "merge keys", id="merges of merges"),
        pytest.param("a: &a [*a]", "contains itself", id="alias of itself"),
        pytest.param("!!python/object/apply:os.system [ls]", "constructor", id="tag that runs code"),
        pytest.param("a: [1\nb: 2", "line 2", id="bracket left open"),
        pytest.param(
            "a:\n- !!bool x", "line 2: the reference dataset is not valid YAML: x cannot be read as bool", id="bool"
        ),
        pytest.param('!!int ""', "cannot be read", id="number without digits"),
        *(
            pytest.param(
                f"a: b\nc: !!{tag} aGk=", f"line 2: the reference dataset is not valid YAML: the tag !!{tag}", id=tag
            )
            for tag in ("binary", "set", "omap", "pairs")
        ),
        pytest.param("a: \x01", "control characters", id="control character"),
        pytest.param(
            "a: " + "9" * 5_000, "line 1: the reference dataset is not valid YAML: 999", id="number without end"
        ),
    ],
)
def test_hostile_yaml_is_one_clear_error_within_a_second(text: str, complaint: str) -> None:
    with processor_seconds(1), pytest.raises(DatasetError) as caught:
        parsed(text)
    assert complaint in str(caught.value)
    assert str(caught.value).startswith("qa.yaml")


def test_first_merged_mapping_wins_and_explicit_keys_override_all() -> None:
    value = parsed(
        "a: &a {name: first, only: a}\n"
        "b: &b {name: second, too: b}\n"
        "ab: {<<: [*a, *b]}\n"
        "ba: &ba {<<: [*b, *a]}\n"
        "own: {name: own, <<: [*a, *b]}\n"
        "again: {<<: [*a, *ba]}\n"
        "one: {<<: *ba, name: one}\n"
        "two: {<<: *a, <<: *b}\n"
    )
    assert value["ab"] == value["again"] == {"name": "first", "only": "a", "too": "b"}
    assert value["ba"] == {"name": "second", "only": "a", "too": "b"}
    assert value["own"] == {"name": "own", "only": "a", "too": "b"}
    assert value["one"] == {"name": "one", "only": "a", "too": "b"}
    assert value["two"]["name"] == "second"  # like repeated keys


def test_only_mappings_can_be_merged() -> None:
    with pytest.raises(
        DatasetError, match=r"line 2: .*a merge key \(<<\) needs a mapping or a list of mappings, not a"
    ):
        parsed("a: 1\nb: {<<: [1]}")


def test_legitimate_aliases_and_nesting_are_read() -> None:
    depth = MAX_DEPTH - 1
    value = parsed("a: &a [1]\nb: [*a, *a]\nc: " + "[" * depth + "]" * depth)
    assert value["b"] == [[1], [1]]


def test_brackets_in_strings_do_not_count_as_nesting() -> None:
    assert parsed("a: '" + "[" * 5_000 + "'") == {"a": "[" * 5_000}


def test_timestamps_stay_strings_as_in_json() -> None:
    assert parsed("{day: 2025-01-31, moment: 2025-01-31T10:00:00Z}") == {
        "day": "2025-01-31",
        "moment": "2025-01-31T10:00:00Z",
    }


@pytest.mark.parametrize(
    ("location", "line"),
    [((0,), 1), ((0, "b", 1), 4), ((0, "b", 7), 3), ((0, "absent"), 1)],
)
def test_line_is_that_of_the_value_or_its_nearest_parent(location: tuple[str | int, ...], line: int) -> None:
    assert line_of(TextFile("- a: 1\n  b:\n  - x\n  - y\n", None, "yaml"), location) == line
