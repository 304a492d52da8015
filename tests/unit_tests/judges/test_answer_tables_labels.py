"""Human labels correct judged means, over HTTP: labels from a judged table, and from notes on the run itself."""

from pathlib import Path
from typing import Any

import pytest
from support.openai_stub import OpenAIStub, StubRequest

from graphrag_eval_lc import compute_aggregates, run_benchmark
from graphrag_eval_lc.errors import ConfigError
from graphrag_eval_lc.judges.answer_tables import JUDGED_COLUMNS, table_lines
from graphrag_eval_lc.metrics.calibration import calibrated_share

ANSWERS = ("question_text", "reference_answer", "actual_answer")
DATASET = [
    {
        "template_id": "t",
        "questions": [
            {"id": f"q{number}", "question_text": f"Is {number} right?", "reference_answer": "yes, it is"}
            for number in range(20)
        ],
    }
]


def verdict(request: StubRequest) -> dict[str, Any]:
    """Accept every answer that ends with "it is": "so it is" deceives this judge."""
    is_accepted = "it is\n</actual" in request.user
    claims = ["it is"]
    return {
        "reason": "So.",
        "true_positives": claims if is_accepted else [],
        "false_positives": [] if is_accepted else ["no"],
        "covered_claims": claims if is_accepted else [],
        "false_negatives": [] if is_accepted else claims,
    }


def agent(question: str) -> str:
    number = int(question.split()[1])
    return "yes, it is" if number < 10 else "so it is" if number < 15 else "no"


def config_of(stub: OpenAIStub, labels: Path) -> dict[str, Any]:
    return {"llm": {"generation": {"base_url": stub.base_url, "api_key": "k"}}, "judges": {"labels": str(labels)}}


def run(stub: OpenAIStub, labels: Path, **options: Any) -> Any:
    stub.answer = verdict
    return run_benchmark(agent, DATASET, config=config_of(stub, labels), progress="off", **options)


def write(path: Path, header: tuple[str, ...], rows: list[list[str]]) -> Path:
    path.write_bytes(b"".join(table_lines([header, *rows])))
    return path


def test_scores_in_a_judged_table_measure_the_judges_errors(openai_stub: OpenAIStub, tmp_path: Path) -> None:
    full, none = ["1", "1", "1", "", "", "[]", "[]", "[]"], ["1", "1", "0", "", "", "[]", "[]", "[]"]
    # It accepts 18 of 20 right answers, and 8 of 20 wrong ones.
    kinds = [("1", full, 18), ("1", none, 2), ("0", full, 8), ("0", none, 12)]
    rows = [
        [f"q{at} {n}", "r", "a", label, *cells] for at, (label, cells, count) in enumerate(kinds) for n in range(count)
    ]
    labels = write(tmp_path / "labelled.tsv", (*ANSWERS, "Label", *JUDGED_COLUMNS), [*rows, ["q", "r", "a", "", *full]])
    found = run(openai_stub, labels, output_dir=tmp_path / "run")
    calibrated = found.aggregates["calibrated"]
    assert (calibrated["number_of_labels"], calibrated["threshold"]) == (40, 0.5)
    correct = calibrated["correct"]
    assert (correct["judged"], correct["sensitivity"], correct["specificity"]) == (0.75, 0.9, pytest.approx(0.6))
    assert correct["mean"] == pytest.approx((0.75 + 0.6 - 1) / 0.5)
    verdicts = [(True, True)] * 18 + [(False, True)] * 2 + [(True, False)] * 8 + [(False, False)] * 12
    expected = calibrated_share([[True] * 15 + [False] * 5], verdicts)
    assert expected is not None
    assert (correct["low"], correct["high"]) == (pytest.approx(expected.low), pytest.approx(expected.high))
    assert calibrated["answer_f1"]["judged"] == found.aggregates["micro"]["answer_f1"]["mean"] == 0.75
    assert calibrated["answer_f1"]["low"] < calibrated["answer_f1"]["mean"] < 0.75
    assert "Corrected for the judge's errors by 40 labels: 0.70 (" in found.view().judge_note
    report = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert "Corrected for the judge" in report


def test_labels_without_scores_use_those_in_the_results(openai_stub: OpenAIStub, tmp_path: Path) -> None:
    rows = [
        [f"Is {number} right?", "yes, it is", agent(f"Is {number} right?"), str(int(number < 10))]
        for number in range(20)
    ]
    labels = write(tmp_path / "notes.csv", (*ANSWERS, "Label"), [*rows, ["Another?", "r", "a", "1"]])
    found = run(openai_stub, labels)
    calibrated = found.aggregates["calibrated"]
    assert calibrated["number_of_labels"] == 20
    assert (calibrated["correct"]["judged"], calibrated["correct"]["mean"]) == (0.75, pytest.approx(0.5))
    assert compute_aggregates(found.results, config_of(openai_stub, labels)) == found.aggregates


def test_labels_of_one_kind_correct_only_the_mean_and_say_so(openai_stub: OpenAIStub, tmp_path: Path) -> None:
    rows = [[f"Is {number} right?", "yes, it is", "yes, it is", "1"] for number in range(10)]
    found = run(openai_stub, write(tmp_path / "notes.csv", (*ANSWERS, "Label"), rows))
    calibrated = found.aggregates["calibrated"]
    assert "mean" not in calibrated["correct"]
    assert "cannot be corrected" in calibrated["note"]
    assert "cannot be corrected" in found.view().judge_note
    assert "mean" in calibrated["answer_f1"]


def test_without_labels_for_the_run_there_is_no_section(openai_stub: OpenAIStub, tmp_path: Path) -> None:
    labels = write(tmp_path / "notes.csv", (*ANSWERS, "Label"), [["Another?", "r", "a", "1"]])
    assert "calibrated" not in run(openai_stub, labels).aggregates


@pytest.mark.parametrize(
    "text", [None, "a,b\n1,2\n", "question_text,reference_answer,actual_answer,Label\nq,r,a,maybe\n"]
)
def test_unusable_labels_are_an_error_before_the_first_request(
    openai_stub: OpenAIStub, tmp_path: Path, text: str | None
) -> None:
    path = tmp_path / "labels.csv"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=r"judges\.labels.*the labels cannot be used"):
        run(openai_stub, path)
    assert openai_stub.requests == []
