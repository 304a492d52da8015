"""Recorded streams of callback events give the responses next to them."""

from typing import Any

import pytest
from stream_files import FOLDER, Scenario, differences, read_scenarios, replay

SCENARIOS = [scenario for path in sorted(FOLDER.glob("*.jsonl")) for scenario in read_scenarios(path)]
NOT_YET = (  # their responses are the right ones, which are not given yet
    "human_edits_and_answers.jsonl::edited in a review node that interrupts",
    "human_edits_and_answers.jsonl::edited with a second call that stays",
    "human_edits_and_answers.jsonl::edited at a static interrupt",
    "human_edits_and_answers.jsonl::edited open call of the input",
    "human_edits_and_answers.jsonl::call replaced by a text",
    "human_edits_and_answers.jsonl::human answers a call",
    "human_edits_and_answers.jsonl::human answers two calls",
    "executions.jsonl::fan out of a middleware",
    "executions.jsonl::with retry by hand",
    "executions.jsonl::rewritten result",
    "executions.jsonl::result turned into an error",
    "executions.jsonl::error turned into a result",
    "ids.jsonl::parallel calls with one id[search]",
    "ids.jsonl::parallel calls with one id[empty]",
    "ids.jsonl::parallel calls with one id async",
    "ids.jsonl::invented ids are no part of an output",
    "node_cache.jsonl::node cache with a fresh handler",
    "node_cache.jsonl::node cache with the same handler",
    "provider_tools.jsonl::mcp tools of anthropic",
    "provider_tools.jsonl::mcp tools of openai",
    "provider_tools.jsonl::pause turn result in the next message",
    "provider_tools.jsonl::provider call without a result",
    "provider_tools.jsonl::programmatic calls",
    "provider_tools.jsonl::executed tools of groq",
    "update_state.jsonl::update state that trims after each turn",
    "update_state.jsonl::update state of a paused run",
)


def marked(scenario: Scenario) -> Any:
    is_gap = scenario.name in NOT_YET
    marks = [pytest.mark.xfail(strict=True, raises=AssertionError, reason="not given yet")] if is_gap else []
    return pytest.param(scenario, id=scenario.name, marks=marks)


@pytest.mark.parametrize("scenario", [marked(scenario) for scenario in SCENARIOS])
def test_a_stream_gives_its_responses(scenario: Scenario) -> None:
    responses = replay(scenario)
    is_part = bool(scenario.header.get("given_keys_only"))
    found = list(differences(scenario.expected, responses, "responses", given_keys_only=is_part))
    assert not found, "\n".join([f"{scenario.name} has other responses than expected:", *found])
    for text in scenario.header.get("mentions", ()):
        assert text in str(responses), f"{scenario.name}: no response mentions {text!r}"


def test_names_are_said_once() -> None:
    names = [scenario.name for scenario in SCENARIOS]
    assert len(names) == len(set(names))
    assert set(NOT_YET) <= set(names)
