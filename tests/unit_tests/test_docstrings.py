import doctest
import importlib
import pkgutil

import pytest

import graphrag_eval_lc

MODULES = [module.name for module in pkgutil.walk_packages(graphrag_eval_lc.__path__, "graphrag_eval_lc.")]


@pytest.mark.full
@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_give_what_they_say(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS).failed == 0
