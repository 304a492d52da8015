from graphrag_eval_lc.aggregation import RunValues
from graphrag_eval_lc.aggregation.sample_values import Metrics
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.report.reported_run import reported_samples
from graphrag_eval_lc.report.scores import shown_scores, template_metrics, template_rows
from graphrag_eval_lc.report.spent import Spent


def test_a_row_has_questions_errors_scores_and_what_was_spent() -> None:
    numbers, spent = RunValues(), Spent(EvaluationConfig())
    results = [
        {"question_id": "a", "template_id": "t1", "steps_score": 1.0, "total_tokens": 10, "mine": 3},
        {"question_id": "b", "template_id": "t1", "steps_score": 0.5, "total_tokens": 30, "error": "away"},
        {"question_id": "c", "template_id": "t2", "elapsed_sec": 2.0, "mine": 5},
    ]
    for result in results:
        result["custom_metrics"] = ["mine"]
    for sample in reported_samples(results, Metrics(EvaluationConfig())):
        numbers.add(sample.result)
        spent.add(sample)
    scores = shown_scores(numbers)
    first, second = template_rows(numbers, scores, template_metrics(scores), spent)
    assert (first["id"], first["questions"], first["errors"], first["tokens"]) == ("t1", 2, 1, 20)
    assert first["scores"]["steps_score"] == {
        "mean_answered": 1.0,
        "mean_all": 0.5,
        "n_answered": 1,
        "n_all": 2,
        "bins": [1, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        "range": [0.0, 1.0],
    }
    assert (second["id"], second["seconds"], second["usd"]) == ("t2", 2.0, None)
    assert "steps_score" not in second["scores"]
    assert second["scores"]["mine"]["range"] == [0.0, 5]
