"""Recorded streams of callback events reproduce the responses stored with them."""

from pathlib import Path

import pytest
from support.stream_files import FOLDER, differences, read_scenarios, replay

FILES = sorted(FOLDER.glob("*.jsonl"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_streams_reproduce_their_responses(path: Path) -> None:
    wrong: list[str] = []
    for scenario in read_scenarios(path):
        responses = replay(scenario)
        is_part = bool(scenario.header.get("given_keys_only"))
        found = list(differences(scenario.expected, responses, "responses", given_keys_only=is_part))
        found += [
            f"no response mentions {text!r}"
            for text in scenario.header.get("mentions", ())
            if text not in str(responses)
        ]
        wrong += [f"{scenario.name}: {each}" for each in found]
    assert wrong == [], "\n".join(wrong)


def test_names_are_unique() -> None:
    names = [scenario.name for path in FILES for scenario in read_scenarios(path)]
    assert len(names) == len(set(names))
