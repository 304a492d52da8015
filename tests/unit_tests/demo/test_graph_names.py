import pytest

from graphrag_eval_lc.demo.graph import NamedThing, NameIndex, full_iri

INDEX = NameIndex(
    NamedThing(f"urn:{number}", name, class_iri)
    for number, (name, class_iri) in enumerate(
        [
            ("OSLO 420", "urn:Level"),
            ("OSLO", "urn:Substation"),
            ("OSLO T1", "urn:Transformer"),
            ("TROMSO", "urn:Substation"),
            ("KRISTIANSAND", "urn:Substation"),
            ("420 OSLO-ASKER", "urn:Line"),
        ]
    )
)


def found(query, class_iri=None, limit=10):
    return [hit.thing.name for hit in INDEX.search(query, class_iri, limit)]


def test_the_very_name_comes_first_with_rank_1():
    best = INDEX.search("oslo", None, 10)[0]
    assert (best.thing.name, best.rank) == ("OSLO", 1.0)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("KRIST", ["KRISTIANSAND"]),
        ("Kristainsand", ["KRISTIANSAND"]),
        ("oslo 420", ["OSLO 420", "420 OSLO-ASKER"]),
        ("Tromsø", []),
        ("Paris", []),
        ("OSLO Paris", []),
        ("", []),
        ("--", []),
    ],
)
def test_each_word_equals_begins_or_nearly_equals_a_word_of_the_name(query, names):
    assert found(query) == names


def test_a_class_narrows_the_search():
    assert found("OSLO", "urn:Transformer") == ["OSLO T1"]


def test_the_limit_keeps_the_best():
    assert found("OSLO", limit=1) == ["OSLO"]


@pytest.mark.parametrize(
    "name", ["cim:Substation", "<https://cim.ucaiug.io/ns#Substation>", "https://cim.ucaiug.io/ns#Substation"]
)
def test_a_class_is_named_by_prefix_or_in_full(name):
    assert full_iri(name) == "https://cim.ucaiug.io/ns#Substation"
