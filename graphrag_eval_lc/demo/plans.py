"""The rule-based planner's plans, one for each kind of question, and its deliberate mistakes."""

import json
import re
import unicodedata
from collections.abc import Generator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import Enum
from typing import Any

from graphrag_eval_lc.demo import queries
from graphrag_eval_lc.demo.queries import PROLOGUE
from graphrag_eval_lc.texts import counted


class Slip(Enum):
    """A kind of mistake that language models make."""

    FORGETS_PREFIX = "sends the query without its prefixes, reads the error and fixes it"
    WRONG_CLASS_CORRECTED = "searches in the wrong class, finds nothing and searches in all classes"
    WRONG_CLASS = "searches in the wrong class, finds nothing and stops"
    WRONG_COLUMN = "takes a property that sounds like the wanted one"
    FORGETS_FILTER = "leaves a condition out, so that there are too many rows"
    DROPS_DUPLICATES = "asks for distinct rows where equal ones count"
    WRONG_ORDER = "sorts the wrong way round"
    NO_ATTEMPT = "says that it cannot do it, without trying"
    GOES_ROUND = "tries the same two queries again and again until the recursion limit ends the run"
    TOO_FEW = "asks for fewer documents than the question is worth"
    IRI_FOR_MRID = "passes an IRI where an mRID is wanted, reads the error and fixes it"
    WRONG_GRANULARITY = "takes hours whatever steps of time are wanted"
    WRONG_PERIOD = "takes hours for days, so that the period is too short"
    GUESSES_TODAY = "takes today from memory instead of asking for it"


SLIPS = {
    ("transformers", "STAVANGER"): Slip.FORGETS_PREFIX,
    ("transformers", "KRISTIANSAND"): Slip.WRONG_COLUMN,
    ("substations", "NO5"): Slip.WRONG_CLASS_CORRECTED,
    ("substations", "SE3"): Slip.WRONG_CLASS,
    ("neighbours", "BERGEN"): Slip.FORGETS_FILTER,
    ("neighbours", "SYLLING"): Slip.FORGETS_PREFIX,
    ("neighbours", "FEDA"): Slip.WRONG_COLUMN,
    ("line_voltages", "RANA"): Slip.DROPS_DUPLICATES,
    ("capacity", "NO3"): Slip.WRONG_COLUMN,
    ("capacity", "NO5"): Slip.FORGETS_FILTER,
    ("dc_link", "NO4"): Slip.NO_ATTEMPT,
    ("longest_lines", "NO4"): Slip.WRONG_ORDER,
    ("longest_lines", "DC"): Slip.GOES_ROUND,
    ("search", "STEINS"): Slip.WRONG_CLASS,
    ("documents", "transformers"): Slip.TOO_FEW,
    ("production", "LIMFJORD"): Slip.WRONG_GRANULARITY,
    ("production", "MARKBYGDEN"): Slip.WRONG_PERIOD,
    ("flow", "DC STOCKHOLM-RAUMA 1"): Slip.GUESSES_TODAY,
    ("flow", "DC TONSTAD-WILSTER 1"): Slip.IRI_FOR_MRID,
}
"""The mistakes, by plan and by what the question names."""


