"""Loopback servers that record the requests meant for LangSmith or Langfuse, and a dataset."""

import contextlib
import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from support.unruly_server import Seen, response, unruly

SUMS = [
    {
        "template_id": "sums",
        "questions": [
            {
                "id": f"q{number}",
                "question_text": f"{number} + 1?",
                "reference_steps": [[{"name": "add", "args": {}, "output": "2"}]],
            }
            for number in (1, 2, 3)
        ],
    }
]
Answer = tuple[int, Any] | tuple[int, Any, dict[str, str]]


@dataclass
class ToolStub:
    """A server.

    Attributes:
        url: Its address.
        seen: The requests: method, path without query, and the body if it is JSON.
    """

    url: str = ""
    seen: list[tuple[str, str, Any]] = field(default_factory=list)

    def bodies(self, method: str, path: str) -> list[Any]:
        return [body for each, where, body in self.seen if (each, where) == (method, path)]


@contextlib.contextmanager
def tool_stub(answer: Callable[[str, str, Any], Answer]) -> Iterator[ToolStub]:
    stub = ToolStub()

    def answered(seen: Seen) -> Iterator[bytes]:
        path = seen.path.partition("?")[0]
        body: Any = gzip.decompress(seen.body) if seen.headers.get("content-encoding") == "gzip" else seen.body
        with contextlib.suppress(ValueError):
            body = json.loads(body)
        stub.seen.append((seen.method, path, body))
        status, value, *headers = answer(seen.method, seen.path, body)
        more = headers[0] if headers else {}
        yield response(json.dumps(value).encode(), status, content_type="application/json", **more)

    with unruly(answered) as server:
        stub.url = server.url
        yield stub
