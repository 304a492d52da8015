"""The rule-based planner's plans for questions on time series: production of generating units, flow on DC lines."""

import json
import re
from collections.abc import Generator
from datetime import date, datetime, timedelta
from typing import Any

from graphrag_eval_lc.demo.slips import SLIPS, Slip
from graphrag_eval_lc.demo.steps import Call, Observation, Plan, found, search

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
    return _listing(f"The {question['aggregate']} production of {name}", points)


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
    line = hit.rows[0]["iri"]
    points = yield from _data_points(
        line, question, start, end, _granularity(question), gives_iri=slip is Slip.IRI_FOR_MRID
    )
    return _listing(f"The {question['aggregate']} flow on {name}", points)


def _granularity(question: re.Match[str]) -> str:
    return f"{question['step']}{question['step_unit'][0]}"


def _data_points(
    iri: str, question: re.Match[str], start: str, end: str, granularity: str, *, gives_iri: bool = False
) -> Generator[list[Call], list[Observation], list[tuple[str, str]]]:
    """Give times and values of the first time series of a thing; none where it has no series or no values."""
    series = yield from _time_series(iri, gives_iri=gives_iri)
    if not series:
        return []
    aggregate = _AGGREGATES[question["aggregate"]]
    args = {"external_id": series[0]["external_id"], "start": start, "end": end}
    args |= {"aggregates": [aggregate], "granularity": granularity}
    [seen] = yield [Call("retrieve_data_points", args)]
    points = json.loads(seen.text)["datapoints"] if seen.succeeded else []
    return [(point["timestamp"], f"{point[aggregate]:g} {series[0]['unit']}") for point in points]


def _time_series(iri: str, *, gives_iri: bool) -> Generator[list[Call], list[Observation], list[dict[str, Any]]]:
    mrid = iri.removeprefix("urn:uuid:")
    for each in (iri, mrid) if gives_iri else (mrid,):
        [seen] = yield [Call("retrieve_time_series", {"mrid": each})]
        if seen.succeeded:
            series: list[dict[str, Any]] = json.loads(seen.text)
            return series
    return []


def _listing(start: str, points: list[tuple[str, str]]) -> str:
    if not points:
        return f"{start} is not in the time series."
    return f"{start} was: " + ", ".join(f"{value} from {_shown(timestamp)}" for timestamp, value in points) + "."


def _shown(timestamp: str) -> str:
    return timestamp[: len("2025-11-12T09:30")].replace("T", " ")
