from typing import Any

import pytest
from support.machine_speed import processor_seconds

from graphrag_eval_lc.errors import DatasetError
from graphrag_eval_lc.files.reading import MAX_DEPTH, TextFile, line_of, parse_yaml


def parsed(text: str) -> Any:
    return parse_yaml(TextFile(text, "qa.yaml", "yaml"), DatasetError, what="reference dataset")


def laughing(levels: int) -> str:
    return "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, levels))


def merging(levels: int) -> str:
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
        pytest.param(laughing(12), "aliases", id="aliases of aliases"),
        pytest.param(merging(20), "merge keys", id="merges of merges"),
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
def test_hostile_yaml_gets_one_clear_error_within_a_second(text: str, complaint: str) -> None:
    with processor_seconds(1), pytest.raises(DatasetError) as caught:
        parsed(text)
    assert complaint in str(caught.value)
    assert str(caught.value).startswith("qa.yaml")


def test_of_merged_mappings_the_first_goes_before_the_others_and_own_keys_before_all() -> None:
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
    assert value["two"]["name"] == "second"  # as of repeated keys


def test_only_mappings_can_be_merged() -> None:
    with pytest.raises(
        DatasetError, match=r"line 2: .*a merge key \(<<\) needs a mapping or a list of mappings, not a"
    ):
        parsed("a: 1\nb: {<<: [1]}")


def test_honest_aliases_and_depth_are_read() -> None:
    depth = MAX_DEPTH - 1
    value = parsed("a: &a [1]\nb: [*a, *a]\nc: " + "[" * depth + "]" * depth)
    assert value["b"] == [[1], [1]]


def test_unbalanced_brackets_in_texts_are_no_depth() -> None:
    assert parsed("a: '" + "[" * 5_000 + "'") == {"a": "[" * 5_000}


def test_times_stay_texts_as_in_json() -> None:
    assert parsed("{day: 2025-01-31, moment: 2025-01-31T10:00:00Z}") == {
        "day": "2025-01-31",
        "moment": "2025-01-31T10:00:00Z",
    }


@pytest.mark.parametrize(
    ("location", "line"),
    [((0,), 1), ((0, "b", 1), 4), ((0, "b", 7), 3), ((0, "absent"), 1)],
)
def test_line_of_a_value_or_of_its_nearest_parent(location: tuple[str | int, ...], line: int) -> None:
    assert line_of(TextFile("- a: 1\n  b:\n  - x\n  - y\n", None, "yaml"), location) == line
