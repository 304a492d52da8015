import pytest
from support.report_samples import sample, step

from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.report.problems import Problems
from graphrag_eval_lc.report.steps import SampleSteps
from graphrag_eval_lc.view.failures import kind_of
from graphrag_eval_lc.view.samples import SeenSample


def add(problems: Problems, found: SeenSample) -> None:
    problems.add(found, SampleSteps(found.result, EvaluationConfig()))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("TimeoutError: no answer in 600 s", "TimeoutError"),
        ("httpx.ConnectTimeout: away", "httpx.ConnectTimeout"),
        ("ValueError", "ValueError"),
        ("Client error '400 ' for url 'http://x'", "Client error … for url …"),
        ("line 7, column 38: no prefix (p)", "line … column … no prefix …"),
        (None, "None"),
        ("<b>\x00" * 100, "<b>␀" * 25),
    ],
)
def test_kind_is_the_class_or_the_text_without_details(error: object, kind: str) -> None:
    assert kind_of(error).rstrip("…").startswith(kind.rstrip("…"))


def test_failed_questions_calls_and_judges_are_grouped() -> None:
    problems = Problems(EvaluationConfig(), ["mine"])
    failed_call = step("sparql_query", error="bad line 7")
    add(problems, sample(failed_call, failed_call, step("lookup", "no rows", comparison_error="no JSON")))
    add(problems, sample(error="KeyError: 'a'", mine_error="ValueError: 1", other_error="not a judge's"))
    groups = {(group["where"], group["kind"]): group["count"] for group in problems.errors()}
    assert groups == {
        ("question", "KeyError"): 1,
        ("call", "sparql_query: bad line …"): 2,
        ("call", "lookup: output that cannot be compared"): 1,
        ("judge", "mine: ValueError"): 1,
    }
    assert [group["where"] for group in problems.errors()] == ["question", "call", "call", "judge"]
    assert problems.errors()[1]["questions"] == ["q"]


def test_failed_judges_of_retrieval_steps_are_listed() -> None:
    problems = Problems(EvaluationConfig())
    add(problems, sample(step("retrieval", "[]", retrieval_context_recall_error="JudgeError: no answer")))
    assert problems.errors()[0]["kind"] == "retrieval_context_recall: JudgeError"


def test_warnings_that_differ_only_in_ids_and_numbers_are_merged() -> None:
    problems = Problems(EvaluationConfig())
    for length in (7, 8):
        warning = f"the output of lookup (call_{length}) had {length} characters and was cut to 5"
        add(problems, sample(capture_warnings=[warning]))
    (group,) = problems.of("warning")
    assert (group["count"], group["questions"]) == (2, ["q"])
    assert group["kind"] == "the output of lookup … had … characters and was cut to …"
    assert group["example"] == "the output of lookup (call_7) had 7 characters and was cut to 5"


def test_tools_without_a_reference_step_come_first() -> None:
    problems = Problems(EvaluationConfig())
    add(problems, sample(step("run_sparql", status="error", error="KeyError: 1"), step("now", "1")))
    [first, *others] = problems.errors()
    assert (first["where"], first["kind"]) == ("name", "run_sparql: no reference step has that name")
    assert (first["count"], first["questions"]) == (1, ["q"])
    assert list(map(str, problems.unknown_tools.found())) == [first["example"]]
    assert [group["where"] for group in others] == ["call"]
    named = Problems(EvaluationConfig.model_validate({"steps": {"names": {"run_sparql": "sparql_query"}}}))
    add(named, sample(step("run_sparql", "1")))
    assert named.errors() == named.unknown_tools.found() == []
