import doctest
import importlib
import pkgutil

import pytest

import graphrag_eval_lc
from graphrag_eval_lc.registry import registered_only_here

pytestmark = pytest.mark.full
ROOMS = [module.name for module in pkgutil.iter_modules(graphrag_eval_lc.__path__, "graphrag_eval_lc.")]


@pytest.mark.parametrize("room", ROOMS)
def test_docstring_examples_return_the_shown_results(room: str) -> None:
    module = importlib.import_module(room)
    inner = pkgutil.walk_packages(module.__path__, f"{room}.") if hasattr(module, "__path__") else ()
    for name in (room, *(each.name for each in inner)):
        with registered_only_here():
            assert doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS).failed == 0, name
