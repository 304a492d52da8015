"""What all tests share: the folder of conformance data, where there is one."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def conformance_dir() -> Path:
    folder = os.environ.get("GRAPHRAG_EVAL_LC_CONFORMANCE_DIR")
    if not folder:
        pytest.skip("GRAPHRAG_EVAL_LC_CONFORMANCE_DIR is not set")
    return Path(folder)
