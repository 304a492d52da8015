from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.junit_schema import checked_junit

from graphrag_eval_lc import BenchmarkRun, compute_aggregates, gate_results, run_benchmark, write_junit
from graphrag_eval_lc.config import load_config
from graphrag_eval_lc.errors import OptionError, RunFolderError
from graphrag_eval_lc.report import junit as room

BASE: dict[str, Any] = {"template_id": "t", "question_text": "How many?", "status": "success"}


def repeats_of(question_id: str, *scores: float | str | None, **more: Any) -> list[dict[str, Any]]:
    """Return a question's repeats by score; None is unmeasured, and a string is the error of a failed repeat."""
    results = []
    for repeat, score in enumerate(scores, start=1):
        outcome_keys: dict[str, Any] = {} if score is None else {"steps_score": score}
        if isinstance(score, str):
            outcome_keys = {"error": score, "status": "error", "steps_score": 0.0}
        results.append({**BASE, "question_id": question_id, "repeat": repeat, **outcome_keys, **more})
    return results


def in_memory(results: list[Any], config: Any = None) -> BenchmarkRun:
    return BenchmarkRun(compute_aggregates(results, config), results=results, config=load_config(config))


def written(results: Any, path: Path, **options: Any) -> Any:
    return checked_junit(write_junit(results, path / "junit.xml", **options))


def case(root: Any, name: str) -> Any:
    (found,) = [each for each in root.iter("testcase") if each.get("name") == name]
    return found


def outcome(root: Any, name: str) -> str:
    """Return the outcome of a test case."""
    tags = {child.tag for child in case(root, name)} - {"system-out"}
    return tags.pop() if tags else "passed"


def test_question_is_a_case_that_passes_fails_or_is_an_error(tmp_path: Path) -> None:
    results = [
        *repeats_of("right", 1.0, elapsed_sec=1.25, answer_f1=0.5),
        *repeats_of("wrong", 0.5, template_id="who", actual_answer="NO2", reference_answer="NO1", elapsed_sec=2),
        *repeats_of("away", "TimeoutError: no answer in 600 s"),
        *repeats_of("unasked", "there is no response to this question"),
        *repeats_of("unmeasured", None),
    ]
    root = written(results, tmp_path)
    outcomes = {name: outcome(root, name) for name in ("right", "wrong", "away", "unasked", "unmeasured")}
    assert list(outcomes.values()) == ["passed", "failure", "error", "error", "skipped"]
    wrong = case(root, "wrong")
    assert (wrong.get("classname"), wrong.get("time")) == ("who", "2.000")
    assert wrong[0].attrib == {"message": "steps_score 0.500 (≥ 1 passes)", "type": "steps_score"}
    assert wrong[0].text.splitlines() == [
        "steps_score 0.500",
        "Question: How many?",
        "Answer: NO2",
        "Reference answer: NO1",
    ]
    away = case(root, "away")[0]
    assert away.attrib == {"message": "TimeoutError: no answer in 600 s", "type": "TimeoutError"}
    assert case(root, "unmeasured")[0].text == "steps_score was not measured"
    assert case(root, "right").find("system-out").text == "answer_f1 0.500, steps_score 1.000"
    assert case(root, "right").get("time") == "1.250"


def test_failure_says_why_with_the_diagnosis_and_the_judges_reasons(tmp_path: Path) -> None:
    diagnosis = {"matched": None, "score": 0.0, "reason": "2 rows are missing", "nearest": "call_1"}
    result = {
        **repeats_of("q", 0.0)[0],
        "reference_steps": [[{"name": "sparql_query", "output": "x"}]],
        "steps_diagnosis": [[diagnosis]],
        "answer_f1": 0.25,
        "answer_recall": 0.25,
        "answer_correctness_reason": "A claim is wrong.",
    }
    failure = case(written([result], tmp_path), "q")[0]
    assert failure.get("message") == ("steps_score 0.000 (≥ 1 passes): sparql_query: 2 rows are missing")
    assert "Why: sparql_query: 2 rows are missing" in failure.text
    assert failure.text.count("answer_correctness: A claim is wrong.") == 1


def test_score_and_threshold_come_from_the_config(tmp_path: Path) -> None:
    results = [
        *repeats_of("good", 0.0, answer_f1=0.6),
        *repeats_of("bad", 1.0, answer_f1=0.4),
        *repeats_of("none", 1.0),
    ]
    run = in_memory(results, {"repeats": {"metric": "answer_f1", "threshold": 0.5}})
    root = written(run, tmp_path)
    assert [outcome(root, name) for name in ("good", "bad", "none")] == ["passed", "failure", "skipped"]
    assert case(root, "bad")[0].get("message") == "answer_f1 0.400 (≥ 0.5 passes)"