_NORDIC_LETTERS = str.maketrans("øØæÆ", "oOaA")


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of a plan."""

    tool: str
    args: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Observation:
    """The outcome of a tool call: its text, and whether it succeeded."""

    text: str
    succeeded: bool

    @property
    def rows(self) -> list[dict[str, str]]:
        """The rows of SPARQL JSON results, by column; none for an error."""
        if not self.succeeded:
            return []
        bindings = json.loads(self.text)["results"]["bindings"]
        return [{column: term["value"] for column, term in row.items()} for row in bindings]


Plan = Generator[list[Call], list[Observation], str]
"""Yields the calls to make at once, is sent their outcomes, and returns the answer."""


def found(name: str, class_name: str | None) -> Generator[list[Call], list[Observation], str | None]:
    """Look up an IRI; if nothing is found, try the name without Nordic letters."""
    for spelling in dict.fromkeys((name, _without_nordic_letters(name))):
        [seen] = yield [search(spelling, class_name)]
        if seen.rows:
            return seen.rows[0]["iri"]
    return None


def queried(query: str, *, forgets_prefix: bool = False) -> Generator[list[Call], list[Observation], Observation]:
    """Run a query; with ``forgets_prefix`` it fails first, and is sent again with its prefixes."""
    if forgets_prefix:
        [seen] = yield [Call("sparql_query", {"query": query})]
        if seen.succeeded:
            return seen
    [seen] = yield [Call("sparql_query", {"query": PROLOGUE + query})]
    return seen


def search(name: str, class_name: str | None) -> Call:
    """Return the tool call that searches a name, optionally only among the things of a class."""
    return Call("autocomplete_search", {"query": name} | ({"result_class": class_name} if class_name else {}))


def _without_nordic_letters(name: str) -> str:
    decomposed = unicodedata.normalize("NFKD", name.translate(_NORDIC_LETTERS))
    return decomposed.encode("ascii", "ignore").decode().upper()


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
    return _things_listed(f"{name} has", "transformer", names)


def substations(question: re.Match[str]) -> Plan:
    """Answer which substations a bidding zone has."""
    name = question["zone"]
    slip = SLIPS.get(("substations", name))
    errs = slip in (Slip.WRONG_CLASS, Slip.WRONG_CLASS_CORRECTED)
    zone = yield from found(name, "cim:SubGeographicalRegion" if errs else ZONE)
    if zone is None and slip is Slip.WRONG_CLASS_CORRECTED:
        zone = yield from found(name, None)
    if zone is None:
        return f"I found no bidding zone named {name}, so I cannot list its substations."
    seen = yield from queried(queries.substations(zone))
    return _things_listed(f"{name} has", "substation", [row["name"] for row in seen.rows])


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
    return _things_listed(f"By {current} lines {name} has", "neighbour", [row["name"] for row in seen.rows])


def line_voltages(question: re.Match[str]) -> Plan:
    """Answer at which voltages the AC lines of a substation run, one for each line."""
    name = question["name"]
    substation = yield from found(name, SUBSTATION)
    if substation is None:
        return f"I found no substation named {name}."
    distinct = SLIPS.get(("line_voltages", name)) is Slip.DROPS_DUPLICATES
    seen = yield from queried(queries.line_voltages(substation, distinct=distinct))
    return _things_listed(f"{name} has", "AC line", [f"{float(row['voltage']):g} kV" for row in seen.rows])


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
        while True:
            for class_name in ("DCLineSegment", "DCLine"):
                yield from queried(queries.dc_lines_of_class(class_name, count))
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
    return _things_listed(f"The search for {name} finds", "thing", hits)


def documents(question: re.Match[str]) -> Plan:
    """Answer with the first sentences of the best documents."""
    topic = question["topic"]
    too_few = any(SLIPS.get(("documents", word)) is Slip.TOO_FEW for word in topic.split())
    [seen] = yield [Call("retrieval", {"query": topic, "k": 2 if too_few else 5})]
    texts = [document["text"] for document in json.loads(seen.text)] if seen.succeeded else []
    if not texts:
        return f"I found no notes on {topic}."
    return f"The notes on {topic} say:\n" + "\n".join(
        f"- {' '.join(re.split(r'(?<=[.!?]) ', text)[:3])}" for text in texts
    )


def _things_listed(start: str, noun: str, names: list[str]) -> str:
    if not names:
        return f"{start} no {noun}s in the graph."
    return f"{start} {counted(len(names), noun)}: {', '.join(names)}."


DC_LINE = "cim:DCLineSegment"

_AGGREGATES = {"average": "average", "highest": "max", "lowest": "min"}
_DAYS_BACK = {"yesterday": 1, "the day before yesterday": 2}
_REMEMBERED_TODAY = date(2025, 6, 1)


def production(question: re.Match[str]) -> Plan:
    """Answer how much a generating unit produced over the last hours or days."""
    name = question["name"]
    slip = SLIPS.get(("production", name))
    generating_unit = yield from found(name, None)
    if generating_unit is None:
        return f"I found no generating unit named {name}."
    period = "hour" if slip is Slip.WRONG_PERIOD else question["period"]
    granularity = "1h" if slip is Slip.WRONG_GRANULARITY else _granularity(question)
    start = f"{question['count']}{period[0]}-ago"
    points = yield from _data_points(generating_unit, question, start, "now", granularity)
    return _values_listed(f"The {question['aggregate']} production of {name}", points)


def flow(question: re.Match[str]) -> Plan:
    """Answer how much flowed on a DC line on a day that counts from today."""
    name = question["name"]
    slip = SLIPS.get(("flow", name))
    [hit, *clock] = yield [search(name, DC_LINE), *([] if slip is Slip.GUESSES_TODAY else [Call("now", {})])]
    if not hit.rows:
        return f"I found no DC line named {name}."
    today = datetime.fromisoformat(clock[0].text).date() if clock else _REMEMBERED_TODAY
    day = today - timedelta(days=_DAYS_BACK[question["day"]])
    start, end = (f"{each}T00:00:00Z" for each in (day, day + timedelta(days=1)))
    gives_iri = slip is Slip.IRI_FOR_MRID
    line = hit.rows[0]["iri"]
    points = yield from _data_points(line, question, start, end, _granularity(question), gives_iri=gives_iri)
    return _values_listed(f"The {question['aggregate']} flow on {name}", points)


def _granularity(question: re.Match[str]) -> str:
    return f"{question['step']}{question['step_unit'][0]}"


def _data_points(
    iri: str, question: re.Match[str], start: str, end: str, granularity: str, *, gives_iri: bool = False
) -> Generator[list[Call], list[Observation], list[tuple[str, str]]]:
    """Get the times and values of a thing's first time series; an empty list if there are none."""
    mrid, series = iri.removeprefix("urn:uuid:"), []
    for each in (iri, mrid) if gives_iri else (mrid,):
        [seen] = yield [Call("retrieve_time_series", {"mrid": each})]
        if seen.succeeded:
            series = json.loads(seen.text)
            break
    if not series:
        return []
    aggregate = _AGGREGATES[question["aggregate"]]
    args = {"external_id": series[0]["external_id"], "start": start, "end": end}
    args |= {"aggregates": [aggregate], "granularity": granularity}
    [seen] = yield [Call("retrieve_data_points", args)]
    points = json.loads(seen.text)["datapoints"] if seen.succeeded else []
    return [(point["timestamp"], f"{point[aggregate]:g} {series[0]['unit']}") for point in points]


def _values_listed(start: str, points: list[tuple[str, str]]) -> str:
    if not points:
        return f"{start} is not in the time series."
    return f"{start} was: " + ", ".join(f"{value} from {_shown(timestamp)}" for timestamp, value in points) + "."


def _shown(timestamp: str) -> str:
    return timestamp[: len("2025-11-12T09:30")].replace("T", " ")
