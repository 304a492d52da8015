"""What an agent did on one question, in order of time: its tool calls, and its model calls with their messages."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from graphrag_eval_lc.aggregation.sample_values import number
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.registry.metrics import COST, ELAPSED_SEC, TOTAL_TOKENS, metric_spec
from graphrag_eval_lc.report.formats import args_text, call_texts, if_known, known_only, shown_value, without_middle
from graphrag_eval_lc.texts import one_line, shown_name

_UNKNOWN: Final[Mapping[str, float]] = {}


def call_starts(result: Mapping[str, Any]) -> dict[str, float]:
    """Return when a question's calls of tools and models began, by timestamp, in seconds since the first of them.

    A timestamp is an ISO 8601 text; one without a zone is in UTC, and one that cannot be read is left out.
    """
    texts = [str(step.get("execution_timestamp")) for step in result.get("actual_steps") or ()]
    texts += [str(call.get("started_at")) for call in _mappings_in(result.get("llm_calls"))]
    times: dict[str, float] = {}
    for text in texts:
        try:
            time = datetime.fromisoformat(text)
            times[text] = (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            continue
    first = min(times.values(), default=0.0)
    return {text: round(time - first, 6) for text, time in times.items()}


def timeline(steps: Sequence[Mapping[str, Any]], starts: Mapping[str, float] = _UNKNOWN) -> list[dict[str, Any]]:
    """Return the tool calls in order, with their starts (see ``call_starts``) and their depth of nesting."""
    events: list[dict[str, Any]] = []
    last_with_id: dict[str, int] = {}
    for at, step in enumerate(steps):
        identifier, parent = step.get("id"), None
        if (parent_id := step.get("parent_id")) is not None:
            parent = last_with_id.get(str(parent_id))  # if calls share an id, the nearest one before
        event = {
            "kind": "tool",
            "name": shown_name(step.get("name")),
            "id": shown_name(at if identifier is None else identifier),
            "start": starts.get(str(step.get("execution_timestamp"))),
            "duration": number(step.get(ELAPSED_SEC)),
            "depth": 0 if parent is None else events[parent]["depth"] + 1,
            "status": "error" if step.get("status") == "error" else "success",
            **call_texts(step.get("args")),
            **_found(step),
        }
        events.append(event)
        if identifier is not None:
            last_with_id[str(identifier)] = at
    return events


_CAPTURED: Final = frozenset(
    ("name", "id", "args", "status", "output", "error", "execution_timestamp", ELAPSED_SEC, "parent_id")
)


def _found(step: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call's output or error, the tool's own if they differ, its attempts, and the values of its metrics."""
    output, error = step.get("output"), step.get("error")
    found: dict[str, Any] = {}
    if output is not None and output != error:  # recorded runs may repeat the error
        found["output"] = shown_value(output)
    if error is not None:
        found["error"] = without_middle(error)
    more = step.keys() - _CAPTURED
    if not more:
        return found
    attempts = step.get("attempts")
    values = [
        {"name": shown_name(key), "value": step[key]}
        for key in step
        if key in more and number(step[key]) is not None and metric_spec(key).over == "steps"
    ]
    return found | known_only(
        {
            "attempts": attempts if isinstance(attempts, int) and attempts > 1 else None,
            "cached": step.get("cached") is True or None,
            "tool_output": if_known(shown_value, step.get("tool_output")),
            "tool_error": if_known(without_middle, step.get("tool_error")),
            "note": if_known(without_middle, step.get("comparison_error", step.get("output_cut"))),
            "measures": values or None,
        }
    )


_MOST_CALLS: Final = 200
_MOST_MESSAGES: Final = 2_000  # messages of one call
_LONGEST: Final = 100_000  # characters of a question's texts
_LEFT_OUT: Final = "left out, as the transcript is long; the whole is in responses.jsonl"
_SUMS: Final = ("tokens", "seconds", "usd")


def transcript(result: Mapping[str, Any], starts: Mapping[str, float] = _UNKNOWN) -> dict[str, Any] | None:
    """Return a question's model calls with their messages; malformed parts are passed over.

    ``starts`` is when they began (see ``call_starts``).

    Returns:
        ``calls``, each with its start in seconds since the first call of the question, if that is known, and if
        messages were kept the indices of its messages: ``before`` (ranges of input messages that earlier calls had,
        too), ``new`` (other input messages) and ``gave`` (the output message); ``messages``; how many calls are
        ``left_out``; and for each of the ``models`` how many calls there were and failed, and their known sums. None
        if no call was recorded.
    """
    kept = _mappings_in(result.get("llm_calls"))
    if not kept:
        return None
    messages: Any = result.get("llm_messages")
    has_messages = isinstance(messages, list) and any(
        "input_messages" in call or "output_message" in call for call in kept
    )
    messages, definitions = messages if has_messages else [], result.get("llm_tools")
    seen: set[int] = set()
    rows: list[dict[str, Any]] = []
    models: dict[str, dict[str, Any]] = {}
    for call in kept:
        row = _head(call, starts)
        model = models.setdefault(row["model"], {"model": row["model"], "calls": 0, "failed": 0})
        model["calls"] += 1
        model["failed"] += "error" in call
        for key in _SUMS:
            if key in row:
                model[key] = model.get(key, 0) + row[key]
        if len(rows) == _MOST_CALLS:
            continue
        if has_messages:
            given, gave = list(_places(call.get("input_messages"), len(messages))), call.get("output_message")
            row["before"] = _ranges(place for place in given if place in seen)
            row["new"] = list(dict.fromkeys(place for place in given if place not in seen))
            seen.update(given)
            if isinstance(gave, int) and 0 <= gave < len(messages):
                row["gave"] = gave
                seen.add(gave)
        if isinstance(definitions, list):
            names = [_tool_name(definitions[place]) for place in _places(call.get("tools"), len(definitions))]
            row |= {"tools": names} if names else {}
        rows.append(row)
    return {
        "messages": list(_shown_messages(messages, seen)),
        "calls": rows,
        "left_out": len(kept) - len(rows),
        "models": list(models.values()),
    }


