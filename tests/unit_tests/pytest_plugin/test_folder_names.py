"""Folder names for several runs."""

from hypothesis import example, given
from hypothesis import strategies as st

from graphrag_eval_lc.benchmark.pytest_runs import folder_names

TEXTS = st.text(max_size=12)
RUNS = st.lists(st.tuples(TEXTS, TEXTS.map(lambda text: f"tests/{text}.py::test_it")), min_size=1, max_size=8)


def test_name_is_the_tests_and_longer_only_if_ambiguous() -> None:
    runs = [("agent", "test_a.py::test_it"), ("test_x", "a/test_b.py::TestX::test_x"), ("test_x", "test_b.py::test_x")]
    assert folder_names(runs) == ["agent", "test_b.TestX.test_x", "test_b.test_x"]
    alike = [("test_x", "a/test_b.py::test_x"), ("test_x", "c/test_b.py::test_x")]
    assert folder_names(alike) == ["test_b.test_x", "test_b.test_x_2"]


@example([("a", "x.py::t"), ("a", "x.py::t"), ("x.a_2", "x.py::t")])
@example([("a" * 300, "x.py::t"), ("a" * 301, "x.py::t")])
@given(RUNS)
def test_every_run_has_its_own_direct_subfolder(runs: list[tuple[str, str]]) -> None:
    names = folder_names(runs)
    assert len({name.casefold() for name in names}) == len(runs)
    assert all(name and not name.startswith(".") and "/" not in name and "\\" not in name for name in names)
