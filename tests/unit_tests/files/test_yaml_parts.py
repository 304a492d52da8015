"""Reading a list in parts yields the same list as reading it whole."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.files import reading
from graphrag_eval_lc.files.reading import list_in_parts

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12) | st.sampled_from(["- a", "x\n- y", "---\n- z"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture(autouse=True, scope="module")
def small_parts() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "PART_CHARACTERS", 5)
        yield


@given(st.lists(VALUES, min_size=1, max_size=6), st.sampled_from([True, False, None]), st.booleans())
def test_parts_add_up_to_the_list_or_it_is_read_whole(values: list[Any], flow: bool | None, is_wide: bool) -> None:
    text = yaml.safe_dump(values, default_flow_style=flow, allow_unicode=True, width=8 if is_wide else 80)
    read = list_in_parts(text, yaml.CSafeLoader)
    assert read is None or read == yaml.load(text, yaml.CSafeLoader)


LONG = "- {a: 1}\n- {a: 2}\n- b\n"


@pytest.mark.parametrize(
    "text", [LONG, f"---\n{LONG}", f"# a comment\n\n{LONG}", LONG.replace("\n", "\r\n"), LONG[:-1]]
)
def test_lists_are_read_in_parts(text: str) -> None:
    assert list_in_parts(text, yaml.CSafeLoader) == [{"a": 1}, {"a": 2}, "b"]


@pytest.mark.parametrize(
    "text",
    [
        '- "a text\n- in quotes"\n- b\n',
        "- [a,\n- b]\n",
        "- &one {a: 1}\n- *one\n",
        f"{LONG}---\n{LONG}",
        f"%YAML 1.1\n---\n{LONG}",
        f"{LONG}key: value\n",
        "a: 1\nb: 2\nc: 3\n",
        "- a\n",
    ],
)
def test_other_documents_are_read_whole(text: str) -> None:
    assert list_in_parts(text, yaml.CSafeLoader) is None
