"""Why a question failed: the kinds of failures in diagnoses, their groups and their order."""

from typing import Any, get_args

import pytest

from graphrag_eval_lc.aggregation.sample_values import Metrics
from graphrag_eval_lc.config import EvaluationConfig, RepeatsConfig
from graphrag_eval_lc.view.failures import Failures, kind_of, kind_of_failure, lines_of, parts_of, why, with_label
from graphrag_eval_lc.view.samples import Verdict, seen_samples, verdict_of

# A reason in a diagnosis, its kind, and the title of its group, which contains no values.
KINDS = [
    ("the agent did not call sparql_query; it called now", "never sent", "sparql_query was never called"),
    ("the agent did not call a or b nor any other tool", "never sent", "a or b was never called"),
    ("the run is paused (interrupted): it waits to be resumed", "paused", "The run is paused and waits to be resumed"),
    ("3 calls of sparql_query failed: HTTPError: 400", "tool error", "sparql_query failed: HTTPError"),
    ("1 call of search failed: no row 7 of urn:x:1", "tool error", "search failed: no row … of …"),
    ("matched (group not scored): x", "right call, wrong place", "The right call: group not scored"),
    ("The actual results have no rows, the reference has 4.", "empty result", "The result is empty"),
    ("The actual output is a text: '1. Oslo'.", "unreadable output", "The output of step cannot be read"),
    ("The actual output is an error: no row 7.", "tool error", "step returned an error: no row …"),
    ("The actual output is a text that reports an error: Timeout.", "tool error", "step returned an error: Timeout."),
    ("urn:uuid:1 is not in the output of search", "nothing found", "search did not find the IRI"),
    ("1 of 3 relevant documents in the top 5; e.g. x", "missed documents", "Relevant documents were not retrieved"),
    ("The rows are the same but in another order, from row 2 on: a.", "wrong order", "The rows are in another order"),
    ("No result column matches `x`; 1 of 1 row is missing.", "missing column", "A required column is missing"),
    ("1 of 2 rows is missing; 2 extra rows.", "wrong rows", "Some rows are missing, others are extra"),
    ("1 extra row: (9).", "extra rows", "Extra rows"),
    ("2 of 4 rows are missing, e.g. (300).", "missing rows", "Rows are missing"),
    ("another text: 1 instead of 2", "another output", "The output of step differs"),
    ("start is '1' instead of '2'; end is '3' instead of '4'", "wrong time", "Wrong time in step"),
    ("granularity is '1h' instead of '15m'", "wrong argument", "Wrong argument of step: granularity"),
    ("the answer 7 is 'odd'", "other", "step: the answer … is …"),
]  # fmt: skip


RECURSION = "The agent reached its recursion limit (langgraph.errors.GraphRecursionError)"


def failed(reason: str, question_id: str = "q", score: float = 0.0, **more: Any) -> dict[str, Any]:
    """Return a result with one reference step, named ``step``, that is unmatched for a reason."""
    diagnosis = {"matched": False, "score": score, "reason": reason, "outcome": "mismatch"}
    base = {"question_id": question_id, "template_id": "t", "question_text": "?", "steps_score": score}
    return {**base, "reference_steps": [[{"name": "step"}]], "steps_diagnosis": [[diagnosis]], **more}


@pytest.mark.parametrize(("reason", "name", "title"), KINDS)
def test_title_of_a_kind_contains_no_values(reason: str, name: str, title: str) -> None:
    assert kind_of_failure(failed(reason), Verdict("wrong", "steps_score", 0.0)) == (name, title)


@pytest.mark.parametrize(
    ("result", "verdict", "title"),
    [
        ({"error": "there is no response to this question"}, Verdict("error"), "No response"),
        ({"error": "TimeoutError: 600 s"}, Verdict("error"), "No answer in time (TimeoutError)"),
        ({"error": "langgraph.errors.GraphRecursionError: 25"}, Verdict("error"), RECURSION),
        ({}, Verdict("error"), "failed without a message"),
        ({}, Verdict("wrong", "answer_f1", 0.2), "answer_f1 is not in full"),
        ({"steps_diagnosis": []}, Verdict("partly", "steps_score", 0.5), "More calls than needed"),
        ({"steps_diagnosis": [[{"matched": False}]]}, Verdict("wrong", "steps_score"), "The diagnosis cannot be read"),
        ({"steps_diagnosis": [None]}, Verdict("wrong", "steps_score"), "The diagnosis cannot be read"),
    ],
)  # fmt: skip
def test_results_without_a_diagnosis_have_a_kind(result: dict[str, Any], verdict: Verdict, title: str) -> None:
    assert kind_of_failure(result, verdict).title == title


