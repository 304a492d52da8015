"""A stub of OpenAI's API, to try the judges without a key: a server in this process that compares words.

It counts the words that two texts share, so its scores are not judgements. It answers in the forms that judges ask for,
immediately, and always the same.
"""

import json
import re
import threading
import zlib
from collections.abc import Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

_MOST_MISSING: Final = 0.4
_CHARACTERS_PER_TOKEN: Final = 4
_DIMENSIONS: Final = 64


class StubJudge:
    """The server. It answers until it is closed, or the process ends.

    Attributes:
        environment: The environment variables with which OpenAI's client finds it: its address, and a made-up key.

    Example:
        >>> stub = StubJudge()
        >>> sorted(stub.environment)
        ['OPENAI_API_KEY', 'OPENAI_BASE_URL']
        >>> stub.close()
    """

    def __init__(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self._server.serve_forever, name="stub judge", daemon=True).start()
        address = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self.environment = {"OPENAI_BASE_URL": address, "OPENAI_API_KEY": "none"}

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        given = _completion(body) if self.path.endswith("/chat/completions") else _embeddings(body)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps({"model": body["model"], **given}).encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


def _completion(body: Mapping[str, Any]) -> dict[str, Any]:
    asked, message = body["response_format"]["json_schema"], body["messages"][-1]["content"]
    outputs = list(asked["schema"]["properties"])
    fenced = re.findall(r"<(\w+)-([0-9a-f]{16})>\n(.*?)\n</\1-\2>", message, re.DOTALL)
    content = json.dumps(verdict_on(asked["name"], {name: text for name, _, text in fenced}, outputs))
    choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": content}}
    choices = [{"index": index, **choice} for index in range(body.get("n", 1))]
    usage = {"prompt_tokens": _tokens(body["messages"]), "completion_tokens": _tokens(content)}
    return {"choices": choices, "usage": usage}


def _embeddings(body: Mapping[str, Any]) -> dict[str, Any]:
    bags = [[zlib.crc32(word.encode()) % _DIMENSIONS for word in _words(text)] for text in body["input"]]
    vectors = [[bag.count(place) for place in range(_DIMENSIONS)] for bag in bags]
    data = [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    return {"data": data, "usage": {"prompt_tokens": _tokens(body["input"])}}


def _tokens(value: Any) -> int:
    return len(str(value)) // _CHARACTERS_PER_TOKEN


def _words(text: str) -> set[str]:
    return {word for word in _all_words(text) if len(word) > 3 or word.isdigit()}


def _all_words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def _claims(text: str) -> list[str]:
    return [part for part in re.split(r"(?<=[.;:])\s+", text) if len(part.split()) > 2 and part[-1] != ":"] or [text]


def _states(text: str, claim: str) -> bool:
    """Return whether a text has most of a claim's words, and all of its numbers."""
    wanted = _words(claim) or _all_words(claim)  # a claim may have only short words, such as a name
    missing = wanted - _all_words(text)
    return len(missing) <= _MOST_MISSING * len(wanted) and not any(map(str.isdigit, missing))


def verdict_on(form: str, texts: Mapping[str, str], outputs: Iterable[str] = ()) -> dict[str, Any]:
    """Return what the stub answers."""
    answer = texts.get("actual_answer") or texts.get("answer", "")
    if form == "ClaimLists":
        reference = texts["reference_answer"]
        right = [claim for claim in _claims(answer) if _states(reference, claim)]
        wrong = [claim for claim in _claims(answer) if claim not in right]
        missing = [claim for claim in _claims(reference) if not _states(answer, claim)]
        reason = f"{len(right)} claims agree, {len(wrong)} do not, {len(missing)} are missing."
        covered = [claim for claim in _claims(reference) if claim not in missing]
        lists = {"true_positives": right, "false_positives": wrong, "covered_claims": covered}
        return {"reason": reason, **lists, "false_negatives": missing}
    if form == "ContextVerdict":
        useful = [claim for claim in _claims(answer) if _states(texts["context"], claim)]
        return {"reason": useful[0] if useful else "It states nothing of the answer.", "verdict": int(bool(useful))}
    if form == "Statements":
        contexts = " ".join(text for name, text in texts.items() if name.startswith("context"))
        found = [(claim, _states(contexts, claim)) for claim in _claims(texts["reference_answer"])]
        return {"statements": [{"statement": claim, "reason": "", "attributed": int(is_in)} for claim, is_in in found]}
    if form == "GeneratedQuestions":
        return {"questions": [(answer.splitlines() or [""])[0]] * 3, "noncommittal": int("cannot" in answer)}
    # A user's custom evaluation: whatever it asks for, the answer is how much is about the question.
    claims = _claims(answer or " ".join(text for name, text in texts.items() if name != "question"))
    focused = [claim for claim in claims if _words(claim) & _words(texts.get("question", ""))]
    reason = f"{len(focused)} of {len(claims)} claims share a word with the question."
    return {name: reason if name.endswith("_reason") else len(focused) / len(claims) for name in outputs}
