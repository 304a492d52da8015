from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.scripted_judges import ScriptedJudge

from graphrag_eval_lc.errors import OptionError, ResponsesError, RunFolderError
from graphrag_eval_lc.evaluation.judged_tables import AnswerJudge, JudgedTable, judge_table
from graphrag_eval_lc.judges import AnswerCorrectness
from graphrag_eval_lc.judges.answer_tables import JUDGED_COLUMNS, read_table
from graphrag_eval_lc.judges.model_interface import UnusableAnswerError
from graphrag_eval_lc.prices import Pricing

ROWS = [[f"q{number}", f"r{number}", f"a{number}"] for number in range(3)]
Write = Callable[..., Path]


def found(reason: str) -> dict[str, Any]:
    return {"reason": reason, "true_positives": ["t"], "false_positives": [], "false_negatives": ["n"]}


class InterruptingProgress:
    """Interrupts the process when the first answer has been judged."""

    def started(self, total: int, done: int) -> None: ...

    def judged(self, error: str) -> None:
        raise KeyboardInterrupt


def judge_of(*answers: dict[str, Any] | Exception) -> tuple[AnswerJudge, ScriptedJudge]:
    """Return a judge that sends one request at a time, and its model."""
    model = ScriptedJudge(answers)
    return AnswerJudge(AnswerCorrectness(model), model.name, 1, Pricing()), model


def rows_of(path: Path) -> list[dict[str, str]]:
    table = read_table(path)
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


@pytest.fixture
def judged(tmp_path: Path, progress: Any) -> Callable[..., JudgedTable]:
    """Return a function that judges a file into out.tsv."""

    def judged(source: Path, judge: AnswerJudge, **options: Any) -> JudgedTable:
        listener = options.pop("progress", progress)
        return judge_table(read_table(source), judge, listener, **{"output": tmp_path / "out.tsv", **options})

    return judged


def test_input_columns_come_before_the_judges_columns(
    write_table: Write, tmp_path: Path, judged: Callable[..., JudgedTable], progress: Any
) -> None:
    header = ["Id", "Actual answer", "Question", "Note", "Reference answer"]
    source = write_table([["7", "a\tb", 'say "q"', "", "r\r\nr"]], header=header)
    done = judged(source, judge_of(found("One is missing."))[0])
    table = read_table(tmp_path / "out.tsv")
    assert table.columns == (*header, *JUDGED_COLUMNS)
    assert table.rows == [
        ["7", "a\tb", 'say "q"', "", "r\r\nr", "2", "1", "1", "One is missing.", "", '["t"]', "[]", '["n"]']
    ]
    assert (done.asked, done.cost) == (1, 0.01)
    assert progress.noted == [(1, 0), ""]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.tsv", "out.tsv"]


def test_judge_columns_in_the_input_are_replaced(
    write_table: Write, tmp_path: Path, judged: Callable[..., JudgedTable]
) -> None:
    header = ["Reasoning", "Question", "Reference answer", "Actual answer", "Label"]
    judged(write_table([["old", "q", "r", "a", "1"]], header=header), judge_of(found("new"))[0])
    (row,) = rows_of(tmp_path / "out.tsv")
    assert (row["Reasoning"], row["Label"]) == ("new", "1")
    assert list(row) == ["Question", "Reference answer", "Actual answer", "Label", *JUDGED_COLUMNS]


def test_finished_rows_are_kept_and_failed_rows_retried(
    write_table: Write, tmp_path: Path, judged: Callable[..., JudgedTable], progress: Any
) -> None:
    source = write_table(ROWS)
    done = judged(source, judge_of(found("first"), UnusableAnswerError("refused", cost=0.5), found("third"))[0])
    assert [row["Error"] for row in rows_of(tmp_path / "out.tsv")] == ["", "refused.", ""]
    assert done.cost == pytest.approx(0.52)
    judge, model = judge_of(found("second"))
    progress.noted.clear()
    assert judged(source, judge).asked == len(model.asked) == 1
    assert [row["Reasoning"] for row in rows_of(tmp_path / "out.tsv")] == ["first", "second", "third"]
    assert progress.noted == [(3, 2), ""]
    assert judged(source, judge_of()[0]).asked == 0


def test_rows_may_be_added_moved_and_changed_between_runs(
    write_table: Write, tmp_path: Path, judged: Callable[..., JudgedTable]
) -> None:
    judged(write_table(ROWS), judge_of(found("0"), found("1"), found("2"))[0])
    rows = [[*ROWS[2], "a"], ["q1", "r1", "changed", "b"], [*ROWS[0], "c"], ["q3", "r3", "a3", "d"]]
    source = write_table(rows, header=["Question", "Reference answer", "Actual answer", "Id"])
    done = judged(source, judge_of(found("changed"), found("3"))[0])
    assert [row["Reasoning"] for row in rows_of(tmp_path / "out.tsv")] == ["2", "changed", "0", "3"]
    assert (done.asked, done.outdated) == (2, 1)


def test_same_answer_is_judged_once(write_table: Write, tmp_path: Path, judged: Callable[..., JudgedTable]) -> None:
    judge, model = judge_of(found("once"))
    judged(write_table([ROWS[0], ROWS[0]]), judge)
    assert len(model.asked) == 1
    assert [row["Reasoning"] for row in rows_of(tmp_path / "out.tsv")] == ["once", "once"]


