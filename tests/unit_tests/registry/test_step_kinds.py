"""Declaring step kinds, and determining the kind of a step."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import graphrag_eval_lc
from graphrag_eval_lc.errors import MatcherError
from graphrag_eval_lc.matching import StepKind, register_step_kind
from graphrag_eval_lc.registry.step_kinds import (
    MatcherKey,
    built_in_step_kinds,
    custom_step_kinds,
    have_other_meanings,
    names_that_fulfil,
    shown_as,
    step_kind_for,
)

pytestmark = pytest.mark.usefixtures("forget_matchers")


def kind(key: str, *serves: MatcherKey, **more: Any) -> StepKind:
    return StepKind(key=key, serves=serves, matcher=lambda reference, actual: 1.0, **more)


def test_most_specific_kind_serves_a_step() -> None:
    both, name, media_type = (
        register_step_kind(kind(key, serves))
        for key, serves in (("both", ("a", "text/x")), ("name", ("a", None)), ("media_type", (None, "text/x")))
    )
    assert step_kind_for("a", "text/x") is both
    assert step_kind_for("a", "text/y") is name
    assert step_kind_for("b", "text/x") is media_type
    assert step_kind_for("b", None).key == "text"


def test_kind_with_the_same_key_replaces_the_first() -> None:
    register_step_kind(kind("rows", ("a", None), (None, "application/json")))
    second = register_step_kind(kind("rows", ("b", None)))
    assert custom_step_kinds() == {("b", None): second}
    assert step_kind_for("a", "application/json").key == "json"
    assert not have_other_meanings("a", "retrieval")


def test_kind_named_like_a_built_in_one_serves_only_its_own_steps() -> None:
    register_step_kind(kind("json", ("a", None)))
    assert step_kind_for("b", "application/json").title == "JSON"


def test_names_that_can_match_have_a_meaning() -> None:
    register_step_kind(kind("found", ("find", None), ("find_all", None), fulfilled_by=("search", "query")))
    assert names_that_fulfil("find_all") == {"search", "query"}
    assert all(have_other_meanings(name, "retrieval") for name in ("find", "find_all", "search", "query"))


def test_meaning_of_a_name_determines_how_a_step_is_shown() -> None:
    results = "application/sparql-results+json"
    assert [
        shown_as(name, step_kind_for(name, results)) for name in ("run_sparql", "autocomplete_search", "iri_discovery")
    ] == [
        "rows",
        "text",
        "iri",
    ]
    register_step_kind(kind("cypher", ("run_cypher", None), shown_as="rows"))
    assert shown_as("run_cypher", step_kind_for("run_cypher", None)) == "rows"


@pytest.mark.parametrize(
    ("serves", "more", "text"),
    [
        ((), {}, "the step kind k serves ()"),
        (("count_rows", None), {}, "Give pairs of a step name and a media type"),
        (((None, "text/x"),), {"fulfilled_by": ("a",)}, "fulfilled_by needs the name"),
        ((("a", None),), {"reads": "artifact"}, 'A matcher reads "output" or "args"'),
        (((None, None),), {}, "serves every step"),
    ],
)
def test_invalid_declaration_is_reported(serves: Any, more: dict[str, Any], text: str) -> None:
    with pytest.raises(MatcherError) as problem:
        register_step_kind(kind("k", *serves, **more))
    assert text in str(problem.value)


# --- names are declared in one file ----------------------------------------------------------------------------------

PACKAGE = Path(graphrag_eval_lc.__file__).parent
DECLARED = {part for key in built_in_step_kinds for part in key if part} | {"autocomplete_search", "text/uri"}


def texts_in(source: str) -> Iterator[str]:
    """Return all strings of a file except docstrings."""
    tree = ast.parse(source)
    documentation = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value


# "retrieval" is also a section of the config.
@pytest.mark.parametrize("name", sorted(DECLARED - {"retrieval"}))
def test_each_step_name_and_media_type_is_in_one_file(name: str) -> None:
    whole = re.compile(rf"(?<![\w/+]){re.escape(name)}(?![\w/+])")
    files = [file for file in PACKAGE.rglob("*.py") if file.parent.name != "demo"]
    sources = {file: file.read_text(encoding="utf-8") for file in files}
    naming = [file for file, source in sources.items() if name in source and any(map(whole.search, texts_in(source)))]
    assert len(naming) == 1, naming
