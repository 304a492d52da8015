import json
from copy import deepcopy
from typing import Any

from support.report_samples import result, step, table

from graphrag_eval_lc.config import EvaluationConfig, load_config
from graphrag_eval_lc.report.steps import SampleSteps, extra_steps, step_groups, uses_of

XSD = "http://www.w3.org/2001/XMLSchema#"


def groups_of(result: Any, config: Any = None) -> Any:
    return step_groups(SampleSteps(result, load_config(config)))


def test_matched_step_and_its_call_refer_to_each_other() -> None:
    groups = groups_of(result(step("lookup", "x"), step("sparql_query", table("T2", "T1"))))
    assert (groups[1][0]["status"], groups[1][0]["actual"]) == ("matched", 1)
    assert uses_of(groups)[1] == "✓ group 2 step 1"
    assert "rows" not in groups[1][0]


def test_nearest_step_shows_missing_and_extra_rows() -> None:
    found = groups_of(result(step("sparql_query", table("T1", "T9\x00"))))[1][0]
    assert (found["status"], found["actual"], found["score"]) == ("near", 0, 0.0)
    assert found["rows"] == {
        "columns": [["name", "name", True]],
        "unlike": [["missing", ["T2"], []], ["extra", ["T9␀"], []]],
        "equal": [["T1"]],
        "counts": [1, 1, 1],
    }
    assert "1 of 2 rows is missing" in found["reason"]


def test_missing_step_has_no_call_and_unscored_groups_are_marked() -> None:
    groups = groups_of(result(step("autocomplete_search", "urn:oslo")))
    assert (groups[0][0]["status"], groups[0][0]["scored"]) == ("unscored", False)
    assert (groups[1][0]["status"], groups[1][0]["actual"]) == ("missing", None)


def test_all_groups_count_if_configured() -> None:
    config = {"steps": {"scoring": "all_groups"}}
    assert [group[0]["scored"] for group in groups_of(result(config), config)] == [True, True]


def test_last_successful_matching_call_is_used_for_a_duplicate_id() -> None:
    steps = [
        step("sparql_query", table("T3"), id="0"),
        step("sparql_query", table("T4"), id="0"),
        step("lookup", "x", id="0"),
        step("sparql_query", id="0"),
    ]
    assert groups_of(result(*steps))[1][0]["actual"] == 1


def test_calls_with_a_null_id_are_identified_by_position() -> None:
    steps = [step("sparql_query", table("T1", "T2"), id=None), step("lookup", "x", id=None)]
    assert groups_of(result(*steps))[1][0]["actual"] == 0


def test_calls_with_a_duplicate_id_match_different_references() -> None:
    group = [{"name": "lookup", "output": "x"}, {"name": "lookup", "output": "y"}]
    diagnosis = {"matched": True, "score": 1.0, "nearest": "c", "reason": ""}
    scored = {
        "reference_steps": [[{**reference, "matches": "c"} for reference in group]],
        "actual_steps": [step("lookup", "x", id="c"), step("lookup", "y", id="c")],
        "steps_diagnosis": [[diagnosis, diagnosis]],
    }
    assert uses_of(groups_of(scored)) == {0: "✓ group 1 step 1", 1: "✓ group 1 step 2"}


def test_calls_without_an_id_are_identified_by_position() -> None:
    without_id = {key: value for key, value in step("sparql_query", table("T1", "T2")).items() if key != "id"}
    assert groups_of(result(step("lookup", "x"), without_id))[1][0]["actual"] == 1


def test_failed_nearest_call_has_no_rows() -> None:
    found = groups_of(result(step("sparql_query")))[1][0]
    assert (found["status"], found["actual"]) == ("near", 0)
    assert "rows" not in found


def test_extra_calls_are_those_not_compared_with_any_reference_step() -> None:
    scored = result(step("lookup", "x"), step("broken"), step("sparql_query", table("T1", "T2")))
    assert extra_steps(groups_of(scored), scored["actual_steps"]) == [0]
    assert scored["steps_counts"]["extra"] == 1


def test_rows_from_another_property_may_be_equal_by_chance() -> None:
    scored = result(step("sparql_query", table("T1", "T9")))
    difference = {"kind": "property", "expected": "c:a", "actual": "c:b", "column": "name"}
    note = "Rows may be equal by chance: name has the values of c:b, not those of c:a."
    for recorded, notes in ((difference, [note]), ({**difference, "column": None}, None)):
        scored["steps_diagnosis"][1][0]["query"] = {"differences": [recorded]}
        assert groups_of(scored)[1][0]["rows"].get("notes") == notes


