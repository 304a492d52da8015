"""The pytest plugin: makes a test of each question of a dataset, and at the end a run's folder, report and gates.

pytest loads it by an entry point if this package is installed, so it imports nothing heavy until it is used.
"""

import pickle
from collections.abc import Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any

import pytest

from graphrag_eval_lc.pytest_plugin.settings import WORKER_KEY, add_options, keep_settings, settings_of

if TYPE_CHECKING:
    from graphrag_eval_lc.pytest_plugin.asking import Asker, AskResult

_MARKER = "graphrag_dataset"
_QUESTION = "graphrag_question"
_MARKERS = (
    f"{_MARKER}(dataset, *, config=None, templates=(), questions=(), limit=None, sample=None, seed=None, name=None, "
    "evaluators=(), llm=None, embeddings=None): run the test once for each question of a reference dataset, a path "
    "(relative to the test file, else to the root folder) or loaded templates; name is that of the run's folder below "
    "--graphrag-output. The fixtures graphrag_question and graphrag_ask return the question and ask an agent.",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and their ini values."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker, read the options, and prepare to record responses if an option asks for a run or gates."""
    for line in _MARKERS:
        config.addinivalue_line("markers", line)
    settings = keep_settings(config)
    if settings.parts is not None:  # a pytest-xdist worker
        from graphrag_eval_lc.pytest_plugin.session import keep_part

        keep_part(config, settings.parts)
    elif settings.is_given and not hasattr(config, "workerinput") and _runs_tests(config):
        from graphrag_eval_lc.pytest_plugin.session import SessionRuns

        config.pluginmanager.register(SessionRuns(config, settings), "graphrag_eval_lc-session")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Pass the options to a pytest-xdist worker, whose current folder may differ."""
    node.workerinput[WORKER_KEY] = pickle.dumps(settings_of(node.config))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """If a test is marked with a dataset, make a test of each question."""
    marker = metafunc.definition.get_closest_marker(_MARKER)
    if marker is not None or _QUESTION in metafunc.fixturenames:
        from graphrag_eval_lc.pytest_plugin.datasets import parametrize

        parametrize(metafunc, marker)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the scores and their reasons to the output of a failed test that asked an agent."""
    report = yield
    callspec = getattr(item, "callspec", None)
    if report.failed and report.when == "call" and callspec is not None and _QUESTION in callspec.params:
        from graphrag_eval_lc.pytest_plugin.asking import add_failure_text

        add_failure_text(item, report)
    return report


@pytest.fixture
def graphrag_question(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The question of this test from @pytest.mark.graphrag_dataset: a dict, with the template_id added."""
    from graphrag_eval_lc.pytest_plugin.datasets import asked_question

    return asked_question(request).as_dict()


@pytest.fixture
def graphrag_ask(request: pytest.FixtureRequest, graphrag_question: dict[str, Any]) -> "Asker":
    """Asks an agent the question of this test and scores the answer: call it with the agent; it returns a dict.

    The agent is a graph or another Runnable, a function, or the spec of one. Keywords such as timeout=60 are those of
    run_benchmark. If the agent fails, the result has its error, and its scores are 0.
    """
    from graphrag_eval_lc.pytest_plugin.asking import asker_of

    return asker_of(request)


@pytest.fixture
def graphrag_aask(graphrag_ask: "Asker") -> "Callable[..., Awaitable[AskResult]]":
    """The same as graphrag_ask, but awaited in async tests."""
    return graphrag_ask.aask


def _runs_tests(config: pytest.Config) -> bool:
    """Return whether pytest runs tests, as opposed to only collecting them or showing something."""
    others = ("collectonly", "setuponly", "setupplan", "showfixtures", "show_fixtures_per_test", "markers")
    return not any(config.getoption(name, False) for name in others)
