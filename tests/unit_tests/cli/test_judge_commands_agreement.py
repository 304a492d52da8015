"""The command `judge agreement`, over HTTP."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.openai_stub import OpenAIStub, StubRequest, refusal

from graphrag_eval_lc.judges.answer_tables import read_table, table_lines
from graphrag_eval_lc.metrics import krippendorffs_alpha

Command = Callable[..., int]
COMMAND = ("judge", "agreement", "labelled.tsv", "-c", "config.yaml", "-q")
HEADER = ["Question", "Reference answer", "Actual answer", "Label"]


def claims_of(request: StubRequest) -> dict[str, Any]:
    """Return the correct, wrong and missing claims that the answer encodes by letters: `right:ab wrong: missing:c`."""
    right, wrong, missing = re.findall(r"right:(\w*) wrong:(\w*) missing:(\w*)", request.user)[-1]
    return {
        "reason": f"counted {len(right)}",
        "true_positives": [f"right {letter}" for letter in right],
        "false_positives": [f"wrong {letter}" for letter in wrong],
        "false_negatives": [f"missing {letter}" for letter in missing],
    }


def write(rows: list[tuple[str, str]], label: str = "Label") -> None:
    cells = [[f"question {place}", "right, missing", answer, text] for place, (answer, text) in enumerate(rows)]
    Path("labelled.tsv").write_bytes(b"".join(table_lines([[*HEADER[:3], label], *cells])))


@pytest.fixture
def stub(files: Path) -> Iterator[OpenAIStub]:
    with OpenAIStub() as stub:
        stub.answer = claims_of
        (files / "config.yaml").write_text(
            f"llm: {{generation: {{base_url: '{stub.base_url}', api_key: k}}}}\njudges: {{max_concurrency: 1}}\n"
        )
        yield stub


GOOD, HALF, BAD = "right:ab wrong: missing:", "right:a wrong:a missing:a", "right: wrong:a missing:a"
CHATTY = "right:a wrong:abc missing:"


def test_figures_and_disagreements_are_shown(
    stub: OpenAIStub, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    write([(GOOD, "1")] * 20 + [(BAD, "yes")] * 5 + [(GOOD, "0")] * 10 + [(BAD, "no")] * 15 + [(GOOD, "")])
    assert exit_code(*COMMAND) == 0
    text = capsys.readouterr().out
    lines = [" ".join(line.replace("│", " ").split()) for line in text.splitlines()]
    assert "Judge: openai:gpt-4o-mini; an answer is correct if answer_f1 ≥ 0.5." in lines
    assert "Agreement 0.700 0.562 to 0.809 35 of 50" in lines
    assert "Cohen's kappa 0.400 0.130 to 0.634" in lines
    assert "False positive rate (of incorrect answers) 0.400 0.234 to 0.593 10 of 25" in lines
    assert "False negative rate (of correct answers) 0.200 0.089 to 0.391 5 of 25" in lines
    assert "51 rows; left out: 1 without a label" in lines
    assert "Disagreements (15 of 15)" in lines
    assert "question 20 correct incorrect counted 0" in lines
    assert "question 34 incorrect correct counted 2" in lines
    assert "Cost: $0.011 (50 answers judged now)" in lines
    assert len(stub.requests) == 50


def test_requested_number_of_disagreements_is_shown(
    stub: OpenAIStub, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    write([(BAD, "1"), (BAD, "1"), (GOOD, "0")])
    assert exit_code(*COMMAND, "--show", "1") == 0
    text = capsys.readouterr().out
    assert "Disagreements (1 of 3)" in text
    assert "question 1" not in text
    assert exit_code(*COMMAND, "--show", "0") == 0
    assert "Disagreements" not in capsys.readouterr().out


def test_rows_have_the_verdict_and_a_new_threshold_or_metric_uses_the_cache(
    stub: OpenAIStub, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    write([(GOOD, "1"), (HALF, "0"), (CHATTY, "1"), (BAD, ""), (BAD, "0")])

    def verdicts(*options: str) -> list[str]:
        assert exit_code(*COMMAND, "-o", "out.tsv", *options) == 0
        table = read_table("out.tsv")
        assert table.columns[:4] == tuple(HEADER)
        return [row[table.columns.index("Verdict")] for row in table.rows]

    assert verdicts() == ["correct", "correct", "incorrect", "", "incorrect"]
    assert verdicts("--threshold", "0.6") == ["correct", "incorrect", "incorrect", "", "incorrect"]
    assert verdicts("--metric", "answer_recall", "--threshold", "1") == [
        "correct",
        "incorrect",
        "correct",
        "",
        "incorrect",
    ]
    assert len(stub.requests) == 4
    assert "Written to out.tsv." in capsys.readouterr().out


def test_rows_without_a_judgement_are_skipped_and_counted(
    stub: OpenAIStub, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    write([(GOOD, "1")] * 3)
    stub.chat_faults.extend([refusal(), refusal()])
    assert exit_code(*COMMAND) == 0
    output = capsys.readouterr()
    assert "3 rows; left out: 2 with an error of the judge" in output.out
    assert "1 of 1" in output.out
    assert "Cohen's kappa                              │     –" in output.out
    assert "2 rows could not be judged" in output.err
    assert "refused to answer" in output.err


def test_labels_may_be_in_another_column(stub: OpenAIStub, exit_code: Command) -> None:
    write([(GOOD, "Correct")], label="Expert")
    assert exit_code(*COMMAND, "--label-column", "Expert") == 0


@pytest.mark.parametrize(
    ("label", "text", "complaint"),
    [
        ("label", "1", "found no column Label. Rename label, if that is it, to Label."),
        ("Label", "perhaps", "line 2, key Label: 'perhaps' is no label."),
        ("Label", "", "no row has a label"),
    ],
)
def test_invalid_labels_are_reported_before_any_request(
    stub: OpenAIStub, exit_code: Command, capsys: pytest.CaptureFixture[str], label: str, text: str, complaint: str
) -> None:
    write([(GOOD, text)], label=label)
    assert exit_code(*COMMAND) == 2
    assert complaint in capsys.readouterr().err
    assert not stub.requests


def test_labels_of_several_people_are_a_majority_vote_with_alpha(
    stub: OpenAIStub, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    people = {"Ann": "1110001", "Ben": "1100011", "Cat": "1 10011"}
    answers = [GOOD, GOOD, GOOD, BAD, BAD, GOOD, GOOD]
    rows = [
        [f"question {place}", "right, missing", answer, *(person[place].strip() for person in people.values())]
        for place, answer in enumerate(answers)
    ]
    Path("labelled.tsv").write_bytes(b"".join(table_lines([[*HEADER[:3], *people], *rows])))
    columns = [each for name in people for each in ("--label-column", name)]
    assert exit_code(*COMMAND, *columns) == 0
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    # Question 1 is right for two of two people, question 2 for two of three, question 5 for two of three.
    assert "Agreement 1.000 0.646 to 1.000 7 of 7" in text
    units = [[int(person[place]) for person in people.values() if person[place] != " "] for place in range(7)]
    verdicts = [int(answer is GOOD) for answer in answers]
    assert f"alpha of the people {krippendorffs_alpha(units):.3f}" in text
    with_judge = krippendorffs_alpha([[*unit, verdict] for unit, verdict in zip(units, verdicts, strict=True)])
    assert f"alpha of people and judge {with_judge:.3f}" in text


def test_row_without_a_majority_has_no_label(
    stub: OpenAIStub, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [["q", "right, missing", GOOD, "1", "0"], ["r", "right, missing", GOOD, "1", "1"]]
    Path("labelled.tsv").write_bytes(b"".join(table_lines([[*HEADER[:3], "Ann", "Ben"], *rows])))
    assert exit_code(*COMMAND, "--label-column", "Ann", "--label-column", "Ben") == 0
    assert "left out: 1 without a label" in capsys.readouterr().out
