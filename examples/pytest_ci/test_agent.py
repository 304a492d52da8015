"""Each question of the dataset as a test."""

import pytest
from agent import agent


@pytest.mark.graphrag_dataset("questions.yaml", config="graphrag_eval.yaml")
def test_agent(graphrag_question, graphrag_ask):
    result = graphrag_ask(agent)
    assert result["steps_score"] == 1
