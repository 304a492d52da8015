"""Runs in which every text from a dataset, agent, judge or person contains markup, scripts or worse."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from graphrag_eval_lc import BenchmarkRun, score_responses
from graphrag_eval_lc.judges.model_interface import Answer, Asked

LONG_OUTPUT_CHARACTERS = 10_000_000

_ATTACKS = (
    '</script><script>window.injected = "script"</script>',
    "<img class=injected src=x onerror=\"window.injected = 'img'\">",
    "\"'><svg class=injected onload=\"window.injected = 'svg'\"></svg>",
    "' autofocus onfocus='window.injected = 1' x='",
    "</title></style></textarea></template></noscript><iframe class=injected srcdoc='<b>'></iframe>",
    "<!-- ]]> {{ 7 * 191 }} {% raw %} ${7 * 191} &lt;b&gt; \\u003cb\\u003e `",
    "<a class=injected href='https://injected.example/'>markup</a>",
    "\u0000\u0001\u0007\b\u001b[31m\u007f\u0085\u2028\u2029\ufeff",
    "\u202eright to left\u202c \u2066isolate\u2069 \u200e\u200f שלום",
)


_SURROGATE = "\ud800"  # ids, names and questions with it are rejected; any other text may contain it


def hostile(place: str) -> str:
    """Return a text that does harm if it is interpreted as markup. It names its place."""
    return f"{place} {' '.join(_ATTACKS)} end of {place}"


def hostile_dataset() -> list[Any]:
    """Return two templates with three questions: one kind of step each, with hostile texts."""
    return [
        {
            "template_id": hostile(f"template {template}"),
            "questions": [_question(f"{template}.{number}", number) for number in range(3)],
        }
        for template in range(2)
    ]


def hostile_responses(*, is_better: bool = False) -> list[Any]:
    """Return correct, wrong and failed responses; the better ones have all rows.

    The output of the very first step is 10 MB long.
    """
    return [
        _response(question["id"], number % 3, is_better, LONG_OUTPUT_CHARACTERS if number == 0 else 0)
        for number, question in enumerate(
            question for template in hostile_dataset() for question in template["questions"]
        )
    ]


def hostile_run(folder: Path, *, is_better: bool = False) -> BenchmarkRun:
    """Score a run into a folder, with a hostile judge and a hostile evaluator."""
    return score_responses(
        hostile_dataset(),
        hostile_responses(is_better=is_better),
        output_dir=folder,
        config={"steps": {"names": {"query": "sparql_query", "search": "iri_discovery"}}},
        label=hostile("better label" if is_better else "label"),
        href="javascript:window.injected='href'",
        tags=[hostile("tag")],
        evaluators=[hostile_metric],
        llm=HostileJudge(),
        report=False,
    )


def hostile_metric(question: Any, response: Any) -> dict[str, Any]:
    """Return a score with a hostile reason."""
    return {hostile("metric"): 0.5, f"{hostile('metric')}_reason": hostile("reason of a metric")}


class HostileJudge:
    """A judge with hostile texts and claims."""

    name = hostile("judge")

    async def aask(self, system: str, user: str, schema: type[Answer]) -> Asked[Answer]:
        """Return an answer in the requested form."""
        return Asked(schema.model_validate(_judgement(schema)), 0.001)


def _judgement(schema: type[BaseModel]) -> dict[str, Any]:
    if "true_positives" in schema.model_fields:
        claims = ("true_positives", "false_positives", "false_negatives")
        return {"reason": hostile("reason of a judge"), **{name: [hostile(f"claim in {name}")] for name in claims}}
    if "verdict" in schema.model_fields:
        return {"reason": hostile("reason of a verdict"), "verdict": 1}
    return {"statements": [{"statement": hostile("statement"), "reason": hostile("why"), "attributed": 1}]}


def _question(name: str, number: int) -> dict[str, Any]:
    reference = {"output": _rows(range(3)), "output_media_type": "application/sparql-results+json"}
    return {
        "id": hostile(f"question {name}"),
        "question_text": hostile(f"text of {name}"),
        "reference_answer": hostile(f"reference answer of {name}"),
        "reference_steps": [
            [{"name": "iri_discovery", "args": {"query": hostile("name")}, "output": f"urn:{number}"}],
            [
                {"name": "sparql_query", "args": {"query": hostile("reference query")}, **reference},
                {"name": hostile("tool"), "output": hostile("output") + _SURROGATE},
                {"name": "retrieval", "args": {hostile("key"): hostile("value")}, "output": _contexts()},
            ],
        ],
        hostile("further key"): hostile("further value"),
    }


def _response(question_id: str, number: int, is_better: bool, more_characters: int) -> dict[str, Any]:
    response = {
        "question_id": question_id,
        "actual_answer": hostile("answer") + _SURROGATE,
        "actual_steps": _steps(number, is_better, more_characters),
        "capture_warnings": [hostile("warning")],
        "failed_attempts": [{"error": f"{hostile('earlier kind')}: {hostile('earlier error')}", "elapsed_sec": 0.5}],
        "llm_calls": _model_calls(),
        "llm_messages": _messages(more_characters),
        "llm_tools": [{"type": "function", "function": {"name": hostile("defined tool")}}],
        "run_id": hostile("run id"),
        "started_at": hostile("start"),
        "tags": [hostile("tag of a run")],
        "metadata": {hostile("key of metadata"): hostile("value of metadata")},
        "input_tokens": 9,
        "output_tokens": 2,
        "total_tokens": 11,
        "elapsed_sec": 4.0 + number,
    }
    if number == 2 and not is_better:
        response["error"] = f"{hostile('kind of error')}: {hostile('error')}"
    return response


def _model_calls() -> list[dict[str, Any]]:
    call = {"model": hostile("model"), "input_tokens": 9, "output_tokens": 2, "elapsed_sec": 0.25}
    place = {
        "agent": hostile("agent"),
        "node": "n",
        "node_path": [hostile("node"), "n"],
        "parent_id": hostile("around"),
        "finish_reason": hostile("length"),
    }
    first = {**call, "input_messages": [[0, 2]], "output_message": 2, "tools": [[0, 1]], **place}
    return [first, {**call, "input_messages": [[0, 4]], "error": hostile("error of a model") + _SURROGATE}]


def _messages(more_characters: int) -> list[dict[str, Any]]:
    markup = "<b class=injected>"
    call = {"name": hostile("called tool"), "args": {hostile("said"): hostile("value")}, "id": hostile("id of a call")}
    return [
        {"role": hostile("role"), "content": hostile("system prompt") + markup * (more_characters // len(markup))},
        {"role": "user", "content": [{"type": "text", "text": hostile("prompt")}, {"type": hostile("block")}]},
        {
            "role": "assistant",
            "content": hostile("message") + _SURROGATE,
            "name": hostile("author"),
            "tool_calls": [call],
            "invalid_tool_calls": [{**call, "error": hostile("why not valid")}],
            "refusal": hostile("refusal"),
            "reasoning_content": hostile("reasoning"),
        },
        {
            "role": "tool",
            "content": hostile("what a tool said"),
            "tool_call_id": hostile("answered"),
            "status": "error",
        },
    ]


def _steps(number: int, is_better: bool, more_characters: int) -> list[dict[str, Any]]:
    rows = range(3) if is_better or number == 0 else range(2, 5)
    markup = "<b class=injected>"
    found = f"urn:{number} {hostile('found')} {markup * (more_characters // len(markup))} {hostile('tail')}"
    output = hostile("output" if is_better or number == 0 else "wrong output") + _SURROGATE
    problem = hostile("error of a step") + _SURROGATE
    outcomes: list[dict[str, Any]] = [
        {"name": "search", "output": found},
        {"name": "query", "args": {"query": hostile("query")}, "error": problem, "attempts": 3},
        {"name": "query", "args": {"query": hostile("query")}, "output": _rows(rows)},
        {"name": hostile("tool"), "args": {hostile("argument"): [hostile("item") + _SURROGATE]}, "output": output},
        {"name": "retrieval", "args": {"query": hostile("search")}, "output": _contexts()},
    ]
    ids = [f"call {position} {hostile('id')}" for position in range(len(outcomes))]
    return [
        {
            "args": {},
            **outcome,
            "id": identifier,
            "status": "error" if "error" in outcome else "success",
            "execution_timestamp": f"2026-01-05T10:00:0{position}.000000Z",
            "elapsed_sec": 0.75,
            **({"parent_id": ids[0]} if position == 1 else {}),
        }
        for position, (identifier, outcome) in enumerate(zip(ids, outcomes, strict=True))
    ]


def _rows(numbers: Sequence[int]) -> str:
    variable = hostile("variable")
    values = [{variable: {"type": "literal", "value": hostile(f"cell {number}")}} for number in numbers]
    return json.dumps({"head": {"vars": [variable]}, "results": {"bindings": values}})


def _contexts() -> str:
    return json.dumps([{"id": hostile("document"), "text": hostile("text of a document")}])