def test_results_without_a_diagnosis_still_show_references() -> None:
    result = {"reference_steps": [[{"name": "lookup", "output": "x"}]], "actual_steps": []}
    (found,) = step_groups(SampleSteps(result, EvaluationConfig()))[0]
    assert (found["status"], found["reason"], found["reference"]["output"]) == ("missing", "", "x")


def test_rows_are_compared_with_the_steps_or_the_configs_tolerance() -> None:
    def sums(name: str, *numbers: str) -> str:
        rows = [{name: {"type": "literal", "value": number, "datatype": f"{XSD}float"}} for number in numbers]
        return json.dumps({"head": {"vars": [name]}, "results": {"bindings": rows}})

    def rows(config: Any = None, **keys: Any) -> Any:
        sample = deepcopy(result(step("sparql_query", sums("sum", "1000.1", "7.5"))))
        sample["reference_steps"][1][0] |= {
            "output": sums("total", "1000.101", "8.5"),
            "required_columns": None,
            **keys,
        }
        return groups_of(sample, config)[1][0].get("rows", {})

    assert rows()["unlike"] == [["missing", ["8.5"], []], ["extra", ["7.5"], []]]
    assert rows({"sparql": {"tolerance": {"float": 1e-9}}})["counts"] == [2, 2, 0]
    assert rows(tolerance="1e-9")["counts"] == [2, 2, 0]
    assert rows(tolerance=0.5) == rows(tolerance="5%") == {}


def test_rows_of_sparql_results_are_shown_under_any_step_name() -> None:
    reference = {"name": "run_sparql", "output": table("T1"), "output_media_type": "application/sparql-results+json"}
    diagnosis = {"score": 0.0, "matched": False, "reason": "another row", "nearest": "call_run_sparql"}
    near = result(step("run_sparql", table("T2")), reference_steps=[[reference]], steps_diagnosis=[[diagnosis]])
    assert groups_of(near)[0][0]["rows"]["unlike"][0] == ["missing", ["T1"], []]


def test_rows_with_triple_terms_are_shown_in_the_references_columns() -> None:
    def results(name: str, number: str, **more: Any) -> str:
        height = {"s": {"type": "uri", "value": "urn:a"}, "p": {"type": "uri", "value": "urn:p"}, "o": number}
        binding = {"label": {"type": "literal", "value": "Oslo"}, name: {"type": "triple", "value": height}, **more}
        return json.dumps({"head": {"vars": ["label", name, *more]}, "results": {"bindings": [binding]}})

    sample = deepcopy(result(step("sparql_query", results("what", "6", label=[1]))))
    sample["reference_steps"][1][0] |= {"output": results("height", "5"), "required_columns": None}
    assert groups_of(sample)[1][0]["rows"] == {
        "columns": [["label", None, True], ["height", "what", True]],
        "unlike": [
            ["missing", ["Oslo", '<<( urn:a urn:p "5" )>>'], []],
            ["extra", [None, '<<( urn:a urn:p "6" )>>'], []],
        ],
        "equal": [],
        "counts": [1, 1, 0],
    }


def test_rows_in_a_declared_format_are_compared_as_for_the_score() -> None:
    config = {"steps": {"outputs": {"sparql_query": {"format": "csv"}}}}
    found = groups_of(result(step("sparql_query", "city\nT1\nT9"), config=config), config)[1][0]
    assert found["rows"]["unlike"] == [["missing", ["T2"], []], ["extra", ["T9"], []]]
    assert found["rows"]["columns"] == [["name", "city", True]]


def graded(is_matched: bool) -> Any:
    found = result(step("lookup", "x"), step("sparql_query", table("T1")))
    found["steps_diagnosis"][1][0] |= {"score": 0.5, "matched": is_matched, "outcome": "mismatch"}
    return found


def test_partially_graded_step_is_matched_in_part() -> None:
    found = graded(is_matched=True)
    groups = groups_of(found)
    shown_step = groups[1][0]
    assert (shown_step["status"], shown_step["score"], shown_step["in_part"]) == ("matched", 0.5, True)
    assert shown_step["rows"]["unlike"] == [["missing", ["T2"], []]]
    assert uses_of(groups)[1] == "≈ in part: group 2 step 1"
    assert extra_steps(groups, found["actual_steps"]) == [0]


def test_nearest_call_is_marked_and_is_not_extra() -> None:
    found = graded(is_matched=False)
    groups = groups_of(found)
    assert (groups[1][0]["status"], groups[1][0]["in_part"]) == ("near", True)
    assert uses_of(groups)[1] == "≈ nearest: group 2 step 1"
    assert extra_steps(groups, found["actual_steps"]) == [0]


def test_full_match_is_not_partial() -> None:
    assert not [
        each
        for group in groups_of(result(step("sparql_query", table("T1", "T2"))))
        for each in group
        if "in_part" in each
    ]
