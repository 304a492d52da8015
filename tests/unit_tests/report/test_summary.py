from typing import Any

from support.report_samples import console_text

from graphrag_eval_lc import compute_aggregates, run_evaluation
from graphrag_eval_lc.config import load_config
from graphrag_eval_lc.metrics import parse_measure
from graphrag_eval_lc.registry.metrics import own_metrics
from graphrag_eval_lc.report.summary import summary_tables
from graphrag_eval_lc.view import run_view


def question(number: int) -> dict[str, Any]:
    return {
        "id": f"q{number}",
        "question_text": f"What about [bold]{number}[/bold]?",
        "reference_steps": [[{"name": "lookup", "output": "1"}]],
    }


def step(output: str) -> dict[str, Any]:
    return {"name": "lookup", "args": {}, "id": "call_1", "status": "success", "output": output}


DATASET: list[Any] = [{"template_id": "numbers", "questions": [question(number) for number in range(4)]}]
RESPONSES: list[Any] = [
    {"question_id": "q0", "actual_steps": [step("1")], "total_tokens": 1500, "elapsed_sec": 1.25},
    {"question_id": "q1", "actual_steps": [step("2")], "total_tokens": 500, "elapsed_sec": 0.75},
    {"question_id": "q2", "error": "RateLimitError: slow down"},
]


def printed(worst: int = 5) -> str:
    results: list[Any] = run_evaluation(DATASET, RESPONSES)
    return printed_results(results, worst)


def printed_results(results: list[Any], worst: int = 5) -> str:
    metrics = own_metrics(compute_aggregates(results)["micro"])
    return console_text(summary_tables(run_view(iter(results), metrics=metrics, most_failures=worst)))


def repeats_of(question_id: str, *scores: float | None, template_id: str = "numbers") -> list[dict[str, Any]]:
    """Return a question's repeats by score; None means that it failed."""
    base = {"template_id": template_id, "question_id": question_id, "question_text": "How many?"}
    return [
        {**base, "repeat": repeat, **({"error": "boom"} if score is None else {"steps_score": score})}
        for repeat, score in enumerate(scores, start=1)
    ]


def test_templates_row_has_questions_errors_and_means() -> None:
    row = next(line for line in printed().splitlines() if line.strip().startswith("numbers"))
    assert row.split() == [
        "numbers",
        "│",
        "4",
        "│",
        "2",
        "│",
        "0.250",
        "│",
        "0.500",
        "│",
        "1,000",
        "│",
        "1.00",
    ]


def test_worst_questions_begin_with_errors_and_have_reasons() -> None:
    text = printed()
    assert text.index("RateLimitError: slow down") < text.index("lookup: another text: 2 instead of 1")
    assert "q0" not in text
    assert "(3 of 3 that are not right)" in text


def test_headline_and_groups_come_before_questions_and_scores() -> None:
    lines = [line.strip() for line in printed().splitlines()]
    assert lines[0].startswith("1 of 4 right, 1 wrong, 2 errors · steps_score 0.250")
    titles = ["Why questions are not right", "The worst questions (3 of 3 that are not right)", "Scores by template"]
    assert [line for line in lines if line in titles] == titles
    cells = [[cell.strip() for cell in line.split("│")] for line in lines]
    assert ["1", "A server refused more requests (RateLimitError)", "q2"] in cells
    assert ["1", "The output of lookup differs", "q1"] in cells


def test_number_of_worst_questions_can_be_set() -> None:
    assert "(1 of 3 that are not right)" in printed(worst=1)
    assert "The worst questions" not in printed(worst=0)


def test_markup_in_texts_is_shown_as_text() -> None:
    assert "[bold]1[/bold]" in printed()


def test_repeats_have_a_line_with_pass_rates() -> None:
    text = printed_results(repeats_of("q1", 0.5, 0.5) + repeats_of("q2", 1.0, None, template_id="other"))
    assert "2 repeats: pass@1 0.25, pass@2 0.50, pass^2 0.00 (passed: steps_score ≥ 1)" in " ".join(text.split())


def test_line_on_repeats_omits_unknown_values() -> None:
    interrupted = printed_results(repeats_of("q1", 1.0, 0.0) + repeats_of("q2", 1.0))
    assert "2 repeats: pass@1 0.75 (passed: steps_score ≥ 1)\n" in interrupted
    unmeasured = [
        {key: value for key, value in result.items() if key != "steps_score"} for result in repeats_of("q", 1, 1)
    ]
    assert "2 repeats: passed: steps_score ≥ 1; 1 of 1 questions were not measured" in printed_results(unmeasured)
    partly = printed_results(repeats_of("q1", 1.0, 1.0) + [{**result, "question_id": "q2"} for result in unmeasured])
    assert "1 of 2 questions were not measured" in partly


def test_question_counts_once_but_each_repeat_can_be_among_the_worst() -> None:
    text = printed_results(repeats_of("q1", 1.0, 0.5, None))
    row = next(line for line in text.splitlines() if line.strip().startswith("numbers"))
    assert row.split()[:6] == ["numbers", "│", "1", "│", "1", "│"]
    assert text.index("q1, repeat 3") < text.index("q1, repeat 2")
    assert "q1, repeat 1" not in text


