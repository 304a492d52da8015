import json
from typing import Any

from support.report_samples import sample, step, table

from graphrag_eval_lc.config import RepeatsConfig, load_config
from graphrag_eval_lc.report.questions import IndexRows
from graphrag_eval_lc.report.steps import SampleSteps
from graphrag_eval_lc.view.failures import Failures
from graphrag_eval_lc.view.samples import Verdict, verdict_of


def row_of(sample: Any) -> Any:
    index = IndexRows()
    verdict = verdict_of(sample, RepeatsConfig())
    steps = SampleSteps(sample.result, load_config(None))
    index.add(sample, steps, 3, verdict, Failures(1).add(sample, verdict))
    return json.loads("".join(index))[0]


def test_row_has_what_the_list_shows_and_filters_by() -> None:
    found = row_of(
        sample(step("lookup", "x"), step("sparql_query", table("T1")), elapsed_sec=1.23456789, agent_cost=0.25)
    )
    assert found["r"].startswith("sparql_query: 1 of 2 rows is missing")
    assert (found["g"], found["e"], found["a"]) == (0, "T1 and T2.", "T1.")
    assert {key: found[key] for key in "kqtsmc"} == {
        "k": "q",
        "q": "Which transformers are in OSLO?",
        "t": "t",
        "s": "wrong",
        "m": dict.fromkeys(("steps_score", "steps_recall", "steps_precision", "steps_f1"), 0.0) | {"steps_order": 1.0},
        "c": 3,
    }
    assert (found["tok"], found["sec"], found["usd"], found["tools"]) == (None, 1.234568, 0.25, [0, 1])


def test_cost_is_the_agents_or_unknown() -> None:
    judged = {"answer_f1": 1.0, "answer_correctness_cost": 0.5}
    assert row_of(sample(agent_cost=0.25, **judged))["usd"] == 0.25
    assert row_of(sample(**judged))["usd"] is None


def test_right_question_has_no_reason() -> None:
    assert "r" not in row_of(sample(step("sparql_query", table("T1", "T2"))))
    assert row_of(sample(step("sparql_query", table("T1", "T2")), error="away"))["r"] == "away"


def test_long_questions_are_truncated_and_markup_is_kept() -> None:
    text = row_of(sample(question_text="</script><!--" + "x" * 10_000))["q"]
    assert text.startswith("</script><!--")
    assert len(text) == 161


def test_tools_are_referred_to_by_index() -> None:
    index = IndexRows()
    for names in ("ab", "bc"):
        found = sample(*(step(name, "x") for name in names))
        index.add(found, SampleSteps(found.result, load_config(None)), 0, Verdict("right"), None)
    assert list(index.tools) == ["a", "b", "c"]
    assert [row["tools"] for row in json.loads("".join(index))] == [[0, 1], [1, 2]]
