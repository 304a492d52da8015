"""Run an agent of another framework on the station questions, with that framework's instrumentation.

``python frameworks.py FRAMEWORK FILE``: FRAMEWORK is pydantic-ai, openai-agents, smolagents or llama-index; the spans
are written to FILE as OTLP/JSON.
"""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spans import recording, write_otlp
from stations import NO_DATA, PLANS, TOOLS, find_station, power_of, serve


def pydantic_ai(provider: Any) -> Callable[[str], object]:
    """Return a function that asks a pydantic-ai agent whose tool requests a retry instead of failing."""
    from pydantic_ai import Agent, InstrumentationSettings, ModelRetry
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    def check(name: str) -> str:
        """Check whether a station is broken."""
        raise ModelRetry(NO_DATA)

    model = OpenAIChatModel("rules-1", provider=OpenAIProvider(base_url=serve(), api_key="none"))
    agent = Agent(model, tools=[find_station, power_of, check], name="stations", retries=3)
    agent.instrument = InstrumentationSettings(tracer_provider=provider)
    return agent.run_sync


def openai_agents(provider: Any) -> Callable[[str], object]:
    """Return a function that asks an openai-agents agent, instrumented by OpenInference."""
    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
    from openai import AsyncOpenAI
    from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

    OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)
    client = AsyncOpenAI(base_url=serve(), api_key="none")
    model = OpenAIChatCompletionsModel(model="rules-1", openai_client=client)
    agent = Agent(name="stations", model=model, tools=[function_tool(tool) for tool in TOOLS])
    return lambda question: Runner.run_sync(agent, question)


def smolagents(provider: Any) -> Callable[[str], object]:
    """Return a function that asks a smolagents agent, which answers with a tool."""
    from openinference.instrumentation.smolagents import SmolagentsInstrumentor
    from smolagents import OpenAIServerModel, ToolCallingAgent, tool

    SmolagentsInstrumentor().instrument(tracer_provider=provider)
    model = OpenAIServerModel("rules-1", api_base=serve(), api_key="none")
    agent = ToolCallingAgent([tool(each) for each in TOOLS], model, verbosity_level=0, max_steps=3)
    return agent.run


def llama_index(provider: Any) -> Callable[[str], object]:
    """Return a function that asks a LlamaIndex agent with our model: LlamaIndex's client needs an old openai."""
    from llama_index.core.agent.workflow import FunctionAgent
    from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
    from rules_llm import RulesLLM

    LlamaIndexInstrumentor().instrument(tracer_provider=provider)
    agent = FunctionAgent(tools=list(TOOLS), llm=RulesLLM(), name="stations")

    async def ask(question: str) -> object:
        return await agent.run(question)

    return lambda question: asyncio.run(ask(question))


FRAMEWORKS = {
    "pydantic-ai": pydantic_ai,
    "openai-agents": openai_agents,
    "smolagents": smolagents,
    "llama-index": llama_index,
}


def main(framework: str, path: Path) -> None:
    """Run all questions and write the spans."""
    provider, exporter = recording()
    ask = FRAMEWORKS[framework](provider)
    for question in PLANS:
        ask(question)
    write_otlp(exporter, path)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
