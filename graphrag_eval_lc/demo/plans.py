"""The kinds of questions that the rule-based planner knows, and its plan for each."""

import json
import re
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from graphrag_eval_lc.demo import queries
from graphrag_eval_lc.demo.steps import Call, Plan, found, queried, search

SUBSTATION = "cim:Substation"
ZONE = "nc:BiddingZone"


class Slip(Enum):
    """A mistake as language models make them."""

    FORGETS_PREFIX = "sends the query without its prefixes, reads the error and mends it"
    WRONG_CLASS_MENDED = "searches in the wrong class, finds nothing and searches in all classes"
    WRONG_CLASS = "searches in the wrong class, finds nothing and gives up"
    WRONG_COLUMN = "takes a property that sounds like the wanted one"
    FORGETS_FILTER = "leaves a condition out, so that there are too many rows"
    WRONG_ORDER = "sorts the wrong way round"
    NO_ATTEMPT = "says that it cannot do it, without trying"
    GOES_ROUND = "tries the same two queries again and again until the recursion limit ends the run"
    TOO_FEW = "asks for fewer documents than the question is worth"


SLIPS = {
    ("transformers", "STAVANGER"): Slip.FORGETS_PREFIX,
    ("transformers", "KRISTIANSAND"): Slip.WRONG_COLUMN,
    ("substations", "NO5"): Slip.WRONG_CLASS_MENDED,
    ("substations", "SE3"): Slip.WRONG_CLASS,
    ("neighbours", "BERGEN"): Slip.FORGETS_FILTER,
    ("neighbours", "SYLLING"): Slip.FORGETS_PREFIX,
    ("neighbours", "FEDA"): Slip.WRONG_COLUMN,
    ("capacity", "NO3"): Slip.WRONG_COLUMN,
    ("capacity", "NO5"): Slip.FORGETS_FILTER,
    ("dc_link", "NO4"): Slip.NO_ATTEMPT,
    ("longest_lines", "NO4"): Slip.WRONG_ORDER,
    ("longest_lines", "DC"): Slip.GOES_ROUND,
    ("documents", "transformers"): Slip.TOO_FEW,
}
"""Where the planner errs, by the plan and what the question names, so that a run has something to find."""


def transformers(question: re.Match[str]) -> Plan:
    """Answer which transformers a substation has and what their rating is."""
    name = question["name"]
    slip = SLIPS.get(("transformers", name))
    substation = yield from found(name, SUBSTATION)
    if substation is None:
        return f"I found no substation named {name}."
    rating, unit = ("ratedU", "kV") if slip is Slip.WRONG_COLUMN else ("ratedS", "MVA")
    query = queries.transformers(substation, rating)
    seen = yield from queried(query, forgets_prefix=slip is Slip.FORGETS_PREFIX)
    names = [f"{row['name']} ({float(row[rating]):g} {unit})" for row in seen.rows]
    return _listing(f"{name} has", "transformer", names)


def substations(question: re.Match[str]) -> Plan:
    """Answer which substations a bidding zone has."""
    name = question["zone"]
    slip = SLIPS.get(("substations", name))
    errs = slip in (Slip.WRONG_CLASS, Slip.WRONG_CLASS_MENDED)
    zone = yield from found(name, "cim:SubGeographicalRegion" if errs else ZONE)
    if zone is None and slip is Slip.WRONG_CLASS_MENDED:
        zone = yield from found(name, None)
    if zone is None:
        return f"I found no bidding zone named {name}, so I cannot list its substations."
    seen = yield from queried(queries.substations(zone))
    return _listing(f"{name} has", "substation", [row["name"] for row in seen.rows])


def neighbours(question: re.Match[str]) -> Plan:
    """Answer which substations lie at the other ends of a substation's AC or DC lines."""
    name, current = question["name"], question["current"]
    slip = SLIPS.get(("neighbours", name))
    substation = yield from found(name, SUBSTATION)
    if substation is None:
        return f"I found no substation named {name}."
    queried_current = "AC" if slip is Slip.WRONG_COLUMN else current
    query = queries.neighbours(substation, queried_current, without_itself=slip is not Slip.FORGETS_FILTER)
    seen = yield from queried(query, forgets_prefix=slip is Slip.FORGETS_PREFIX)
    return _listing(f"By {current} lines {name} has", "neighbour", [row["name"] for row in seen.rows])


def capacity(question: re.Match[str]) -> Plan:
    """Answer how much generating capacity a bidding zone has, of all kinds or of one."""
    name = question["zone"]
    slip = SLIPS.get(("capacity", name))
    zone = yield from found(name, ZONE)
    if zone is None:
        return f"I found no bidding zone named {name}."
    kind = question["kind"].capitalize()
    kinds = [kind] if kind in ("Hydro", "Wind") and slip is not Slip.FORGETS_FILTER else ["Hydro", "Wind"]
    query = queries.machine_ratings(zone) if slip is Slip.WRONG_COLUMN else queries.capacity(zone, kinds)
    seen = yield from queried(query)
    if not seen.rows:
        return f"I could not add up the capacity of {name}."
    return f"The {kind.lower()} generating capacity of {name} is {float(seen.rows[0]['capacity']):g} MW."


