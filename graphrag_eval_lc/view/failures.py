"""Why questions failed: each failure with its reason, and groups of like failures, found by rules from the diagnosis.

A group is named by what differs (a property, a tool, a kind of error), never by values, IRIs or numbers.
"""

import heapq
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from graphrag_eval_lc.aggregation import reason_of
from graphrag_eval_lc.aggregation.sample_values import unfulfilled_step
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.records import NO_RESPONSE, PAUSED
from graphrag_eval_lc.registry.metric_spec import reason_key
from graphrag_eval_lc.registry.metrics import STEPS_SCORE, metric_spec
from graphrag_eval_lc.texts import one_line
from graphrag_eval_lc.view.samples import FAILED, QUESTION_LENGTH, SeenSample, State, Verdict

REASON_LENGTH = 300
_KIND: Final = 100
_LABEL: Final = 60
_CLASS = re.compile(r"([A-Za-z_][\w.]*(?:Error|Exception|Timeout|Interrupt|Exit|Group|Cancelled))(?=[:(\s]|$)")
# What differs between texts of one kind: numbers, IRIs, ids with digits, and texts in quotes or brackets.
_PARTICULAR = re.compile(r"""\([^()]*\)|'[^']*'|"[^"]*"|\b[\w+-]+://\S*|\burn:\S*|\S*\d\S*""")
_TIMES: Final = frozenset(("start", "end"))


class Kind(NamedTuple):
    """A kind of failure: its name, and a sentence that distinguishes groups of this kind."""

    name: str
    title: str


@dataclass(frozen=True, slots=True)
class Failure:
    """A sample that is not right, with what one line shows of it; long texts are cut."""

    key: str  # the question's id, with the repeat from the second on
    question_id: str
    repeat: int
    template_id: str
    question: str
    state: State
    metric: str | None  # the score that decided; None if none was measured
    score: float | None
    kind: str
    group: str  # the sentence that the failures of its group share
    reason: str  # the error, or what the first wrong step lacks
    expected: str | None  # the reference answer
    received: str | None  # the agent's answer

    @property
    def score_text(self) -> str:
        """Its score, or that it is an error."""
        return "error" if self.state == "error" or self.score is None else f"{self.score:.2f}"


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Failures of one kind: a sentence, how many samples failed so, and the worst one's question and reason."""

    kind: str
    title: str
    count: int
    question: str
    example: str  # the reason
    keys: tuple[str, ...]  # of all, the worst first


@dataclass(frozen=True, slots=True)
class FailurePart:
    """The groups of failures in one part of the agent's work, such as its queries, the largest first."""

    title: str
    count: int
    groups: tuple[FailureGroup, ...]


def parts_of(groups: Iterable[FailureGroup]) -> tuple[FailurePart, ...]:
    """Return groups by the part of the agent's work that they are about, the part with most failures first."""
    by_title: dict[str, list[FailureGroup]] = {}
    for group in groups:
        by_title.setdefault(_PARTS.get(group.kind, group.title), []).append(group)
    parts = [
        FailurePart(title if len(each) > 1 else each[0].title, sum(group.count for group in each), tuple(each))
        for title, each in by_title.items()
    ]
    return tuple(sorted(parts, key=lambda part: -part.count))


def lines_of(parts: Sequence[FailurePart], most: int) -> tuple[list[tuple[str, str, FailureGroup | None]], int]:
    """Return the lines of a table of parts and their groups, and how many groups are left out.

    Each line has a count, a title and a group. A part with several groups has one line without a group, followed by a
    line without a count for each of its groups.
    """
    lines: list[tuple[str, str, FailureGroup | None]] = []
    for part in parts:
        if len(part.groups) == 1:
            lines.append((f"{part.count:,}", part.title, part.groups[0]))
            continue
        lines.append((f"{part.count:,}", f"{part.title}:", None))
        for group in part.groups:
            count = f" ({group.count:,})" if group.count > 1 else ""
            lines.append(("", f"· {group.title}{count}", group))
    return lines[:most], sum(group is not None for _, _, group in lines[most:])


def why(result: Mapping[str, Any], verdict: Verdict) -> str:
    """Return in one line why a result is not right; empty if its diagnosis cannot be read."""
    try:
        reason = reason_of(result)
        reason = with_label(reason, (unfulfilled_step(result) or ({},))[0])
    except (AttributeError, IndexError, KeyError, TypeError):  # a diagnosis that another tool wrote or cut
        reason = ""
    if verdict.metric not in (None, STEPS_SCORE) and verdict.state != "error":
        judged = result.get(metric_spec(str(verdict.metric)).reason_key or reason_key(str(verdict.metric)))
        reason = reason if judged is None else str(judged)
    return one_line(reason, REASON_LENGTH)


