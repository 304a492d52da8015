import subprocess
import sys

import pytest

import graphrag_eval_lc.judges as judges


@pytest.mark.parametrize("name", judges.__all__)
def test_each_exported_name_exists(name: str) -> None:
    assert getattr(judges, name).__name__ == name


def test_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        judges.Nothing  # noqa: B018


@pytest.mark.full
def test_importing_the_metrics_imports_no_model_library() -> None:
    heavy = {"openai", "ragas", "numpy", "langchain", "langchain_openai", "genai_prices"}
    code = f"import sys\nfrom graphrag_eval_lc.judges import *\nprint(sorted({heavy!r} & sys.modules.keys()))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
