"""Undecided steps and truncated outputs in the report: marks, groups, scores and notes."""

from typing import Any

from support.report_samples import console_text, table
from support.uncertain_steps import results_of, results_of_tool

from graphrag_eval_lc import BenchmarkRun, compute_aggregates, write_report
from graphrag_eval_lc.aggregation.sample_values import Metrics
from graphrag_eval_lc.config import load_config
from graphrag_eval_lc.report.problems import Funnel
from graphrag_eval_lc.report.reported_run import reported_run
from graphrag_eval_lc.report.run_report import report_data
from graphrag_eval_lc.report.steps import SampleSteps, extra_steps, step_groups
from graphrag_eval_lc.report.summary import summary_tables
from graphrag_eval_lc.report.transcript import timeline
from graphrag_eval_lc.view import run_view
from graphrag_eval_lc.view.samples import seen_samples


def statuses(result: dict[str, Any]) -> list[str]:
    return [step["status"] for group in step_groups(SampleSteps(result, load_config(None))) for step in group]


def data_of(**outputs: str) -> Any:
    results: Any = results_of(**outputs)
    return report_data(reported_run(results))


def test_undecided_step_has_its_own_mark() -> None:
    undecided, cut, near = results_of(q_1="?", q_2="o<cut>", q_3="no")
    assert (statuses(undecided), statuses(cut), statuses(near)) == (["undecided"], ["undecided"], ["near"])


def test_undecided_step_in_an_unscored_group_is_not_scored() -> None:
    (result,) = results_of(q="?")
    result["reference_steps"].append([{"name": "other", "output": "x"}])
    result["steps_diagnosis"].append([{"score": 0.0, "outcome": "mismatch", "matched": False, "reason": ""}])
    assert statuses(result) == ["unscored", "missing"]


def test_call_that_may_match_or_is_nearest_is_not_extra() -> None:
    for result in results_of(q_1="?", q_2="no"):
        assert extra_steps(step_groups(SampleSteps(result, load_config(None))), result["actual_steps"]) == []


def test_truncated_output_has_a_note_on_its_call() -> None:
    (result,) = results_of(q="o<cut>")
    assert timeline(result["actual_steps"])[0]["note"] == "the output ends after 1 characters"


def test_undecided_steps_and_truncated_outputs_are_grouped_with_their_questions() -> None:
    groups = {each["kind"]: each for each in data_of(t_1="?", t_2="o<cut>", t_3="no", t_4="?")["errors"]}
    cut, undecided = groups["look: output that ends before its end"], groups["look: not known whether it fits"]
    assert (cut["where"], cut["count"], cut["questions"]) == ("call", 1, ["t_2"])
    assert (undecided["where"], undecided["questions"]) == ("undecided", ["t_1", "t_2", "t_4"])
    assert undecided["example"] == "the search reached its bound"


def test_upper_bound_is_shown_next_to_the_score() -> None:
    view = data_of(t_1="ok", t_2="?", u_1="no")["view"]
    names = ["steps_score", "steps_recall", "steps_precision", "steps_f1", "steps_order"]
    assert [line.metric for line in view.scores] == names
    assert (view.scores[0].mean, view.scores[0].upper) == (1 / 3, 2 / 3)
    uppers = {line.template_id: line.scores["steps_score"].upper for line in view.templates}
    assert uppers == {"t": 1.0, "u": None}


def test_note_states_the_range_of_the_score() -> None:
    data = data_of(t_1="ok", t_2="o<cut>")
    undecided, cut = data["warnings"][-2:]
    assert undecided == "1 reference step is undecided and counts 0: steps_score is between 0.500 and 1.000."
    assert cut.startswith("1 output ends before the end")
    assert not [text for text in data_of(t_1="ok", t_2="no")["warnings"] if "undecided" in text]


def test_page_shows_the_bound(tmp_path: Any) -> None:
    results: Any = results_of(t_1="ok", t_2="?")
    page = write_report(results, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "if all undecided fit" in page
    certain: Any = results_of(t_1="ok")
    page = write_report(certain, tmp_path / "certain.html").read_text(encoding="utf-8")
    assert "if all undecided fit" not in page


def funnel_of(*results: dict[str, Any]) -> Funnel:
    funnel = Funnel()
    for found in seen_samples(results, Metrics(load_config(None))):
        funnel.add(found, SampleSteps(found.result, load_config(None)))
    return funnel


def stages_of(*results: dict[str, Any]) -> dict[str, dict[str, Any]]:
    for result in results:
        result["reference_steps"][0][0]["output"] = table("T1")  # so that an answer is expected
    record = funnel_of(*results).record()
    assert record is not None
    return {stage["name"]: stage for stage in record["stages"]}


def test_undecided_query_does_not_drop_out_of_the_funnel() -> None:
    stages = stages_of(*results_of_tool("sparql_query", {"q_1": "o<cut>", "q_2": "no", "q_3": "o<cut>"}))
    assert (stages["a query had rows"]["passed"], stages["a query had rows"]["fell_out"]) == (2, ["q_2"])
    rows = stages["rows right"]
    assert (rows["passed"], rows["passed_over"], rows["undecided"], rows["fell_out"]) == (0, 0, 2, [])


def test_undecided_steps_are_neither_right_nor_wrong_in_the_matrix() -> None:
    results = [{**result, "answer_f1": 1.0} for result in results_of(q_1="?", q_2="no", q_3="ok")]
    record = funnel_of(*results).matrix()
    assert record is not None
    assert (record["right_right"], record["wrong_right"], record["left_out"]) == (["q_3"], ["q_2"], 1)


def test_notebook_counts_undecided_steps() -> None:
    results: Any = results_of(t_1="ok", t_2="o<cut>")
    shown = BenchmarkRun(compute_aggregates(results), results=results, responses=[])._repr_html_()
    assert "undecided steps" in shown
    assert "outputs that are cut" in shown
    certain: Any = results_of(t_1="ok")
    assert "undecided" not in BenchmarkRun(compute_aggregates(certain), results=certain, responses=[])._repr_html_()


def test_terminal_reports_undecided_steps_and_the_limit_to_raise() -> None:
    text = console_text(summary_tables(run_view(results_of(t_1="ok", t_2="o<cut>"))))
    assert "1 reference step is undecided and counts 0: steps_score is between 0.500 and 1.000." in text
    assert "raise the length limit of the tool" in text
    assert "look, undecided: the output ends after 1 characters" in text


def test_terminal_has_no_note_if_all_steps_are_decided() -> None:
    assert "undecided" not in console_text(summary_tables(run_view(results_of(t_1="ok", t_2="no"))))
