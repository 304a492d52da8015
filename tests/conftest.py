"""What all tests share: the folder of conformance data, where there is one, and how properties are tried."""

import gc
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import certifi
import pytest
from hypothesis import settings

from graphrag_eval_lc.registry import registered_only_here
from graphrag_eval_lc.registry.plugins import load_installed_plugins

# On a busy machine an example may take longer than hypothesis allows by default.
# `make test` tries fewer; --hypothesis-profile=thorough tries as many as hypothesis does by default. A check of a
# change tries the same ones each time, so that it says something of the change and nothing of chance.
SAME_EXAMPLES = bool(os.environ.get("GRAPHRAG_EVAL_LC_SAME_EXAMPLES"))
settings.register_profile("daily", deadline=None, max_examples=25, derandomize=SAME_EXAMPLES)
settings.register_profile("thorough", deadline=None)
# For other versions of Python and of the dependencies.
settings.register_profile("few", deadline=None, max_examples=5, derandomize=SAME_EXAMPLES)
settings.load_profile("daily")

# Programs that are started in the background ignore Ctrl-C, and so would those that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# The runs of tests are not to be told in the summary of the job that tests them.
os.environ.pop("GITHUB_STEP_SUMMARY", None)

ALL_IS_FULL = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.full\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file of whose tests the group that is asked for has none: to import all takes longer than many run."""
    group = config.getoption("markexpr")
    if group not in ("full", "not full") or not collection_path.match("test_*.py"):
        return None
    text = collection_path.read_text(encoding="utf-8")
    has_none = "mark.full" not in text if group == "full" else ALL_IS_FULL.search(text)
    return True if has_none else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let one process begin with all tests of Ray: they exclude each other, and two processes would wait in turn."""
    items.sort(key=lambda item: "test_ray_" not in item.nodeid)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Shorten what long values make of the names of tests."""
    text = val.decode("latin-1") if isinstance(val, bytes) else str(val) if isinstance(val, str | int) else ""
    return f"{text[:60]}..." if len(text) > 63 else None


@pytest.fixture(autouse=True, scope="session")
def installed_plugins() -> None:
    """Look for the plugins of installed packages once: it reads the metadata of all, which takes longer than a test."""
    load_installed_plugins()


@pytest.fixture(autouse=True, scope="session")
def one_certificate(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let clients load one certificate, not 140, which takes longer than most tests: none of this group uses TLS."""
    if request.config.getoption("markexpr") != "not full":
        return
    end = "-----END CERTIFICATE-----\n"
    first = Path(certifi.where()).read_text(encoding="utf-8").partition(end)[0]
    path = tmp_path_factory.mktemp("certificates") / "one.pem"
    path.write_text(first[first.index("-----BEGIN") :] + end, encoding="utf-8")
    os.environ["SSL_CERT_FILE"] = str(path)


def pytest_collection_finish() -> None:
    """Keep the bytecode of libraries alone: tests replace agents within the second by which it is told to be old."""
    gc.freeze()  # what is imported and collected stays, and looking through it again and again takes long
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


@pytest.fixture(scope="session")
def conformance_dir() -> Path:
    folder = os.environ.get("GRAPHRAG_EVAL_LC_CONFORMANCE_DIR")
    if not folder:
        pytest.skip("GRAPHRAG_EVAL_LC_CONFORMANCE_DIR is not set")
    return Path(folder)


@pytest.fixture(autouse=True)
def own_registries() -> Iterator[None]:
    """Forget what a test registers, in whatever way."""
    with registered_only_here():
        yield
