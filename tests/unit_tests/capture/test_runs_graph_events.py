import subprocess
import sys

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langgraph.callbacks import GraphCallbackHandler
from langgraph.errors import GraphInterrupt, ParentCommand
from langgraph.types import Command

from graphrag_eval_lc.capture.runs import is_handoff, is_interrupt, with_graph_events


def test_handlers_hear_graph_events(handler) -> None:
    assert isinstance(handler, GraphCallbackHandler)


def test_the_subclass_is_made_once() -> None:
    class Handler(BaseCallbackHandler):
        pass

    made = with_graph_events(Handler)
    assert issubclass(made, Handler)
    assert with_graph_events(Handler) is made
    assert with_graph_events(made) is made


def test_interrupts_and_handoffs_are_known_by_their_class() -> None:
    class GraphInterrupt2(GraphInterrupt):
        pass

    assert is_interrupt(GraphInterrupt2())
    assert is_handoff(ParentCommand(Command()))
    assert not is_interrupt(ParentCommand(Command()))
    assert not is_handoff(type("ParentCommand", (Exception,), {})())


@pytest.mark.full
def test_the_import_leaves_langgraph_alone() -> None:
    program = "import sys, graphrag_eval_lc.capture; print('langgraph' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