def dc_link(question: re.Match[str]) -> Plan:
    """Answer whether a DC link joins two bidding zones."""
    names = [question["zone"], question["other_zone"]]
    if SLIPS.get(("dc_link", names[0])) is Slip.NO_ATTEMPT:
        return f"I cannot tell from the graph whether {names[0]} and {names[1]} are linked."
    hits = yield [search(name, ZONE) for name in names]
    if not all(seen.rows for seen in hits):
        return f"I did not find both bidding zones, {names[0]} and {names[1]}."
    seen = yield from queried(queries.dc_link(*(seen.rows[0]["iri"] for seen in hits)))
    linked = seen.succeeded and json.loads(seen.text)["boolean"]
    return f"{'Yes, a' if linked else 'No, no'} DC link joins {names[0]} and {names[1]}."


def longest_lines(question: re.Match[str]) -> Plan:
    """Answer which lines are the longest: of all, of one voltage, or with an end in one bidding zone."""
    count, name, kilovolts = int(question["count"]), question["zone"], question["kilovolts"]
    if SLIPS.get(("longest_lines", question["current"])) is Slip.GOES_ROUND:
        yield from _goes_round(count)
    condition = queries.has_voltage(kilovolts) if kilovolts else ""
    if name:
        zone = yield from found(name, ZONE)
        if zone is None:
            return f"I found no bidding zone named {name}."
        condition = queries.ends_in(zone)
    order = "ASC" if SLIPS.get(("longest_lines", name)) is Slip.WRONG_ORDER else "DESC"
    seen = yield from queried(queries.longest_lines(count, condition, order=order))
    return "The longest are: " + ", ".join(f"{row['name']} ({row['length']} km)" for row in seen.rows) + "."


def documents(question: re.Match[str]) -> Plan:
    """Answer from the documents: give the best ones in short."""
    topic = question["topic"]
    too_few = any(SLIPS.get(("documents", word)) is Slip.TOO_FEW for word in topic.split())
    k = 2 if too_few else 5
    [seen] = yield [Call("retrieval", {"query": topic, "k": k})]
    texts = [document["text"] for document in json.loads(seen.text)] if seen.succeeded else []
    if not texts:
        return f"I found no notes on {topic}."
    return f"The notes on {topic} say:\n" + "\n".join(f"- {_first_sentences(text)}" for text in texts)


class Intent(NamedTuple):
    """A kind of question: how it is worded, and the plan for it."""

    wording: re.Pattern[str]
    plan: Callable[[re.Match[str]], Plan]


_ZONE_NAME = r"[A-Z]{2}\d?(?:-[A-Z]{2})?"

INTENTS = [
    Intent(re.compile(r"transformers\b.*\b(?:substation|in|of|at) (?P<name>\w+)"), transformers),
    Intent(re.compile(rf"DC link\b.*\b(?P<zone>{_ZONE_NAME}) (?:and|to|with) (?P<other_zone>{_ZONE_NAME})"), dc_link),
    Intent(
        re.compile(
            r"(?P<count>\d+) longest (?:(?P<kilovolts>\d+) kV )?(?P<current>AC|DC) lines"
            rf"(?:.*\b(?P<zone>{_ZONE_NAME})\b)?"
        ),
        longest_lines,
    ),
    Intent(re.compile(r"(?P<current>AC|DC) lines?\b.*\b(?:from|to|with|of) (?P<name>\w+)"), neighbours),
    Intent(
        re.compile(rf"(?P<kind>total|hydro|wind)\b.*\bcapacity\b.*\b(?P<zone>{_ZONE_NAME})\b", re.IGNORECASE),
        capacity,
    ),
    Intent(re.compile(rf"substations\b.*\b(?P<zone>{_ZONE_NAME})\b"), substations),
    Intent(re.compile(r"notes say (?:about|on) (?P<topic>[^?]+)"), documents),
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
        "the substations in a bidding zone, the AC or DC lines from a substation, the total, hydro or wind capacity "
        "in a zone, a DC link between two zones, the 5 longest AC lines, or what the notes say about something."
    )


def _goes_round(count: int) -> Plan:
    while True:
        for class_name in ("DCLineSegment", "DCLine"):
            yield from queried(queries.dc_lines_of_class(class_name, count))


def _listing(start: str, noun: str, names: list[str]) -> str:
    if not names:
        return f"{start} no {noun}s in the graph."
    return f"{start} {len(names)} {noun}{'s' if len(names) > 1 else ''}: {', '.join(names)}."


def _first_sentences(text: str, count: int = 3) -> str:
    return " ".join(re.split(r"(?<=[.!?]) ", text)[:count])
