import sys

import pytest

from graphrag_eval_lc.errors import MissingExtraError
from graphrag_eval_lc.stats import bootstrap_interval, permutation_p_value


def test_missing_scipy_is_told_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    for test in (bootstrap_interval, permutation_p_value):
        with pytest.raises(MissingExtraError, match=r"needs the package scipy, .*graphrag-eval-lc\[stats\]"):
            test([[0.0], [1.0], [0.5]])


def test_other_import_errors_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def find_spec(self, name: str, path: object = None, target: object = None) -> None:
            if name == "scipy.stats":
                raise ModuleNotFoundError("No module named 'elsewhere'", name="elsewhere")

    monkeypatch.delitem(sys.modules, "scipy.stats", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    with pytest.raises(ModuleNotFoundError, match="elsewhere"):
        bootstrap_interval([[0.0], [1.0]])
