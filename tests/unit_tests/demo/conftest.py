"""The demo's graph, tools and agent. They are stateless, so all tests share them."""

import pytest

from graphrag_eval_lc.demo import DOCUMENTS_PATH, GRAPH_PATH, TIME_SERIES_PATH
from graphrag_eval_lc.demo.agent import create_demo_agent
from graphrag_eval_lc.demo.graph import DocumentIndex, KnowledgeGraph
from graphrag_eval_lc.demo.time_series import TimeSeriesIndex
from graphrag_eval_lc.demo.tools import create_tools


@pytest.fixture(scope="session")
def graph():
    return KnowledgeGraph(GRAPH_PATH)


@pytest.fixture(scope="session")
def time_series():
    return TimeSeriesIndex(TIME_SERIES_PATH)


@pytest.fixture(scope="session")
def tools(graph, time_series):
    return {tool.name: tool for tool in create_tools(graph, DocumentIndex(DOCUMENTS_PATH), time_series)}


@pytest.fixture(scope="session")
def agent():
    return create_demo_agent()
