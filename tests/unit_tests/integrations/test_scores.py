"""Published scores and their comments."""

from pathlib import Path

from graphrag_eval_lc import score_responses
from graphrag_eval_lc.integrations.scores import scored_run

ADD, FIND = {"name": "add", "args": {}, "output": "2"}, {"name": "find", "args": {}, "output": "x"}
DATASET = [
    {
        "template_id": "t",
        "questions": [
            {"id": "right", "question_text": "?", "reference_steps": [[FIND], [ADD]]},
            {"id": "wrong", "question_text": "?", "reference_steps": [[FIND], [ADD]]},
        ],
    }
]
RESPONSES = [
    {"question_id": "right", "actual_steps": [{**ADD, "status": "success"}, {**FIND, "status": "success"}]},
    {"question_id": "wrong", "actual_steps": [{**FIND, "status": "success"}]},
]


def test_comment_is_about_a_scored_step(tmp_path: Path) -> None:
    score_responses(DATASET, RESPONSES, output_dir=tmp_path / "run")
    run = scored_run(tmp_path / "run", ["steps_score"])
    found = {sample.key: [(score.value, score.comment) for score in sample.scores] for sample in run.samples}
    assert found["right"] == [(1.0, "")]  # steps of the first group are matched, but not scored
    ((value, comment),) = found["wrong"]
    assert value == 0.0
    assert comment.startswith("add: the agent did not call add")
    assert "group not scored" not in comment


def test_ids_are_stable_and_unique(tmp_path: Path) -> None:
    score_responses(DATASET, RESPONSES, output_dir=tmp_path / "run")
    runs = [scored_run(tmp_path / "run", ["steps_score", "steps_recall"]) for _ in range(2)]
    ids = [[score.id for sample in run.samples for score in sample.scores] for run in runs]
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == 4
