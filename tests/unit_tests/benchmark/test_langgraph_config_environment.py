"""Environment variables hold for a while, and are then what they were."""

import os

import pytest

from graphrag_eval_lc.benchmark.langgraph_config import environment_variables
from graphrag_eval_lc.masking import masked_text

ONE, TWO = "ONE_OF_THE_TEST", "TWO_OF_THE_TEST"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ONE, "before")
    monkeypatch.delenv(TWO, raising=False)


def test_they_are_put_back() -> None:
    with environment_variables({ONE: "new", TWO: "new"}):
        assert (os.environ[ONE], os.environ[TWO]) == ("new", "new")
    assert os.environ[ONE] == "before"
    assert TWO not in os.environ


def test_none_unsets_one() -> None:
    with environment_variables({ONE: None}):
        assert ONE not in os.environ
    assert os.environ[ONE] == "before"


def test_secrets_are_masked_also_when_they_are_unset_again() -> None:
    with environment_variables({"STORE_API_KEY": "Quite7secret5value", "STORE_NAME": "Quite7open5value"}):
        pass
    assert masked_text("refused Quite7secret5value of Quite7open5value") == "refused *** of Quite7open5value"


def test_variables_are_put_back_where_one_of_them_cannot_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_OF_THE_TEST", "before")
    with pytest.raises(ValueError, match="null"), environment_variables({"MODEL_OF_THE_TEST": "now", "OTHER": "\0"}):
        pass
    assert os.environ["MODEL_OF_THE_TEST"] == "before"