def test_question_passes_if_all_repeats_pass_and_otherwise_has_the_worst_outcome(tmp_path: Path) -> None:
    results = [
        *repeats_of("all", 1.0, 1.0, elapsed_sec=1.5),
        *repeats_of("one", 1.0, 0.5),
        *repeats_of("error", 0.5, "ValueError: no", 1.0),
        *repeats_of("unknown", 1.0, None),
        *repeats_of("wrong", None, 0.0),
    ]
    root = written(results, tmp_path)
    outcomes = [outcome(root, name) for name in ("all", "one", "error", "unknown", "wrong")]
    assert outcomes == ["passed", "failure", "error", "skipped", "failure"]
    assert case(root, "all").get("time") == "3.000"
    assert case(root, "all").find("system-out").text == (
        "Repeat 1 passed: steps_score 1.000\nRepeat 2 passed: steps_score 1.000"
    )
    message = case(root, "one")[0]
    assert message.get("message") == "1 of 2 repeats passed; repeat 2: steps_score 0.500 (≥ 1 passes)"
    assert message.text.startswith("Repeat 1 passed: steps_score 1.000\n\nRepeat 2 did not pass:\nsteps_score 0.500\n")
    error = case(root, "error")[0]
    assert error.get("message") == "1 of 3 repeats passed; repeat 2: ValueError: no"
    assert error.get("type") == "ValueError"


def test_repeats_are_listed_in_order(tmp_path: Path) -> None:
    first, second, third = repeats_of("q", 0.0, 0.5, 1.0)
    failure = case(written([third, *repeats_of("other", 1.0), second, first], tmp_path), "q")[0]
    assert failure.get("message") == "1 of 3 repeats passed; repeat 1: steps_score 0.000 (≥ 1 passes)"
    positions = [failure.text.index(f"Repeat {repeat} ") for repeat in (1, 2, 3)]
    assert positions == sorted(positions)


@given(
    st.lists(
        st.lists(st.sampled_from([0.0, 0.5, 1.0, None, "ValueError: no"]), min_size=3, max_size=3),
        min_size=1,
        max_size=8,
    ),
    st.randoms(),
)
def test_number_of_passed_questions_agrees_with_pass_hat_k(
    tmp_path_factory: pytest.TempPathFactory, questions: list[list[Any]], random: Any
) -> None:
    results = [result for number, scores in enumerate(questions) for result in repeats_of(f"q{number}", *scores)]
    repeats = compute_aggregates(results)["repeats"]
    random.shuffle(results)
    root = written(results, tmp_path_factory.mktemp("run"))
    measured = repeats["number_of_questions"] - repeats["number_of_unmeasured_questions"]
    expected = round(repeats["pass^k"]["3"] * measured) if measured else 0
    passed = sum(outcome(root, f"q{number}") == "passed" for number in range(len(questions)))
    assert passed == expected
    assert int(root.get("tests")) == len(questions)


def test_gates_are_cases_in_their_own_suite(tmp_path: Path) -> None:
    results = [*repeats_of("q", 0.5), *repeats_of("q2", 1.0)]
    gates = gate_results(results, ["steps_score=0.9", "t/steps_score=0.5", "gone/steps_score=0.5", "answer_f1=0.1"])
    _, suite = written(results, tmp_path, gates=gates)
    assert (suite.get("name"), suite.get("failures"), suite.get("skipped")) == ("gates", "2", "1")
    assert [(each.get("classname"), each.get("name"), each[0].tag) for each in suite] == [
        ("gates", "steps_score ≥ 0.9", "failure"),
        ("gates", "t/steps_score ≥ 0.5", "system-out"),
        ("gates", "gone/steps_score ≥ 0.5", "skipped"),
        ("gates", "answer_f1 ≥ 0.1", "failure"),
    ]
    assert suite[0][0].get("message") == "steps_score 0.750 < 0.9"


def test_gates_default_to_the_runs_config(tmp_path: Path) -> None:
    results: list[Any] = repeats_of("q", 0.5)
    gates = load_config({"gates": [{"metric": "steps_score", "under": 0.9}]}).gates
    run = BenchmarkRun(compute_aggregates(results), results=results, gates=gates)
    assert written(run, tmp_path)[1].get("failures") == "1"
    assert len(written(run, tmp_path, gates=[])) == 1


