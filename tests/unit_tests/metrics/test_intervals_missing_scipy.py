import sys

import pytest

from graphrag_eval_lc.errors import MissingExtraError
from graphrag_eval_lc.metrics.difference import permutation_p_value
from graphrag_eval_lc.metrics.intervals import mean_interval


def test_missing_scipy_is_an_error_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("scipy.stats", "scipy.special"):
        monkeypatch.setitem(sys.modules, module, None)
    for test in (lambda: mean_interval([0.0, 1.0], ["a", "b"]), lambda: permutation_p_value([[0.0], [1.0]])):
        with pytest.raises(MissingExtraError, match=r"needs the package scipy, .*graphrag-eval-lc\[stats\]"):
            test()


def test_other_import_errors_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def find_spec(self, name: str, path: object = None, target: object = None) -> None:
            if name == "scipy.stats":
                raise ModuleNotFoundError("No module named 'elsewhere'", name="elsewhere")

    monkeypatch.delitem(sys.modules, "scipy.stats", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    with pytest.raises(ModuleNotFoundError, match="elsewhere"):
        permutation_p_value([[0.0], [1.0]])