def test_undecided_step_is_its_own_kind() -> None:
    result = failed("undecided: the search ended; nearest: 1 of 1 row is missing")
    result["steps_diagnosis"][0][0]["outcome"] = "undecided"
    kind = kind_of_failure(result, Verdict("undecided", "steps_score", 0.0))
    assert kind == ("undecided", "step: it is not known whether it fits")


DIFFERENCE = {"kind": "property", "sentence": "uses c:b instead of c:a", "expected": "c:a", "actual": "c:b"}
FINDING = {"rule": "unknown_class", "what": "c:X is not a class of this graph", "hint": "nearest: c:Y"}


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ({"cause": "property", "differences": [DIFFERENCE]}, ("wrong property", "Wrong property: c:b for c:a")),
        (
            {"cause": "unknown_class", "findings": [FINDING], "differences": [DIFFERENCE]},
            ("wrong class", FINDING["what"]),
        ),
        ({"cause": "missing_filter", "differences": [{}]}, ("missing filter", "A filter is missing")),
        ({"differences": [DIFFERENCE] * 7}, ("other query", "The query differs in several ways")),
        ({"cause": "of another version"}, ("missing rows", "Rows are missing")),
    ],
)
def test_query_explanation_takes_precedence_over_the_rows(query: dict[str, Any], kind: tuple[str, str]) -> None:
    result = failed("The query differs. 1 of 3 rows is missing, e.g. (1).")
    result["steps_diagnosis"][0][0]["query"] = {"sentence": "The query differs.", **query}
    assert kind_of_failure(result, Verdict("wrong", "steps_score", 0.0)) == kind


def test_each_cause_of_a_failed_query_has_a_kind() -> None:
    query_lint = pytest.importorskip("graphrag_eval_lc.graph.query_lint")
    query_difference = pytest.importorskip("graphrag_eval_lc.graph.query_difference")
    causes = {*query_lint.RULES, *get_args(query_difference.DifferenceKind)} - {"no_limit"}
    for cause in causes:
        result = failed("x")
        result["steps_diagnosis"][0][0]["query"] = {"cause": cause, "differences": [DIFFERENCE], "findings": [FINDING]}
        assert kind_of_failure(result, Verdict("wrong", "steps_score", 0.0)).name != "other"


def failures_of(*results: Any, most: int = 10) -> Failures:
    failures = Failures(most)
    for sample in seen_samples(results, Metrics(EvaluationConfig())):
        failures.add(sample, verdict_of(sample, RepeatsConfig()))
    return failures


def test_similar_failures_are_grouped_and_the_largest_group_comes_first() -> None:
    failures = failures_of(
        failed("2 of 4 rows are missing, e.g. (300).", "a"),
        failed("1 extra row, e.g. (9).", "b"),
        failed("3 extra rows, e.g. (8).", "c"),
        {"question_id": "right", "template_id": "t", "steps_score": 1.0},
    )
    groups = [(group.count, group.kind, group.keys, group.example) for group in failures.groups()]
    assert groups == [
        (2, "extra rows", ("b", "c"), "step: 1 extra row, e.g. (9)."),
        (1, "missing rows", ("a",), "step: 2 of 4 rows are missing, e.g. (300)."),
    ]


def test_worst_failure_of_a_group_is_its_example() -> None:
    scores = {"b": 0.5, "w": 0.2, "c": 0.2}
    failures = failures_of(*(failed(f"1 extra row: ({name}).", name, score) for name, score in scores.items()))
    (group,) = failures.groups()
    assert (group.keys, group.example) == (("w", "c", "b"), "step: 1 extra row: (w).")