def with_label(reason: str, step: Mapping[str, Any]) -> str:
    """Return the reason why an IRI was found or not, and add the label that the reference step searches for.

    The label is the only text among that step's arguments. Any other reason is returned unchanged.
    """
    iri, args = step.get("output"), step.get("args")
    if " in the output" not in reason or not isinstance(iri, str) or not iri or f"{iri} is " not in reason:
        return reason
    texts = [value for value in args.values() if isinstance(value, str)] if isinstance(args, Mapping) else []
    return reason if len(texts) != 1 else reason.replace(iri, f"{one_line(texts[0], _LABEL)} ({iri})", 1)


def kind_of_failure(result: Mapping[str, Any], verdict: Verdict) -> Kind:
    """Return the kind of a failure by the rules of this file, which ignore values."""
    if verdict.state == "error":
        error = result.get("error") or "failed without a message"
        if error == NO_RESPONSE:
            return Kind("no answer", "No response")
        kind = kind_of(error)
        known = _ERRORS.get(kind.rpartition(".")[2])
        return Kind("error", f"{known} ({kind})" if known else kind)
    if verdict.metric not in (None, STEPS_SCORE):
        return Kind("answer", f"{verdict.metric} is not in full")
    try:
        found = unfulfilled_step(result)
        return Kind("other", "More calls than needed") if found is None else _kind_of_step(*found)
    except (AttributeError, IndexError, KeyError, TypeError):
        return Kind("other", "The diagnosis cannot be read")


def kind_of(error: Any) -> str:
    """Return the kind of an error: the class that its text begins with, else the text without its particulars."""
    text = str(error)
    named = _CLASS.match(text)
    return one_line(named[1], _KIND) if named else without_particulars(text)


def without_particulars(text: Any) -> str:
    """Return a text without its values, IRIs and numbers, so that like texts are equal."""
    return one_line(_PARTICULAR.sub("…", one_line(text, 2 * _KIND)), _KIND)


