"""The demo's LangGraph agent, and its chat model: fixed rules instead of a language model."""

import json
import re
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LangSmithParams, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from graphrag_eval_lc.demo import DOCUMENTS_PATH, GRAPH_PATH, TIME_SERIES_PATH, plans
from graphrag_eval_lc.demo.plans import Call, Observation, Plan
from graphrag_eval_lc.errors import AgentError, MissingExtraError

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

SYSTEM_PROMPT = (Path(__file__).parent / "prompts" / "system.txt").read_text(encoding="utf-8")
RECURSION_LIMIT = 30


def create_demo_agent(model: str | BaseChatModel | None = None) -> "CompiledStateGraph[Any, Any, Any, Any]":
    """Return the agent as a compiled graph that accepts and returns ``{"messages": […]}``.

    Args:
        model: A chat model, or its name as ``provider:name`` such as ``openai:gpt-4o-mini``; None for a planner with
            fixed rules: no language model, no key, the same answers each time.

    Raises:
        MissingExtraError: The extra ``demo`` is not installed.
        AgentError: The named model cannot be made.

    Example:
        >>> agent = create_demo_agent()
        >>> state = agent.invoke({"messages": [("user", "Which substations are in the bidding zone NO5?")]})
        >>> state["messages"][-1].text
        'NO5 has 4 substations: AURLAND, BERGEN, MODALEN, SOGNDAL.'
    """
    for package in ("pyoxigraph", "langchain"):
        if find_spec(package) is None:
            raise MissingExtraError("The demo", "demo", package)
    from langchain.agents import create_agent

    from graphrag_eval_lc.demo.graph import DocumentIndex, KnowledgeGraph
    from graphrag_eval_lc.demo.time_series import TimeSeriesIndex
    from graphrag_eval_lc.demo.tools import create_tools

    tools = create_tools(KnowledgeGraph(GRAPH_PATH), DocumentIndex(DOCUMENTS_PATH), TimeSeriesIndex(TIME_SERIES_PATH))
    agent = create_agent(_chat_model(model), tools, system_prompt=SYSTEM_PROMPT, name="demo_agent")
    return agent.with_config(recursion_limit=RECURSION_LIMIT)


def _chat_model(model: str | BaseChatModel | None) -> BaseChatModel:
    if model is None:
        return RuleBasedPlannerChatModel()
    if isinstance(model, BaseChatModel):
        return model
    from langchain.chat_models import init_chat_model

    hint = "Give it as provider:name, such as openai:gpt-4o-mini, and set the provider's key."
    if ":" not in model:
        raise AgentError(f"the model {model!r} has no provider", hint=hint)
    try:
        return init_chat_model(model)
    except ImportError as error:
        raise AgentError(
            f"the model {model!r} needs a package that is not installed: {error}",
            hint="Install the integration package of its provider, such as langchain-openai.",
        ) from error
    except Exception as error:  # each provider has its own: a missing key, an unknown name
        first_line = str(error).partition("\n")[0]
        raise AgentError(f"the model {model!r} cannot be made: {first_line}", hint=hint) from error


CHARACTERS_PER_TOKEN = 4