def test_related_groups_are_listed_together_under_their_total() -> None:
    failures = failures_of(
        *(failed("1 of 3 relevant documents", f"d{at}") for at in range(2)),
        failed("1 extra row: (9).", "q0"),
        failed("the agent did not call step nor any other tool", "n"),
        *(failed("2 of 4 rows are missing.", f"m{at}") for at in range(2)),
        failed("granularity is '1h' instead of '15m'", "a"),
    )
    parts = parts_of(failures.groups())
    lines, rest = lines_of(parts, most=6)
    assert [(count, title, "" if group is None else group.keys[0]) for count, title, group in lines] == [
        ("3", "Wrong query:", ""),
        ("", "· Rows are missing (2)", "m0"),
        ("", "· Extra rows", "q0"),
        ("2", "Relevant documents were not retrieved", "d0"),
        ("1", "step was never called", "n"),
        ("1", "Wrong argument of step: granularity", "a"),
    ]
    assert rest == 0
    assert lines_of(parts, most=4)[1] == 2


def test_worst_failures_are_sorted_by_error_score_and_order() -> None:
    scores = {"half": 0.5, "none": 0.0, "third": 0.3, "none too": 0.0}
    results = [failed("x", name, score) for name, score in scores.items()]
    error = failed("x", "away", error="ValueError: away", status="error")
    names = ["away", "none", "none too", "third", "half"]
    for most in range(6):
        failures = failures_of(*results, error, most=most)
        assert [failure.question_id for failure in failures.worst()] == names[:most]


def test_if_most_have_no_response_answered_questions_come_first() -> None:
    none = [failed("x", f"n{at}", error="there is no response to this question") for at in range(12)]
    names = [failure.question_id for failure in failures_of(*none, failed("x", "wrong"), most=2).worst()]
    assert names == ["wrong", "n0"]
    few = failures_of(*none[:3], failed("x", "wrong"), most=2)
    assert [failure.question_id for failure in few.worst()] == ["n0", "n1"]


def test_secrets_are_masked() -> None:
    key = "sk-proj-" + "aB3dE6gH9jK2mN5p" * 3
    failures = failures_of(failed(f"401 for {key}", question_text=f"Is {key} right?", actual_answer=key))
    assert key not in repr((failures.worst(), failures.groups()))
    assert "401 for" in failures.worst()[0].reason


def test_kind_of_an_error_is_its_class_or_its_text_without_values() -> None:
    assert kind_of("openai.RateLimitError: 429") == "openai.RateLimitError"
    assert kind_of("GET https://x.org/1?key=2 gave 'no' (at 3)") == "GET … gave … …"


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [
        (Verdict("wrong", "answer_f1", 0.2), "One of two."),
        (Verdict("wrong", "steps_score", 0.0), "step: 1 extra row: (9)."),
        (Verdict("error", "answer_f1", 0.0), "TimeoutError: 600 s"),  # even if a judge scored a partial answer
    ],
)
def test_reason_is_that_of_the_deciding_score_unless_the_question_failed(verdict: Verdict, reason: str) -> None:
    more = {"status": "error", "error": "TimeoutError: 600 s"} if verdict.state == "error" else {}
    assert why(failed("1 extra row: (9).", answer_correctness_reason="One of two.", **more), verdict) == reason


@pytest.mark.parametrize(
    ("args", "reason", "shown"),
    [
        ({"query": "OSLO"}, "urn:x is not in the output of find", "OSLO (urn:x) is not in the output of find"),
        ({"query": "OSLO"}, "matched: urn:x is in the output", "matched: OSLO (urn:x) is in the output"),
        ({"query": "OSLO", "kind": "zone"}, "urn:x is in the output", "urn:x is in the output"),
        ({}, "urn:x is in the output", "urn:x is in the output"),
        ({"query": "OSLO"}, "urn:xy is in the output", "urn:xy is in the output"),
    ],
)
def test_iri_is_shown_with_the_label_searched_for(args: Any, reason: str, shown: str) -> None:
    assert with_label(reason, {"args": args, "output": "urn:x"}) == shown
    assert with_label(reason, {"args": args, "output": ""}) == reason
