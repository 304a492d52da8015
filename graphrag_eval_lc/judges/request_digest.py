"""What a request to a model is known by in the cache."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def request_digest(model: str, request: Mapping[str, Any]) -> str:
    """Give the SHA-256 of a model's name and of all that determines its answer, as 64 hexadecimal digits.

    Values that JSON does not have count by their text.

    Example:
        >>> request_digest("openai:gpt-4o-mini", {"user": "Why?", "n": 1})[:16]
        '4f617dafa05c418f'
    """
    text = json.dumps([model, request], sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()
