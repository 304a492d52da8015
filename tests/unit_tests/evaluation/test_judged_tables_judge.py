import pytest

from graphrag_eval_lc.errors import ConfigError
from graphrag_eval_lc.evaluation.judged_tables import answer_judge


def test_without_a_config_the_judge_is_openais_default_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    judge = answer_judge(None)
    assert (judge.name, judge.max_concurrency) == ("openai:gpt-4o-mini", 16)


def test_model_concurrency_and_prices_come_from_the_config() -> None:
    judge = answer_judge(
        {
            "llm": {"generation": {"model": "m", "base_url": "http://127.0.0.1:9/v1", "api_key": "k"}},
            "judges": {"max_concurrency": 3},
            "prices": {"m": {"input": 1.0, "output": 2.0}},
        }
    )
    assert (judge.name, judge.max_concurrency) == ("openai:m", 3)
    assert judge.pricing.cost("m", input_tokens=1_000_000, output_tokens=0) == 1.0


def test_without_an_llm_section_there_is_no_judge() -> None:
    with pytest.raises(ConfigError, match=r"a model to judge with is missing\. Add llm: \{\}"):
        answer_judge({"judges": {"max_concurrency": 3}})


def test_unusable_prompt_is_an_error_before_the_first_request() -> None:
    with pytest.raises(ConfigError, match=r"answer_correctness\.prompt"):
        answer_judge({"llm": {"generation": {"api_key": "k"}}, "answer_correctness": {"prompt": "{question}"}})
