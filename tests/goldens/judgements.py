"""The answers of the judge stub, which depend only on the request."""

from typing import Any
from zlib import crc32

from support.openai_stub import StubRequest


def judgement(request: StubRequest) -> dict[str, Any]:
    """Return an answer that depends only on the request."""
    properties = (request.schema or {}).get("properties", {})
    chance = crc32(request.user.encode()) % 4
    if chance == 0 and ("true_positives" in properties or "query_economy" in properties):
        return {"reason": "not of the form"}
    if "true_positives" in properties:
        claims = ["one", "two", "three"]
        found = {"true_positives": claims[:chance], "false_positives": claims[chance:], "false_negatives": claims[:1]}
        return {"reason": f"{chance} of three", **found}
    if "statements" in properties:
        attributed = [{"statement": f"s{n}", "reason": "so", "attributed": int(n < chance)} for n in range(3)]
        return {"statements": attributed}
    if "verdict" in properties:
        return {"reason": "so", "verdict": chance % 2}
    if "noncommittal" in properties:
        return {"questions": ["Where?"] * 3, "noncommittal": 0}
    return {name: "so" if name.endswith("reason") else chance / 4 for name in properties}
