from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.run_folder import ResultsFile, iter_results


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.jsonl"


@given(st.permutations(range(6)), st.integers(0, 6), st.text())
def test_results_are_written_in_order_whichever_finished_first(
    tmp_path_factory: pytest.TempPathFactory, positions: list[int], count: int, text: str
) -> None:
    path = tmp_path_factory.mktemp("run") / "results.jsonl"
    with ResultsFile(path) as results:
        for position in positions[:count]:
            results.add(position, {"position": position, "text": text * position})
        results.finish()
    assert list(iter_results(path)) == [
        {"position": position, "text": text * position} for position in sorted(positions[:count])
    ]
    assert [file.name for file in path.parent.iterdir()] == ["results.jsonl"]


def test_second_result_of_a_position_replaces_the_first(path: Path) -> None:
    with ResultsFile(path) as results:
        results.add(0, {"score": 0.5})
        results.add(0, {"score": 1.0})
        results.finish()
    assert path.read_text() == '{"score": 1.0}\n'


def test_result_is_in_the_partial_file_as_soon_as_it_is_added(path: Path, tmp_path: Path) -> None:
    with ResultsFile(path) as results:
        results.add(3, {"question_id": "q3"})
        assert (tmp_path / "results.jsonl.partial").read_text() == '{"question_id": "q3"}\n'


def test_unfinished_results_do_not_replace_earlier_ones(path: Path, tmp_path: Path) -> None:
    path.write_text('{"score": 1.0}\n')
    with ResultsFile(path) as results:
        results.add(0, {"score": 0.0})
    assert list(iter_results(path)) == [{"score": 1.0}]
    with ResultsFile(path) as results:
        results.add(0, {"score": 0.5})
        results.finish()
    assert list(iter_results(path)) == [{"score": 0.5}]
    assert not (tmp_path / "results.jsonl.partial").exists()


def test_partial_file_truncated_by_others_is_an_error(path: Path, tmp_path: Path) -> None:
    with ResultsFile(path) as results:
        results.add(0, {"score": 0.0})
        (tmp_path / "results.jsonl.partial").write_text("")
        with pytest.raises(RunFolderError, match="removed while the run was writing"):
            results.finish()
    assert not path.exists()


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        *((line, ": this line is not a result") for line in ("[1]", '{"a": ', "\ufeff?")),
        *(
            (f'{{"actual_steps": {each}}}', ", key actual_steps: a result with steps")
            for each in ('[{"name": [1]}]', 5)
        ),
        *(
            (f'{{"steps_diagnosis": {each}}}', ", key steps_diagnosis: a result with steps of the wrong type")
            for each in ('[[{"score": "x"}]]', "[[{}]]", "[5]")
        ),
    ],
)
def test_invalid_line_is_an_error_with_its_number(path: Path, line: str, complaint: str) -> None:
    path.write_text(f'{{"a": 1}}\n\n{line}\n')
    read: list[Any] = []
    with pytest.raises(RunFolderError, match=rf"results\.jsonl, line 3{complaint}.*\. Score the responses"):
        read.extend(iter_results(path))


def test_missing_file_is_an_error(path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"cannot be read \(No such file or directory\)"):
        list(iter_results(path))
