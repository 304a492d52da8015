from collections.abc import Callable

import pytest
from packaging.requirements import Requirement

from graphrag_eval_lc.onboarding.doctor import Check, Examination, is_tested, requirements_by_extra


def test_core_and_extras_are_distinguished() -> None:
    names = {extra: [each.name for each in packages] for extra, packages in requirements_by_extra().items()}
    assert "langchain-core" in names[""]
    assert "jinja2" in names["report"]
    assert not any("graphrag-eval-lc" in found for found in names.values())
    assert "all" not in names


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Check]]:
    """Return a function that checks versions and extras as if the given versions were installed."""

    def found(needed: dict[str, list[str]], versions: dict[str, str]) -> list[Check]:
        packages = {extra: [Requirement(text) for text in texts] for extra, texts in needed.items()}
        monkeypatch.setattr("graphrag_eval_lc.onboarding.doctor.requirements_by_extra", lambda: packages)
        monkeypatch.setattr("graphrag_eval_lc.onboarding.doctor.installed_version", versions.get)
        return [check for check in Examination().checks() if check.area in ("versions", "extras")][1:]

    return found


def test_missing_and_untested_packages_are_reported_with_the_fix(
    checks: Callable[..., list[Check]],
) -> None:
    needed = {"": ["openai>=2,<4", "lang>=1"], "x": ["a>=1", "b", "b<3"], "y": ["c<2"]}
    assert [check[:3] for check in checks(needed, {"openai": "4.0.0", "a": "1", "c": "3"})] == [
        ("error", "lang is not installed", "Run: pip install 'lang>=1'"),
        ("warning", "openai 4.0.0 was not tested with this package", "Run: pip install 'openai<4,>=2'"),
        ("ok", "installed: y", ""),
        ("note", "[x] lacks b", "Only what uses them needs them. Run: pip install 'graphrag-eval-lc[x]'"),
        ("warning", "c 3 was not tested with [y]", "Run: pip install 'c<2'"),
    ]
    found = checks({"": ["openai>=2,<4", "lang>=1"]}, {"openai": "3.1", "lang": "1.0"})
    assert [check[:2] for check in found] == [("ok", "lang 1.0 and 1 further package as tested")]


def test_missing_package_is_not_reported_as_untested() -> None:
    assert not is_tested(Requirement("no-such-package>=1"))
