"""Recorded streams of callback events give the responses next to them."""

import pytest
from support.stream_files import FOLDER, Scenario, differences, read_scenarios, replay

SCENARIOS = [scenario for path in sorted(FOLDER.glob("*.jsonl")) for scenario in read_scenarios(path)]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario.name for scenario in SCENARIOS])
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