# What well-known errors of agents, models and servers mean.
_ERRORS: Final[Mapping[str, str]] = {
    "GraphRecursionError": "The agent reached its recursion limit",
    **dict.fromkeys(("TimeoutError", "APITimeoutError", "ReadTimeout", "ConnectTimeout"), "No answer in time"),
    "RateLimitError": "A server refused more requests",
    **dict.fromkeys(("AuthenticationError", "PermissionDeniedError"), "A server refused the key"),
    **dict.fromkeys(
        ("APIConnectionError", "ConnectError", "ConnectionError", "ConnectionRefusedError"),
        "A server could not be reached",
    ),
    "BadRequestError": "A server refused the request",
    "InternalServerError": "A server failed",
    "OutputParserException": "The model's output could not be parsed",
    "ContextOverflowError": "The messages are too long for the model",
}
# The pattern of a reason, the kind that it means, and the sentence, into which the pattern's groups are inserted.
_RULES: Final[tuple[tuple[re.Pattern[str], str, str], ...]] = tuple(
    (re.compile(pattern, re.DOTALL), name, title)
    for pattern, name, title in (
        (
            r"the agent did not call (.+?)(?:; it called .*| nor any other tool.*)?$",
            "never sent",
            "{0} was never called",
        ),
        (f"{re.escape(PAUSED)}$", "paused", "The run is paused and waits to be resumed"),
        (r"the agent called \S+, but steps\.names", "never sent", "steps.names maps the tool to another name"),
        (r"matched(?: in part)? \(([^)]+)\):", "right call, wrong place", "The right call: {0}"),
        (r"\d+ calls? of (.+?) failed: (.*)", "tool error", "{0} failed: {1}"),
        (r"The actual results have no rows", "empty result", "The result is empty"),
        (r"another JSON value at results\.bindings\[0\]: nothing", "nothing found", "{name} found nothing"),
        (r"The actual output is (?:a text that reports )?(an error): (.*)", "tool error", "{name} returned {0}: {1}"),
        (r"The actual output is ", "unreadable output", "The output of {name} cannot be read"),
        (r"(?:The output|the output).* (?:cannot be|is not) ", "unreadable output", "The output cannot be read"),
        (r"\S+ is not in the output of (.+)", "nothing found", "{0} did not find the IRI"),
        (r"\d+ of \d+ relevant (\w+)", "missed documents", "Relevant {0} were not retrieved"),
        (r".*\bin another order", "wrong order", "The rows are in another order"),
        (
            r".*(?:Only|only) \d+ columns?\b|.*(?:No|no) result column matches",
            "missing column",
            "A required column is missing",
        ),
        (r".*\brows? (?:is|are) missing.*\bextra rows?\b", "wrong rows", "Some rows are missing, others are extra"),
        (r".*\bextra rows?\b", "extra rows", "Extra rows"),
        (r".*\brows? (?:is|are) missing", "missing rows", "Rows are missing"),
        (r"another (?:text|JSON value)", "another output", "The output of {name} differs"),
    )
)
# By the cause of a failed query (``query.cause`` of the diagnosis), its kind and the sentence of its group.
_CAUSES: Final[Mapping[str, tuple[str, str]]] = {
    "syntax": ("broken query", "The query is broken"),
    "undeclared_prefix": ("broken query", "A prefix is not declared"),
    "unknown_class": ("wrong class", "{what}"),
    "unknown_property": ("wrong property", "{what}"),
    "property_not_on_class": ("wrong property", "{what}"),
    "unbound_variable": ("broken query", "A column is never bound"),
    "disconnected_patterns": ("broken query", "Patterns are not connected"),
    "too_large": ("large query", "The query is too large to be checked"),
    "class": ("wrong class", "Wrong class: {actual} for {expected}"),
    "property": ("wrong property", "Wrong property: {actual} for {expected}"),
    "path": ("wrong path", "Wrong path: {actual} for {expected}"),
    "direction": ("wrong direction", "A property is used the other way round"),
    "inverse": ("wrong direction", "An inverse property is used"),
    "entity": ("wrong entity", "Wrong entity: the query is about a different one"),
    "value": ("wrong value", "A value in the query differs"),
    "missing_filter": ("missing filter", "A filter is missing"),
    "extra_filter": ("extra filter", "An extra filter"),
    "filter": ("wrong filter", "A filter differs"),
    "missing_pattern": ("missing pattern", "A pattern is missing"),
    "extra_pattern": ("extra pattern", "An extra pattern"),
    "group": ("wrong group", "A pattern is optional or required, unlike in the reference"),
    "aggregate": ("wrong aggregate", "Wrong aggregate or grouping"),
    "columns": ("missing column", "A required column is missing"),
    "order": ("wrong order", "The query sorts differently"),
    "limit": ("wrong limit", "The limit differs"),
    "distinct": ("duplicates", "The query {sentence}"),
    "form": ("wrong form", "A different form of query"),
}
_SEVERAL: Final = Kind("other query", "The query differs in several ways")
# The parts of the agent's work with several kinds of failures; any other kind is a separate part.
_PARTS: Final[Mapping[str, str]] = {
    **dict.fromkeys((kind for kind, _ in _CAUSES.values()), "Wrong query"),
    **dict.fromkeys(("wrong rows", "extra rows", "missing rows", "empty result", _SEVERAL.name), "Wrong query"),
    "nothing found": "Nothing found",
    **dict.fromkeys(("wrong time", "wrong argument"), "Wrong arguments"),
    **dict.fromkeys(("error", "tool error"), "Errors"),
}
_ARGUMENT = re.compile(r"(?:^|; )(\w+) is (?:missing|.*? instead of )")


def _kind_of_step(step: Mapping[str, Any], diagnosis: Mapping[str, Any]) -> Kind:
    name, reason = str(step["name"]), str(diagnosis["reason"])
    if diagnosis.get("outcome") == "undecided":
        return Kind("undecided", one_line(f"{name}: it is not known whether it fits", _KIND))
    if (query := diagnosis.get("query")) is not None:
        if (kind_of_query := _kind_of_query(query)) is not None:
            return kind_of_query
        reason = reason.removeprefix(f"{query.get('sentence')} ")
    for pattern, kind, title in _RULES:
        if (found := pattern.match(reason)) is None:
            continue
        parts = [kind_of(part) if at else part for at, part in enumerate(found.groups())]
        return Kind(kind, one_line(title.format(*parts, name=name), _KIND))
    if arguments := dict.fromkeys(_ARGUMENT.findall(reason)):
        is_time = _TIMES.issuperset(arguments)
        title = f"Wrong time in {name}" if is_time else f"Wrong argument of {name}: {', '.join(arguments)}"
        return Kind("wrong time" if is_time else "wrong argument", one_line(title, _KIND))
    return Kind("other", one_line(f"{name}: {without_particulars(reason)}", _KIND))


