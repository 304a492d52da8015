"""A notebook's kernel has a running event loop; benchmarks, judges and the agent itself use it in turn."""

from typing import Any

import nbclient
import nbformat
import pytest
from support.openai_stub import OpenAIStub

SETUP = """
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from graphrag_eval_lc import arun_benchmark, run_benchmark
from graphrag_eval_lc.judges import ContextPrecision

def model():
    return ChatOpenAI(model="gpt-4o-mini", base_url=BASE_URL, api_key="key", max_retries=0)

agent = create_agent(model(), [])
dataset = [{"template_id": "t", "questions": [{"id": f"q{n}", "question_text": "?"} for n in range(4)]}]
paid = 0

def count(run):
    global paid
    assert [response.get("error") for response in run.responses] == [None] * 4
    paid += sum(len(response["llm_calls"]) for response in run.responses)
"""
CELLS = [
    "count(run_benchmark(agent, dataset))",
    "await agent.ainvoke({'messages': [('user', '?')]}); paid += 1",
    "count(run_benchmark(create_agent(model(), []), dataset))",
    "count(await arun_benchmark(agent, dataset))",
    "ContextPrecision(model()).score(user_input='?', reference='!', retrieved_contexts=list('abc')); paid += 3",
]


@pytest.mark.full
def test_requests_of_five_notebook_rounds_match_the_reported_costs() -> None:
    with OpenAIStub() as stub:
        sources = [f"BASE_URL = {stub.base_url!r}", SETUP, *CELLS * 5, "print(paid)"]
        notebook: Any = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
        nbclient.NotebookClient(notebook, timeout=120).execute()
        assert int(notebook.cells[-1].outputs[-1]["text"]) == len(stub.requests) == 5 * (4 + 1 + 4 + 4 + 3)
