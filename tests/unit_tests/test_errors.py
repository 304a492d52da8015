import pytest

from graphrag_eval_lc.errors import DatasetError, GraphRAGEvalError, MissingExtraError


@pytest.mark.parametrize(
    ("places", "message"),
    [
        ({}, "no text."),
        ({"path": "qa.yaml"}, "qa.yaml: no text."),
        ({"path": "qa.yaml", "line": 7}, "qa.yaml, line 7: no text."),
        ({"question_id": "q1", "key": "reference_steps[0]"}, "question q1, key reference_steps[0]: no text."),
        ({"hint": "Add one."}, "no text. Add one."),
    ],
)
def test_message_says_what_and_where_and_ends_in_the_hint(places: dict[str, object], message: str) -> None:
    assert str(DatasetError("no text", **places)) == message  # type: ignore[arg-type]


def test_missing_extra_names_the_command_that_installs_it() -> None:
    error = MissingExtraError("The demo", "demo", "pyoxigraph")
    assert isinstance(error, GraphRAGEvalError)
    assert "pip install 'graphrag-eval-lc[demo]'" in str(error)
