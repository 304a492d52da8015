import pytest

from graphrag_eval_lc.errors import DatasetError, GraphRAGEvalError, GraphRAGEvalWarning, MissingExtraError, warn


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
def test_message_has_problem_place_and_hint(places: dict[str, object], message: str) -> None:
    assert str(DatasetError("no text", **places)) == message  # type: ignore[arg-type]


def test_missing_extra_names_the_command_that_installs_it() -> None:
    error = MissingExtraError("The demo", "demo", "pyoxigraph")
    assert isinstance(error, GraphRAGEvalError)
    assert "pip install 'graphrag-eval-lc[demo]'" in str(error)


def test_message_is_escaped_and_attributes_are_unchanged() -> None:
    what = "no \x1b[2J text\nat all"
    error = DatasetError(what, path="a\x07.yaml", question_id="q\n\x9b1", key="k\r", hint="\u202eno")
    assert str(error) == "a␇.yaml, question q␊⟨U+009B⟩1, key k␍: no ␛[2J text\nat all. ⟨U+202E⟩no"
    assert (error.what, error.question_id) == (what, "q\n\x9b1")
    assert "\x1b" not in repr(error)


def test_warning_is_escaped_and_points_at_the_caller() -> None:
    with pytest.warns(GraphRAGEvalWarning, match="^left out: ␛c$") as warned:
        warn("left out: \x1bc")
    assert warned[0].filename == __file__
