"""What the scripts of a page read from it: the JSON in it, unpacked."""

import base64
import gzip
import json
import re
from typing import Any

_DATA = re.compile(r'<script type="(application/json|text/plain)" id="([^"]+)">(.*?)</script>', re.DOTALL)


def page_data(html: str) -> dict[str, Any]:
    """Return the data of a page by the ids of its elements."""
    return {
        name: json.loads(gzip.decompress(base64.b64decode(text)) if kind == "text/plain" else text)
        for kind, name, text in _DATA.findall(html)
    }


def compared_rows(html: str, letter: str = "B") -> list[dict[str, Any]]:
    """Return the rows of a run in the list of a comparison, each with what the questions share and its details."""
    data = page_data(html)
    questions = data["index"]["questions"]
    rows = [{**questions[row["i"]], **row} for row in data["index"]["pairs"][letter]]
    return [row | ({"detail": data[f"chunk-{row['c']}"][row["k"]]} if "c" in row else {}) for row in rows]
