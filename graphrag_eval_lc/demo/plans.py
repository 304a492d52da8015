"""The rule-based planner's plans for questions on the graph and the documents."""

import json
import re

from graphrag_eval_lc.demo import queries
from graphrag_eval_lc.demo.slips import SLIPS, Slip
from graphrag_eval_lc.demo.steps import Call, Plan, found, queried, search
from graphrag_eval_lc.texts import counted

SUBSTATION = "cim:Substation"
ZONE = "nc:BiddingZone"


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


def line_voltages(question: re.Match[str]) -> Plan:
    """Answer at which voltages the AC lines of a substation run, one for each line."""
    name = question["name"]
    substation = yield from found(name, SUBSTATION)
    if substation is None:
        return f"I found no substation named {name}."
    distinct = SLIPS.get(("line_voltages", name)) is Slip.DROPS_DUPLICATES
    seen = yield from queried(queries.line_voltages(substation, distinct=distinct))
    return _listing(f"{name} has", "AC line", [f"{float(row['voltage']):g} kV" for row in seen.rows])


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


def search_by_name(question: re.Match[str]) -> Plan:
    """Answer what a search finds in all classes."""
    name = question["name"]
    errs = SLIPS.get(("search", name)) is Slip.WRONG_CLASS
    [seen] = yield [search(name, SUBSTATION if errs else None)]
    hits = [f"{row['name']} ({re.split('[#/]', row['class'])[-1]})" for row in seen.rows]
    return _listing(f"The search for {name} finds", "thing", hits)


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


def _goes_round(count: int) -> Plan:
    while True:
        for class_name in ("DCLineSegment", "DCLine"):
            yield from queried(queries.dc_lines_of_class(class_name, count))


def _listing(start: str, noun: str, names: list[str]) -> str:
    if not names:
        return f"{start} no {noun}s in the graph."
    return f"{start} {counted(len(names), noun)}: {', '.join(names)}."


def _first_sentences(text: str, count: int = 3) -> str:
    return " ".join(re.split(r"(?<=[.!?]) ", text)[:count])
