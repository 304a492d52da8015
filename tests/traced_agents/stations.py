"""Questions about stations, three tools (one of which fails), and a rule-based model over real HTTP.

Agents of other frameworks answer these questions; their steps are known in advance.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Call = tuple[str, dict[str, Any]]

# The model's tool calls by question, one list per answer.
PLANS: dict[str, list[list[Call]]] = {
    "Where is OSLO?": [[("find_station", {"name": "OSLO"})]],
    "What is the power of BERGEN?": [
        [("find_station", {"name": "BERGEN"})],
        [("power_of", {"station": "urn:BERGEN", "unit": "kW"})],
    ],
    "Is TROMSO broken?": [[("check", {"name": "TROMSO"})]],
    "Where are OSLO and BERGEN?": [[("find_station", {"name": "OSLO"}), ("find_station", {"name": "BERGEN"})]],
}
TOKENS = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
NO_DATA = "no data of TROMSO"


def find_station(name: str) -> str:
    """Find the IRI of a station by its name.

    Args:
        name: The name.
    """
    return json.dumps({"iri": f"urn:{name}"})


def power_of(station: str, unit: str = "MW") -> float:
    """Give the power of a station.

    Args:
        station: Its IRI.
        unit: The unit.
    """
    return 1000.5 if unit == "kW" else 1.0


def check(name: str) -> str:
    """Check whether a station is broken.

    Args:
        name: The name.
    """
    raise ValueError(f"no data of {name}")


TOOLS = (find_station, power_of, check)


def answer_to(question: str) -> str:
    """Return the model's final answer."""
    return f"The answer to {question}"


def completion(body: dict[str, Any]) -> dict[str, Any]:
    """Return the model's message for a request to OpenAI's chat completions."""
    messages = body["messages"]
    question = next(question for question in PLANS if any(question in _text(each) for each in messages))
    # Some frameworks send earlier calls as text.
    asked = [each for each in messages if each.get("tool_calls") or "Calling tools" in _text(each)]
    plan = PLANS[question]
    if len(asked) < len(plan):
        return _calling([(f"call_{len(asked)}_{place}", *call) for place, call in enumerate(plan[len(asked)])])
    if any(tool["function"]["name"] == "final_answer" for tool in body.get("tools") or ()):
        return _calling([("call_final", "final_answer", {"answer": answer_to(question)})])
    return {"role": "assistant", "content": answer_to(question)}


def _calling(calls: list[tuple[str, str, dict[str, Any]]]) -> dict[str, Any]:
    functions = [
        {"id": identifier, "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
        for identifier, name, args in calls
    ]
    return {"role": "assistant", "content": None, "tool_calls": functions}


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass

    def do_POST(self) -> None:  # the name that http.server calls
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        message = completion(body)
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        answer = {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": "rules-1",
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": TOKENS,
        }
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def serve() -> str:
    """Start the model and return its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1"