def _kind_of_query(query: Mapping[str, Any]) -> Kind | None:
    """Return the kind that the cause of a failed query means; None if nothing in it explains the failure."""
    cause, differences = query.get("cause"), query.get("differences") or ()
    name, title = _CAUSES.get(str(cause), (None, ""))
    if name is None:
        return _SEVERAL if cause is None and differences else None
    about = (
        each for each in (*(query.get("findings") or ()), *differences) if cause in (each.get("rule"), each.get("kind"))
    )
    first: Mapping[str, Any] = next(about, {})
    parts = {key: first.get(key, "") for key in ("what", "sentence", "expected", "actual")}
    return Kind(name, one_line(title.format(**parts), _KIND))


# Errors first, then by score, then in the order of the results; the highest is the worst.
_Rank = tuple[int, float, int]
_FEW: Final = 10  # samples without a response that are shown like others
_TEXTS: Final = ("question", "group", "reason", "expected", "received")


@dataclass(slots=True)
class _Group:
    kind: str
    members: list[tuple[_Rank, str]] = field(default_factory=list)  # with their keys
    worst: tuple[_Rank, str, str] | None = None  # with its question and reason


class Failures:
    """The failures of a run: all of them in groups, and the worst in full, at most so many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._groups: dict[str, _Group] = {}
        self._samples = self._unanswered = 0
        # The worst with a response, and the worst without.
        self._worst: tuple[list[tuple[_Rank, Failure]], list[tuple[_Rank, Failure]]] = ([], [])

    def add(self, sample: SeenSample, verdict: Verdict) -> Failure | None:
        """Add a sample, and return its failure; None if it is right or was not scored."""
        self._samples += 1
        if verdict.state not in FAILED:
            return None
        result, kind = sample.result, kind_of_failure(sample.result, verdict)
        expected, received = (
            None if (text := result.get(key)) is None else one_line(text, QUESTION_LENGTH)
            for key in ("reference_answer", "actual_answer")
        )
        failure = Failure(
            key=sample.key,
            question_id=sample.question_id,
            repeat=sample.repeat,
            template_id=sample.template_id,
            question=sample.question,
            state=verdict.state,
            metric=verdict.metric,
            score=verdict.score,
            kind=kind.name,
            group=kind.title,
            reason=why(result, verdict),
            expected=expected,
            received=received,
        )
        is_not_error, score = verdict.rank
        rank = -int(is_not_error), -score, -self._samples
        group = self._groups.setdefault(kind.title, _Group(kind.name))
        group.members.append((rank, sample.key))
        this = rank, failure.question, failure.reason
        group.worst = max(group.worst or this, this)
        has_no_response = result.get("error") == NO_RESPONSE
        self._unanswered += has_no_response
        worst = self._worst[has_no_response]
        if len(worst) < self._most:
            heapq.heappush(worst, (rank, failure))
        elif self._most:
            heapq.heappushpop(worst, (rank, failure))
        return failure

    @property
    def is_mostly_unanswered(self) -> bool:
        """Whether more than half of the samples, and more than a few, have no response."""
        return self._unanswered > _FEW and 2 * self._unanswered > self._samples

    def groups(self) -> tuple[FailureGroup, ...]:
        """Return the groups, the largest first; of equal ones the first seen."""
        return tuple(
            FailureGroup(
                kind=group.kind,
                title=masked_text(title),
                count=len(group.members),
                question=masked_text(group.worst[1] if group.worst else ""),
                example=masked_text(group.worst[2] if group.worst else ""),
                keys=tuple(key for _, key in sorted(group.members, reverse=True)),
            )
            for title, group in sorted(self._groups.items(), key=lambda item: -len(item[1].members))
        )

    def worst(self) -> tuple[Failure, ...]:
        """Return the worst, secrets masked; if most samples have no response, those that have one first."""
        answered, others = (sorted(each, reverse=True) for each in self._worst)
        both = [*answered, *others]
        if not self.is_mostly_unanswered:
            both.sort(reverse=True)
        shown = []
        for _, failure in both[: self._most]:
            texts = {key: text for key in _TEXTS if (text := getattr(failure, key)) is not None}
            masked: dict[str, Any] = {key: masked_text(text) for key, text in texts.items()}
            shown.append(replace(failure, **masked))
        return tuple(shown)
