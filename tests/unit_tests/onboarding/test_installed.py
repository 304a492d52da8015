from graphrag_eval_lc.onboarding.installed import Installed, extras, installed


def test_core_and_extras_are_told_apart() -> None:
    found = {each.name: each for each in installed()}
    assert found["langchain-core"].extra is None
    assert found["jinja2"].extra == "report"
    assert found["langchain-core"].is_in_range
    assert "graphrag-eval-lc" not in found


def test_version_outside_of_the_tested_range_is_not_in_it() -> None:
    assert Installed("openai", ">=2.0.0,<4", "3.1.0").is_in_range
    assert not Installed("openai", ">=2.0.0,<4", "4.0.0").is_in_range
    assert not Installed("openai", ">=2.0.0,<4", None).is_in_range


def test_missing_packages_are_told_by_their_extra() -> None:
    found = [Installed("a", "", "1", "x"), Installed("b", "", None, "x"), Installed("c", "", "1", "y")]
    assert extras(found) == {"x": ["b"], "y": []}
