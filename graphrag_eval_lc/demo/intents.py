"""The kinds of questions that the rule-based planner knows: how they are worded, and the plan for each."""

import re
from collections.abc import Callable
from typing import NamedTuple

from graphrag_eval_lc.demo import plans, time_series_plans
from graphrag_eval_lc.demo.steps import Plan


class Intent(NamedTuple):
    """A kind of question: how it is worded, and the plan for it."""

    wording: re.Pattern[str]
    plan: Callable[[re.Match[str]], Plan]


_ZONE_NAME = r"[A-Z]{2}\d?(?:-[A-Z]{2})?"
_AGGREGATE = r"(?P<aggregate>average|highest|lowest)"
_STEPS = r"steps of (?P<step>\d+) (?P<step_unit>minute|hour|day)"

INTENTS = [
    Intent(
        re.compile(
            rf"{_AGGREGATE} production (?:of|at) (?P<name>[A-Z]+(?: [A-Z0-9]+)*)\b"
            rf".*\blast (?P<count>\d+) (?P<period>minute|hour|day)s?\b.*\b{_STEPS}"
        ),
        time_series_plans.production,
    ),
    Intent(
        re.compile(
            rf"{_AGGREGATE} flow on (?P<name>DC [A-Z]+-[A-Z]+ \d)\b"
            rf".*?\b(?P<day>yesterday|the day before yesterday)\b.*\b{_STEPS}"
        ),
        time_series_plans.flow,
    ),
    Intent(re.compile(r"voltages?\b.*\bAC lines (?:of|from|at) (?P<name>\w+)"), plans.line_voltages),
    Intent(re.compile(r"search for (?P<name>\w+)"), plans.search_by_name),
    Intent(re.compile(r"transformers\b.*\b(?:substation|in|of|at) (?P<name>\w+)"), plans.transformers),
    Intent(
        re.compile(rf"DC link\b.*\b(?P<zone>{_ZONE_NAME}) (?:and|to|with) (?P<other_zone>{_ZONE_NAME})"),
        plans.dc_link,
    ),
    Intent(
        re.compile(
            r"(?P<count>\d+) longest (?:(?P<kilovolts>\d+) kV )?(?P<current>AC|DC) lines"
            rf"(?:.*\b(?P<zone>{_ZONE_NAME})\b)?"
        ),
        plans.longest_lines,
    ),
    Intent(re.compile(r"(?P<current>AC|DC) lines?\b.*\b(?:from|to|with|of) (?P<name>\w+)"), plans.neighbours),
    Intent(
        re.compile(rf"(?P<kind>total|hydro|wind)\b.*\bcapacity\b.*\b(?P<zone>{_ZONE_NAME})\b", re.IGNORECASE),
        plans.capacity,
    ),
    Intent(re.compile(rf"substations\b.*\b(?P<zone>{_ZONE_NAME})\b"), plans.substations),
    Intent(re.compile(r"notes say (?:about|on) (?P<topic>[^?]+)"), plans.documents),
]


def plan_for(question: str) -> Plan:
    """Give the plan for a question; one for none of the known kinds says which kinds there are."""
    for intent in INTENTS:
        match = intent.wording.search(question)
        if match:
            return intent.plan(match)
    return _unknown()


def _unknown() -> Plan:
    yield from ()
    return (
        "I am a planner with fixed rules and have none for this question. Ask for the transformers in a substation, "
        "the substations in a bidding zone, the AC or DC lines from a substation, the voltages of its AC lines, the "
        "total, hydro or wind capacity in a zone, a DC link between two zones, the 5 longest AC lines, the average "
        "production of a plant over the last 6 hours in steps of 1 hour, the average flow on a DC line yesterday in "
        "steps of 6 hours, what the search for a name finds, or what the notes say about something."
    )