def test_rows_judged_before_a_crash_are_not_judged_again(
    write_table: Write, tmp_path: Path, judged: Callable[..., JudgedTable]
) -> None:
    source = write_table(ROWS)
    with pytest.raises(KeyboardInterrupt):
        judged(source, judge_of(found("0"))[0], progress=InterruptingProgress())
    partial = tmp_path / "out.tsv.partial"
    assert len(partial.read_text().splitlines()) == 1
    assert not (tmp_path / "out.tsv").exists()
    partial.write_text(partial.read_text() + '{"digest": "torn')
    assert judged(source, judge_of(found("1"), found("2"))[0]).asked == 2
    assert [row["Reasoning"] for row in rows_of(tmp_path / "out.tsv")] == ["0", "1", "2"]
    assert not partial.exists()


def test_overwriting_also_discards_an_interrupted_output(
    write_table: Write, tmp_path: Path, judged: Callable[..., JudgedTable]
) -> None:
    source = write_table(ROWS[:2])
    judged(source, judge_of(found("old"), found("old"))[0])
    with pytest.raises(KeyboardInterrupt):
        judged(source, judge_of(found("new"))[0], progress=InterruptingProgress(), overwrite=True)
    assert not (tmp_path / "out.tsv").exists()
    assert judged(source, judge_of(found("newer"))[0]).asked == 1
    assert [row["Reasoning"] for row in rows_of(tmp_path / "out.tsv")] == ["new", "newer"]


def test_blank_text_is_an_error_of_its_row_only(
    write_table: Write, tmp_path: Path, judged: Callable[..., JudgedTable]
) -> None:
    rows = [["q", "", "a"], ["q", "r", ""], ["q", "r", "a"]]
    done = judged(write_table(rows), judge_of(found("judged"))[0])
    blank_reference, blank_answer, judged_row = rows_of(tmp_path / "out.tsv")
    assert blank_reference["Error"]
    assert (blank_answer["#Reference"], blank_answer["#PTarget"], blank_answer["Error"]) == ("1", "0", "")
    assert judged_row["Reasoning"] == "judged"
    assert done.cost == 0.01


def test_only_chosen_rows_are_judged_and_all_are_written(
    write_table: Write, tmp_path: Path, judged: Callable[..., JudgedTable]
) -> None:
    verdicts = {"Verdict": lambda cells: "yes" if cells["#Matching"] else "–"}
    judged(write_table(ROWS), judge_of(found("1"))[0], chosen=[False, True, False], more_columns=verdicts)
    rows = rows_of(tmp_path / "out.tsv")
    assert [(row["Question"], row["Reasoning"], row["Verdict"]) for row in rows] == [
        ("q0", "", "–"),
        ("q1", "1", "yes"),
        ("q2", "", "–"),
    ]


def test_without_an_output_nothing_is_written(
    write_table: Write, tmp_path: Path, judged: Callable[..., JudgedTable]
) -> None:
    done = judged(write_table(ROWS[:1]), judge_of(found("0"))[0], output=None)
    assert done.cells[0]["Reasoning"] == "0"
    assert [path.name for path in tmp_path.iterdir()] == ["in.tsv"]


@pytest.mark.parametrize("content", ["Question\tx\n1\t2\n", "some notes\n", "a\tb\n1\n"])
def test_unrelated_file_is_not_replaced(
    write_table: Write, tmp_path: Path, judged: Callable[..., JudgedTable], content: str
) -> None:
    (tmp_path / "out.tsv").write_text(content)
    with pytest.raises(
        RunFolderError, match=r"out\.tsv: the file exists and is not a table of judged answers .*overwrite"
    ):
        judged(write_table(ROWS), judge_of()[0])
    assert (tmp_path / "out.tsv").read_text() == content


def test_output_for_another_input_is_not_replaced(
    write_table: Write, tmp_path: Path, judged: Callable[..., JudgedTable]
) -> None:
    judged(write_table(ROWS[:1]), judge_of(found("0"))[0])
    before = (tmp_path / "out.tsv").read_bytes()
    with pytest.raises(RunFolderError, match=r"out\.tsv: .*none of which is in the input\. Give another file, or pass"):
        judged(write_table(ROWS[1:]), judge_of()[0])
    assert (tmp_path / "out.tsv").read_bytes() == before


def test_output_must_not_be_the_input(write_table: Write, judged: Callable[..., JudgedTable]) -> None:
    source = write_table(ROWS)
    before = source.read_bytes()
    with pytest.raises(OptionError, match="is the input itself"):
        judged(source, judge_of()[0], output=source.parent / "." / "in.tsv", overwrite=True)
    assert source.read_bytes() == before


def test_folder_that_cannot_be_created_is_an_error(write_table: Write, judged: Callable[..., JudgedTable]) -> None:
    source = write_table(ROWS)
    with pytest.raises(RunFolderError, match=r"in\.tsv"):
        judged(source, judge_of()[0], output=source / "out.tsv")


def test_missing_column_is_an_error_before_the_first_request(
    write_table: Write, tmp_path: Path, judged: Callable[..., JudgedTable]
) -> None:
    judge, model = judge_of()
    with pytest.raises(ResponsesError, match=r"no column Actual answer\. Rename Answer"):
        judged(write_table([], header=["Question", "Reference answer", "Answer"]), judge)
    assert not model.asked
