import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from graphrag_eval_lc.demo.planner import RuleBasedPlannerChatModel

MODEL = RuleBasedPlannerChatModel()
QUESTION = HumanMessage("Is there a DC link between the bidding zones NO2 and DK1?")


def test_its_names_say_that_it_is_a_rule_based_planner():
    assert "RuleBasedPlanner" in type(MODEL).__name__
    assert MODEL._llm_type == "rule-based-planner"
    params = MODEL._get_ls_params()
    assert (params["ls_provider"], params["ls_model_name"]) == ("rule-based-planner", "rule-based-planner")
    assert MODEL.invoke([QUESTION]).response_metadata["model_name"] == "rule-based-planner"


def test_calls_that_do_not_wait_for_each_other_come_in_one_message():
    given = MODEL.invoke([SystemMessage("…"), QUESTION])
    assert given.text == ""
    assert [(call["name"], call["args"]["query"], call["id"]) for call in given.tool_calls] == [
        ("autocomplete_search", "NO2", "call_1"),
        ("autocomplete_search", "DK1", "call_2"),
    ]


def test_the_answer_follows_from_the_tool_messages():
    asked = MODEL.invoke([QUESTION])
    failed = [ToolMessage("no graph", tool_call_id=call["id"], status="error") for call in asked.tool_calls]
    assert MODEL.invoke([QUESTION, asked, *failed]).text == "I did not find both bidding zones, NO2 and DK1."


def test_the_last_question_of_a_conversation_is_answered_and_call_ids_go_on():
    asked = MODEL.invoke([QUESTION])
    next_question = HumanMessage("What do the notes say about icing?")
    given = MODEL.invoke([QUESTION, asked, AIMessage("Yes."), next_question])
    assert [(call["name"], call["id"]) for call in given.tool_calls] == [("retrieval", "call_3")]


def test_without_a_question_it_asks_for_one():
    assert MODEL.invoke([SystemMessage("…")]).text == "Please ask a question."


def test_token_counts_are_estimated_from_the_length_of_the_text_and_say_so():
    given = MODEL.invoke([HumanMessage("x" * 39)])
    assert given.usage_metadata["input_tokens"] == 10
    assert given.usage_metadata["output_tokens"] == -(-len(given.text) // 4)
    assert "estimated" in given.response_metadata["token_counts"]


def test_the_descriptions_of_bound_tools_count_as_read(tools):
    bound = MODEL.bind_tools(list(tools.values()))
    without_tools, with_tools = (each.invoke([QUESTION]).usage_metadata["input_tokens"] for each in (MODEL, bound))
    assert with_tools > without_tools + 100


async def test_sync_async_and_streamed_calls_give_the_same():
    message = MODEL.invoke([QUESTION])
    streamed = [chunk async for chunk in MODEL.astream([QUESTION])]
    for other in (await MODEL.ainvoke([QUESTION]), *streamed):
        assert (other.text, other.tool_calls) == (message.text, message.tool_calls)
        assert other.usage_metadata == message.usage_metadata


@pytest.mark.parametrize("repeat", range(2))
def test_it_is_deterministic(repeat):
    assert MODEL.invoke([QUESTION]).tool_calls == RuleBasedPlannerChatModel().invoke([QUESTION]).tool_calls
