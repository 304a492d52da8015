"""The demo's graph, tools and agent, made once for all tests: they keep no state."""

import pytest

from graphrag_eval_lc.demo import DOCUMENTS_PATH, GRAPH_PATH
from graphrag_eval_lc.demo.agent import create_demo_agent
from graphrag_eval_lc.demo.documents import DocumentIndex
from graphrag_eval_lc.demo.graph import KnowledgeGraph
from graphrag_eval_lc.demo.tools import create_tools


@pytest.fixture(scope="session")
def graph():
    return KnowledgeGraph(GRAPH_PATH)


@pytest.fixture(scope="session")
def tools(graph):
    return {tool.name: tool for tool in create_tools(graph, DocumentIndex(DOCUMENTS_PATH))}


@pytest.fixture(scope="session")
def agent():
    return create_demo_agent()
