import pytest
import yaml

from graphrag_eval_lc.demo import DATASET_PATH, plans
from graphrag_eval_lc.demo.planner import INTENTS, plan_for

TEMPLATES = yaml.safe_load(DATASET_PATH.read_text(encoding="utf-8"))
QUESTIONS = [(template["template_id"], each) for template in TEMPLATES for each in template["questions"]]
PLAN_OF_TEMPLATE = {
    "transformers_in_substation": plans.transformers,
    "substations_in_bidding_zone": plans.substations,
    "neighbours_of_substation": plans.neighbours,
    "generating_capacity_of_zone": plans.capacity,
    "dc_link_between_zones": plans.dc_link,
    "longest_lines": plans.longest_lines,
    "notes": plans.documents,
    "voltages_of_ac_lines": plans.line_voltages,
    "search_by_name": plans.search_by_name,
    "production_of_generating_unit": plans.production,
    "flow_on_dc_line": plans.flow,
}


def intent_of(question):
    return next((intent for intent in INTENTS if intent.wording.search(question)), None)


@pytest.mark.parametrize(("template_id", "question"), QUESTIONS, ids=[each["id"] for _, each in QUESTIONS])
def test_each_question_of_the_dataset_gets_the_plan_of_its_template(template_id, question):
    assert intent_of(question["question_text"]).plan is PLAN_OF_TEMPLATE[template_id]


@pytest.mark.parametrize(
    ("question", "groups"),
    [
        ("Which transformers are in Tromsø?", {"name": "Tromsø"}),
        ("Is there a DC link from NO2 to DE-LU?", {"zone": "NO2", "other_zone": "DE-LU"}),
        ("What are the 3 longest 300 kV AC lines?", {"count": "3", "kilovolts": "300", "zone": None}),
        ("Give the 7 longest AC lines with an end in SE2.", {"count": "7", "kilovolts": None, "zone": "SE2"}),
        (
            "What was the lowest production of RANA G1 over the last 3 days, in steps of 30 minutes?",
            {"name": "RANA G1", "count": "3", "period": "day", "step": "30", "step_unit": "minute"},
        ),
        (
            "Give the average flow on DC FEDA-EEMSHAVEN 1 the day before yesterday in steps of 1 hour.",
            {"aggregate": "average", "name": "DC FEDA-EEMSHAVEN 1", "day": "the day before yesterday", "step": "1"},
        ),
        ("How much WIND capacity is in FI?", {"kind": "WIND", "zone": "FI"}),
    ],
)
def test_a_wording_finds_what_the_question_names(question, groups):
    match = intent_of(question).wording.search(question)
    assert {name: match[name] for name in groups} == groups


def test_a_question_of_no_known_kind_is_answered_with_what_can_be_asked():
    plan = plan_for("Who painted the Mona Lisa?")
    with pytest.raises(StopIteration) as end:
        next(plan)
    assert "planner with fixed rules" in end.value.value
