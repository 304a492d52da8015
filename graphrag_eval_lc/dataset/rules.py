"""The table of rules of ``validate``: the name of each rule, its severity, what is wrong, and how to fix it."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from graphrag_eval_lc.files.record_file import Finding, Location, Severity, quoted
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.matching.json_and_text import JSON
from graphrag_eval_lc.texts import shortened

_JSON: Final = JSON.serves[0][1]


class Rule(NamedTuple):
    """A rule: its severity, what is wrong, and how to fix it. The two texts have placeholders in braces."""

    severity: Severity
    what: str
    hint: str


UNANSWERED: Final = "the question has no response"
RULES: Final[Mapping[str, Rule]] = {
    # Files
    "repeated_key": Rule("error", "the key {key} is repeated, and only the last counts", "Remove one of them."),
    "changed_id": Rule("warning", "{what}", "{hint}"),
    "near_key": Rule("error", "the key {key} is read by nothing, and {meant} is missing", "Write {meant}."),
    # Datasets
    "no_question": Rule("error", "the dataset has no question", "Add questions: each has an id and a question_text."),
    "repeated_id": Rule("error", "two {kind}s have the id {id}", "Give each another id."),
    "same_question": Rule(
        "warning", "the same question is in another template, at {place}", "Keep it in one of them."
    ),
    "answer_number": Rule("warning", "{key} is {value}, not a text", "{in_quotes}"),
    "empty_group": Rule(
        "error", "an empty group of reference steps", "Remove it, or add the steps that belong to it."
    ),
    "switch": Rule(
        "error", "{key} is {value}, which is not true or false", "Write {key}: {meant}, without quotes."
    ),
    "output_number": Rule(
        "error", "the output is {value}, and texts are compared", "{quote}, or add output_media_type: " + f"{_JSON}."
    ),
    "output_type": Rule(
        "error",
        "the output is a {type}, and texts are compared",
        f"Add output_media_type: {_JSON}, or store the text that the tool returns.",
    ),
    "no_media_type": Rule(
        "warning",
        "output_media_type is missing, so the output is compared as {title}",
        "Add output_media_type: {meant}.",
    ),
    "other_media_type": Rule(
        "warning", "the media type {given} is read as {meant}", "Write output_media_type: {meant}."
    ),
    "unknown_media_type": Rule(
        "error",
        "the media type {given} is unknown, so that the output is compared as a text",
        "Write {near}, with an output of that kind.",
    ),
    "text_media_type": Rule(
        "warning",
        "outputs of the media type {given} cannot be compared, other than as the same text",
        "Keep it if the text must be the same, to the letter; else store an output that can be compared.",
    ),
    "results_as_text": Rule(
        "warning",
        "the output is SPARQL results and compared as a text, so that the order of its rows and its names count",
        "{verb} output_media_type: {meant}.",
    ),
    "rows_as_other": Rule(
        "warning",
        "a query returned the output, {form}, and it is compared as {title}, so that the order of its rows and its "
        "names count",
        "Have its rows compared: steps: {{kinds: {{{name}: rows}}}} in the config.",
    ),
    "columns_without_rows": Rule(
        "error",
        "required_columns are given, and the output is not rows, so that it is compared as {title}: {problem}",
        "Store the rows that the tool returns, or leave required_columns out.",
    ),
    "no_args": Rule("error", "a {name} step is compared by its args, and has none", "Add args."),
    "no_output": Rule("error", "no output to compare with", "Add output: what a good agent sees."),
    "unreadable_output": Rule(
        "error", "the output cannot be read as {title}: {problem}", "Store what the tool returns."
    ),
    "cut_output": Rule("error", "the output cannot be read as {title}: {problem}", "Store all that the tool returns."),
    "failed_check": Rule(
        "error", "the check of {kind} failed with {problem}", "Fix the step, or the function that checks it."
    ),
    "relevant_ids": Rule(
        "error", "{problem}", "List ids, or groups of ids of which one is enough, or map each id to its gain."
    ),
    # Responses
    "unknown_question": Rule("error", "a response to a question that the dataset does not have", "{hint}"),
    "answered_twice": Rule(
        "error", "two responses to the question {id}; the last one counts", "Remove one of them."
    ),
    "unanswered": Rule("error", UNANSWERED, "Ask the agent, or leave the question out."),
    "unknown_tool": Rule("error", "{what}", "{hint}"),
    "status_read_as": Rule("warning", "the status {status} is read as {meant}", "Write {meant}."),
    "unknown_status": Rule(
        "warning", "the status {status} is not success or error, and is not read", "Write success or error."
    ),
    "unknown_step_status": Rule(
        "error",
        "the status {status} is not success or error, so that the step counts as failed",
        "Write success or error.",
    ),
    "args_type": Rule(
        "error",
        "args are {value}, not a mapping, so that the step counts as called without arguments",
        "Give a mapping of names to values.",
    ),
    "actual_output_number": Rule("warning", "the output is {value}, not a text", "{in_quotes}"),
    "number_as_text": Rule(
        "error", "{key} is {value}, a text, so that it is not counted", "Write the number without quotes."
    ),
}  # fmt: skip


def found(rule: str, location: Location = (), *, line: int | None = None, **values: Any) -> Finding:
    """Return a finding of a rule at a location or a line; ``values`` fill the placeholders in the rule's texts."""
    severity, what, hint = RULES[rule]
    return Finding(what.format(**values), hint.format(**values), location, line, severity)


def in_quotes(value: object) -> str:
    """Return how to write a number as a text."""
    return f"Put it in quotes: {quoted(json_text(value))}."


def shown(value: object) -> str:
    """Return a value as messages show it: a text in quotes, true and false as in JSON, a number with its type."""
    if isinstance(value, bool):
        return json_text(value)
    return f"the number {json_text(value)}" if isinstance(value, int | float) else shortened(repr(value), 60)
