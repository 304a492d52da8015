from scripted_judges import ScriptedEmbeddings, ScriptedJudge

from graphrag_eval_lc.judges.model_interface import given_embedding_model, given_judge_model


def test_model_that_can_be_asked_is_taken_as_it_is() -> None:
    judge, embeddings = ScriptedJudge([]), ScriptedEmbeddings({})
    assert given_judge_model(judge) is judge
    assert given_embedding_model(embeddings) is embeddings
