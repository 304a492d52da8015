"""Shared fixtures: hypothesis profiles, the conformance folder, and speed-ups for the whole suite."""

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

# No deadline, since examples are slow on a busy machine. `make test` tries few examples; --hypothesis-profile=thorough
# uses hypothesis' default. CI derandomizes them, so that a failure is due to the change and not to chance.
SAME_EXAMPLES = bool(os.environ.get("GRAPHRAG_EVAL_LC_SAME_EXAMPLES"))
settings.register_profile("daily", deadline=None, max_examples=25, derandomize=SAME_EXAMPLES)
settings.register_profile("thorough", deadline=None)
# For other versions of Python and the dependencies.
settings.register_profile("few", deadline=None, max_examples=5, derandomize=SAME_EXAMPLES)
settings.load_profile("daily")

# Background processes inherit an ignored Ctrl-C, and so would every process that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Keep test runs out of the job summary of the CI job that runs them.
os.environ.pop("GITHUB_STEP_SUMMARY", None)

FULL_MODULE = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.full\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip files without a test in the selected group: importing all of them takes longer than running many."""
    group = config.getoption("markexpr")
    if group not in ("full", "not full") or not collection_path.match("test_*.py"):
        return None
    text = collection_path.read_text(encoding="utf-8")
    has_none = "mark.full" not in text if group == "full" else FULL_MODULE.search(text)
    return True if has_none else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the Ray tests first and on one worker: they exclude each other, so a second worker would only wait."""
    items.sort(key=lambda item: "test_ray_" not in item.nodeid)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Shorten long values in test ids."""
    text = val.decode("latin-1") if isinstance(val, bytes) else str(val) if isinstance(val, str | int) else ""
    return f"{text[:60]}..." if len(text) > 63 else None


@pytest.fixture(autouse=True, scope="session")
def installed_plugins() -> None:
    """Load plugins once: reading the metadata of all installed packages takes longer than a test."""
    load_installed_plugins()


@pytest.fixture(autouse=True, scope="session")
def one_certificate(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let clients load one certificate, not 140: that takes longer than most tests, and none of these use TLS."""
    if request.config.getoption("markexpr") != "not full":
        return
    end = "-----END CERTIFICATE-----\n"
    first = Path(certifi.where()).read_text(encoding="utf-8").partition(end)[0]
    path = tmp_path_factory.mktemp("certificates") / "one.pem"
    path.write_text(first[first.index("-----BEGIN") :] + end, encoding="utf-8")
    os.environ["SSL_CERT_FILE"] = str(path)


def pytest_collection_finish() -> None:
    """Do not write bytecode: tests rewrite agents within a second, too fast for Python to notice that it is stale."""
    gc.freeze()  # skip the objects of imports and collection in each garbage collection
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
    """Remove everything that a test registered."""
    with registered_only_here():
        yield
