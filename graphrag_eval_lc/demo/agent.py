"""The demo's LangGraph agent: tools over a graph, documents and time series, and a model of your choice."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.language_models import BaseChatModel

from graphrag_eval_lc.demo import DOCUMENTS_PATH, GRAPH_PATH, TIME_SERIES_PATH
from graphrag_eval_lc.demo.planner import RuleBasedPlannerChatModel
from graphrag_eval_lc.errors import AgentError, MissingExtraError

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

SYSTEM_PROMPT = (Path(__file__).parent / "prompts" / "system.txt").read_text(encoding="utf-8")
RECURSION_LIMIT = 30


def create_demo_agent(model: str | BaseChatModel | None = None) -> "CompiledStateGraph[Any, Any, Any, Any]":
    """Return the agent as a compiled graph that takes and returns ``{"messages": […]}``.

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
    check_demo_extra()
    from langchain.agents import create_agent

    from graphrag_eval_lc.demo.documents import DocumentIndex
    from graphrag_eval_lc.demo.graph import KnowledgeGraph
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


def check_demo_extra() -> None:
    """Raise MissingExtraError if a package of the extra ``demo`` is missing."""
    for package in ("pyoxigraph", "langchain"):
        if find_spec(package) is None:
            raise MissingExtraError("The demo", "demo", package)