def test_suite_has_the_runs_scores_as_properties(tmp_path: Path) -> None:
    dataset: Any = [
        {
            "template_id": f"t{number}",
            "questions": [
                {"id": f"q{number}", "question_text": "?", "reference_steps": [[{"name": "tool", "output": "1"}]]}
            ],
        }
        for number in range(3)
    ]
    run_benchmark(lambda question: "2", dataset, output_dir=tmp_path / "run", progress="off", label="my run")
    root = checked_junit(write_junit(tmp_path / "run"))
    assert root[0].get("name") == "my run"
    properties = {each.get("name"): each.get("value") for each in root.iter("property")}
    assert properties["questions"] == "3"
    assert properties["steps_score"] == "0"
    assert {"run_id", "errors", "graphrag-eval-lc", "elapsed_sec.sum", "steps_score.answered"} <= properties.keys()


def test_run_without_questions_is_valid(tmp_path: Path) -> None:
    assert written([], tmp_path).get("tests") == "0"


FORBIDDEN = "".join(map(chr, [0, 1, 8, 11, 12, 27, 0x7F, 0x85, 0xFFFE, 0xFFFF, 0xD800]))


def test_characters_forbidden_in_xml_are_shown_as_codes(tmp_path: Path) -> None:
    text = f"a{FORBIDDEN}<b>&\"'</b>]]>"
    results = repeats_of(f"id {text}", 0.5, actual_answer=f"{text}\nsecond line", template_id=text)
    root = written(results, tmp_path)
    (found,) = root.iter("testcase")
    assert "⟨U+FFFE⟩⟨U+FFFF⟩⟨U+D800⟩<b>&\"'</b>]]>" in found.get("classname")
    assert "⟨U+D800⟩<b>&\"'</b>]]>\nsecond line" in found[0].text


@given(st.text(), st.text(), st.text(alphabet=st.characters(codec=None)))
def test_any_text_produces_a_valid_file(
    tmp_path_factory: pytest.TempPathFactory, name: str, template: str, outcome_keys: str
) -> None:
    results = [
        *repeats_of(name, 0.5, template_id=template, actual_answer=outcome_keys, question_text=outcome_keys),
        *repeats_of(f"{name} other", f"ValueError: {outcome_keys}", template_id=outcome_keys),
    ]
    written(results, tmp_path_factory.mktemp("run"))


def test_ids_shortened_to_the_same_name_remain_distinct(tmp_path: Path) -> None:
    root = written([*repeats_of("x" * 300 + "a", 1.0), *repeats_of("x" * 300 + "b", 0.0)], tmp_path)
    first, second = root.iter("testcase")
    assert second.get("name") == f"{first.get('name')} (2)"
    assert second.find("failure") is not None


def test_texts_are_omitted_if_the_file_would_be_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_MOST_BYTES_OF_TEXTS", 3_000)
    results = [result for number in range(9) for result in repeats_of(f"q{number}", 0.5, actual_answer="y" * 9_000)]
    root = written(results, tmp_path)
    texts = [each.text for each in root.iter("failure")]
    assert "(7,000 characters left out)" in texts[0]
    assert texts[-1] == "The text is left out, as the file would be too large; the question is in results.jsonl."
    assert all(each.get("message") for each in root.iter("failure"))


def test_run_without_a_folder_needs_a_path() -> None:
    with pytest.raises(OptionError, match=r"no folder to write the junit to\. Give a path"):
        write_junit(repeats_of("q", 1.0))


def test_failed_write_keeps_the_old_file(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="cannot be written"):
        write_junit(repeats_of("q", 1.0), tmp_path / "gone" / "junit.xml")


@pytest.mark.full
def test_junitparser_reads_the_same_outcomes(tmp_path: Path) -> None:
    junitparser = pytest.importorskip("junitparser")
    results = [
        *repeats_of("right", 1.0),
        *repeats_of("wrong", 0.5),
        *repeats_of("away", "ValueError: no"),
        *repeats_of("none", None),
    ]
    path = write_junit(results, tmp_path / "junit.xml", gates=gate_results(results, ["steps_score=0.9"]))
    questions, gates = junitparser.JUnitXml.fromfile(str(path))
    assert (questions.tests, questions.failures, questions.errors, questions.skipped) == (4, 1, 1, 1)
    assert [each.is_passed for each in questions] == [True, False, False, False]
    assert (gates.tests, gates.failures) == (1, 1)