def _places(ranges: Any, number_of_messages: int) -> Iterator[int]:
    left = _MOST_MESSAGES
    for each in ranges if isinstance(ranges, list) else ():
        if not isinstance(each, list) or len(each) != 2 or not all(isinstance(end, int) for end in each):
            continue
        start, stop = max(0, each[0]), min(each[1], number_of_messages, max(0, each[0]) + left)
        left -= max(0, stop - start)
        yield from range(start, stop)


def _ranges(places: Iterable[int]) -> list[list[int]]:
    ranges: list[list[int]] = []
    for place in places:
        if ranges and ranges[-1][1] == place:
            ranges[-1][1] += 1
        else:
            ranges.append([place, place + 1])
    return ranges


# What is shown of a call, by its keys.
_AMOUNTS: Final = {TOTAL_TOKENS: "tokens", ELAPSED_SEC: "seconds", COST: "usd", "first_token_sec": "first_token"}
_NAMES: Final = {"agent": "agent", "node": "node", "parent_id": "step", "finish_reason": "finish"}


def _head(call: Mapping[str, Any], starts: Mapping[str, float]) -> dict[str, Any]:
    """Return what a model call is and took; what is not known is left out."""
    head: dict[str, Any] = {"model": shown_name(call.get("model") or "unknown model")}
    if (start := starts.get(str(call.get("started_at")))) is not None:
        head["start"] = start
    for key, value in call.items():
        if key in _AMOUNTS and (amount := number(value)) is not None:
            head[_AMOUNTS[key]] = amount
        elif key in _NAMES and value is not None:
            head[_NAMES[key]] = shown_name(value)
    if isinstance(path := call.get("node_path"), list) and path:
        head["node"] = shown_name(" › ".join(map(str, path)))
    if (error := call.get("error")) is not None:
        head["error"] = without_middle(error)
    return head


def _tool_name(definition: Any) -> str:
    if not isinstance(definition, Mapping):
        return shown_name(definition)
    function = definition.get("function")
    name = function.get("name") if isinstance(function, Mapping) else None
    return shown_name(name or definition.get("name") or definition.get("type") or "tool")


def _shown_messages(messages: Sequence[Any], wanted: set[int]) -> Iterator[dict[str, Any] | None]:
    """Yield the wanted messages, and None for the others; once the texts are too long, only the messages' roles."""
    left = _LONGEST
    for place, message in enumerate(messages):
        if place not in wanted:
            yield None
            continue
        shown = _message(message if isinstance(message, Mapping) else {"content": message})
        left -= sum(len(text) for text in (shown.get("text", ""), *(call["args"] for call in shown.get("calls", ()))))
        if left < 0:
            shown = {"role": shown["role"], "note": _LEFT_OUT}
        yield shown


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    texts = (_content(message.get("content")), str(message.get("refusal") or ""))
    calls = [
        known_only(
            {
                "name": shown_name(call.get("name") or "tool"),
                "args": args_text(call.get("args")),
                "id": if_known(shown_name, call.get("id")),
                "error": if_known(without_middle, call.get("error")),
            }
        )
        for call in (*_mappings_in(message.get("tool_calls")), *_mappings_in(message.get("invalid_tool_calls")))
    ]
    length = message.get("full_length")
    return known_only(
        {
            "role": one_line(message.get("role") or "message", 30),
            "name": if_known(shown_name, message.get("name")),
            "answers": if_known(shown_name, message.get("tool_call_id")),
            "is_error": True if message.get("status") == "error" else None,
            "text": if_known(without_middle, "\n".join(filter(None, texts)) or None),
            "reasoning": if_known(without_middle, message.get("reasoning_content") or None),
            "calls": calls or None,
            "note": f"cut; it had {length:,} characters" if isinstance(length, int) else None,
        }
    )


def _content(content: Any) -> str:
    """Return a content as text: blocks of text as they are, others as JSON."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else shown_value(content)
    return "\n".join(
        str(block["text"])
        if isinstance(block, Mapping) and block.get("type") == "text" and isinstance(block.get("text"), str)
        else block
        if isinstance(block, str)
        else json_text(block)
        for block in content
    )


def _mappings_in(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