class RuleBasedPlannerChatModel(BaseChatModel):
    """Answers the demo's questions by the plans in ``INTENTS``; it is not a language model.

    It keeps no state: each call runs the plan again with the tool messages so far, and returns the next tool calls or
    the answer. For the questions in ``plans.SLIPS`` it makes mistakes as language models do. Its token counts are
    estimated from the length of the text, as ``response_metadata`` says.
    """

    model_name: str = "rule-based-planner"

    @property
    def _llm_type(self) -> str:
        return "rule-based-planner"

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        params = super()._get_ls_params(stop=stop, **kwargs)
        params["ls_provider"] = "rule-based-planner"
        params["ls_model_name"] = self.model_name
        return params

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind the tools' descriptions, as providers' models do."""
        return self.bind(tools=[convert_to_openai_tool(each) for each in tools], **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        outcome = _next_of_plan(messages)
        text = outcome if isinstance(outcome, str) else ""
        calls = [] if isinstance(outcome, str) else outcome
        first_number = 1 + sum(len(message.tool_calls) for message in messages if isinstance(message, AIMessage))
        message = AIMessage(
            content=text,
            tool_calls=[
                tool_call(name=call.tool, args=call.args, id=f"call_{number}")
                for number, call in enumerate(calls, first_number)
            ],
            usage_metadata=_estimated_usage(messages, kwargs.get("tools", []), text, calls),
            response_metadata={
                "model_name": self.model_name,
                "token_counts": f"estimated, {CHARACTERS_PER_TOKEN} characters a token",
            },
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._generate(messages, stop, **kwargs)


def _next_of_plan(messages: list[BaseMessage]) -> list[Call] | str:
    """Return the next tool calls for the last question, or its answer."""
    asked_at = max((at for at, each in enumerate(messages) if isinstance(each, HumanMessage)), default=None)
    if asked_at is None:
        return "Please ask a question."
    since = (each for each in messages[asked_at + 1 :] if isinstance(each, ToolMessage))
    seen = (Observation(each.text, each.status == "success") for each in since)
    plan = plan_for(messages[asked_at].text)
    try:
        calls = next(plan)
        while observations := [each for call, each in zip(calls, seen, strict=False)]:
            calls = plan.send(observations)
    except StopIteration as end:
        return str(end.value)
    return calls


def _estimated_usage(
    messages: list[BaseMessage], tools: list[dict[str, Any]], text: str, calls: list[Call]
) -> UsageMetadata:
    read = sum(len(message.text) for message in messages) + (len(json.dumps(tools)) if tools else 0)
    written = len(text) + sum(len(call.tool) + len(json.dumps(call.args)) for call in calls)
    input_tokens, output_tokens = (-(-length // CHARACTERS_PER_TOKEN) for length in (read, written))
    return UsageMetadata(
        input_tokens=input_tokens, output_tokens=output_tokens, total_tokens=input_tokens + output_tokens
    )


class Intent(NamedTuple):
    """A kind of question: its wording and its plan."""

    wording: re.Pattern[str]
    plan: Callable[[re.Match[str]], Plan]


_ZONE_NAME = r"[A-Z]{2}\d?(?:-[A-Z]{2})?"
_AGGREGATE = r"(?P<aggregate>average|highest|lowest)"
_STEPS = r"steps of (?P<step>\d+) (?P<step_unit>minute|hour|day)"

INTENTS = [
    Intent(
        re.compile(
            rf"{_AGGREGATE} production (?:of|at) (?P<name>[A-Z]+(?: [A-Z0-9]+)*)\b"
            rf".*\blast (?P<count>\d+) (?P<period>minute|hour|day)s?\b.*\b{_STEPS}"
        ),
        plans.production,
    ),
    Intent(
        re.compile(
            rf"{_AGGREGATE} flow on (?P<name>DC [A-Z]+-[A-Z]+ \d)\b"
            rf".*?\b(?P<day>yesterday|the day before yesterday)\b.*\b{_STEPS}"
        ),
        plans.flow,
    ),
    Intent(re.compile(r"voltages?\b.*\bAC lines (?:of|from|at) (?P<name>\w+)"), plans.line_voltages),
    Intent(re.compile(r"search for (?P<name>\w+)"), plans.search_by_name),
    Intent(re.compile(r"transformers\b.*\b(?:substation|in|of|at) (?P<name>\w+)"), plans.transformers),
    Intent(
        re.compile(rf"DC link\b.*\b(?P<zone>{_ZONE_NAME}) (?:and|to|with) (?P<other_zone>{_ZONE_NAME})"), plans.dc_link
    ),
    Intent(
        re.compile(
            r"(?P<count>\d+) longest (?:(?P<kilovolts>\d+) kV )?(?P<current>AC|DC) lines"
            rf"(?:.*\b(?P<zone>{_ZONE_NAME})\b)?"
        ),
        plans.longest_lines,
    ),
    Intent(re.compile(r"(?P<current>AC|DC) lines?\b.*\b(?:from|to|with|of) (?P<name>\w+)"), plans.neighbours),
    Intent(
        re.compile(rf"(?P<kind>total|hydro|wind)\b.*\bcapacity\b.*\b(?P<zone>{_ZONE_NAME})\b", re.IGNORECASE),
        plans.capacity,
    ),
    Intent(re.compile(rf"substations\b.*\b(?P<zone>{_ZONE_NAME})\b"), plans.substations),
    Intent(re.compile(r"notes say (?:about|on) (?P<topic>[^?]+)"), plans.documents),
]


def plan_for(question: str) -> Plan:
    """Return the plan for a question; for an unknown kind of question, a plan that answers with the known kinds."""
    for intent in INTENTS:
        if match := intent.wording.search(question):
            return intent.plan(match)
    return _unknown()


def _unknown() -> Plan:
    yield from ()
    return (
        "I am a planner with fixed rules and have none for this question. Ask for the transformers in a substation, "
        "the substations in a bidding zone, the AC or DC lines from a substation, the voltages of its AC lines, the "
        "total, hydro or wind capacity in a zone, a DC link between two zones, the 5 longest AC lines, the average "
        "production of a plant over the last 6 hours in steps of 1 hour, the average flow on a DC line yesterday in "
        "steps of 6 hours, what the search for a name finds, or what the notes say about something."
    )