def test_equally_bad_questions_keep_their_order() -> None:
    results = [result for number in range(9) for result in repeats_of(f"q{number}", 0.0)]
    text = " ".join(printed_results(results, worst=3).split())
    assert [name for name in (f"q{number}" for number in range(9)) if name in text] == ["q0", "q1", "q2"]
    assert "(3 of 9 that are not right)" in text


def judged(**values: Any) -> dict[str, Any]:
    base = {"template_id": "t", "question_id": "q", "question_text": "?", "status": "success", "steps_score": 1.0}
    return {**base, **values}


def test_judged_scores_and_costs_have_columns_if_known() -> None:
    step = {"name": "retrieval", "retrieval_utilization": 0.25, "retrieval_utilization_cost": 0.01}
    text = printed_results(
        [judged(answer_f1=0.5, answer_recall=0.4, answer_correctness_cost=0.02, agent_cost=0.12, actual_steps=[step])]
    )
    assert "answer_recall" not in text
    scores, judged_scores = (
        line.replace("│", " ").split() for line in text.splitlines() if line.strip().startswith("t ")
    )
    assert scores == ["t", "1", "1.000", "$0.12"]
    assert judged_scores == ["t", "0.500", "0.250"]
    assert "Cost: agent $0.12, judges $0.030\n" in text
    assert "steps_score and the agent's cost are means" in text


def test_caption_mentions_only_existing_columns() -> None:
    sample = {"template_id": "t", "question_id": "q", "question_text": "?", "status": "success", "elapsed_sec": 1.0}
    assert "\nseconds are means" in printed_results([sample])


def test_outputs_of_custom_evaluations_have_columns() -> None:
    samples = [judged(polite=True, tone_cost=0.01)]
    custom = {"name": "tone", "inputs": ["actual_answer"], "instructions": "Judge.", "outputs": {"polite": "Is it?"}}
    config = load_config({"custom_evaluations": [custom], "llm": {}})
    text = console_text(summary_tables(run_view(samples, config)))
    assert "polite" in text
    assert "tone_cost" not in text
    assert "Cost: judges $0.010" in text


def test_custom_scores_are_not_listed_as_judged() -> None:
    text = printed_results([judged(answer_f1=0.5, polite=1.0, saved_sec=2.5, custom_metrics=["polite", "saved_sec"])])
    judged_part, own_part = text.split("Own scores by template (means)")
    assert "answer_f1" in judged_part
    assert "polite" not in judged_part
    assert ["t", "│", "1.000", "│", "2.50", "s"] in [line.split() for line in own_part.splitlines()]


def test_partially_unknown_costs_are_reported() -> None:
    unpriced = judged(llm_calls=[{"model": "mine"}])
    text = printed_results([judged(agent_cost=0.12), unpriced, judged(agent_cost=0.0)])
    assert "Cost: agent not known (1 sample has no price)\n" in text


def test_run_without_costs_and_judges_has_neither() -> None:
    assert "Cost" not in printed()
    assert "Judged" not in printed()


RETRIEVED = {
    "template_id": "t",
    "question_id": "q",
    "question_text": "?",
    "actual_steps": [{"name": "retrieval", "retrieval_ids_ndcg@10": 0.25, "retrieval_text_f1": 1.0}],
    "retrieval_missing": 2,
}


def printed_measures(results: list[Any], *names: str) -> str:
    return console_text(summary_tables(run_view(results), measures=[parse_measure(name) for name in names]))


def test_requested_measures_have_columns() -> None:
    text = printed_measures(
        [RETRIEVED, {"template_id": "other", "question_id": "o", "question_text": "?"}], "ndcg@10", "P@5"
    )
    rows = [line.replace("┃", "│").split() for line in text[text.index("Retrieved ids") :].splitlines()]
    assert ["Template", "│", "nDCG@10", "│", "P@5", "│", "Missing"] in rows
    assert ["t", "│", "0.250", "│", "–", "│", "2"] in rows
    assert not any(row[:1] == ["other"] for row in rows)
    assert "retrieval_" not in text


def test_measures_are_not_shown_by_default() -> None:
    text = printed_measures([RETRIEVED])
    assert "nDCG" not in text
    assert "retrieval_" not in text


def test_measures_without_retrieval_are_a_note() -> None:
    text = printed_measures([{"template_id": "t", "question_id": "q", "question_text": "?"}], "P@5")
    assert "Nothing is measured of retrieval: no scored reference step names relevant ids." in text


def test_counts_have_thousands_separators() -> None:
    results = [each for number in range(1_200) for each in repeats_of(f"q{number}", None)]
    text = printed_results(results)
    assert "(5 of 1,200 that are not right)" in " ".join(text.split())
    row = next(line for line in text.splitlines() if line.strip().startswith("numbers"))
    assert row.split()[:5] == ["numbers", "│", "1,200", "│", "1,200"]


def test_answer_checks_have_a_table_in_which_failed_questions_count_as_0() -> None:
    results = repeats_of("q0", 1.0) + repeats_of("q1", 1.0) + repeats_of("q2", None)
    results[0] |= {"answer_exact": 1.0, "answer_grounded": 0.5}
    results[1] |= {"answer_exact": 0.5, "answer_grounded": 1.0}
    text = printed_results(results)
    table = text[text.index("Answers by template (means)") :].splitlines()
    rows = [line.replace("│", " ").split() for line in table]
    assert ["numbers", "0.500", "(0.750)", "0.500", "(0.750)"] in rows
    assert "Answers by template" not in printed()
