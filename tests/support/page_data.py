"""Build the page of a comparison, and read the JSON data that a page's scripts use."""

import base64
import gzip
import json
import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from graphrag_eval_lc.compare import GateResult, RunComparison
from graphrag_eval_lc.report.comparison_page import write_comparison

_DATA = re.compile(r'<script type="(application/json|text/plain)" id="([^"]+)">(.*?)</script>', re.DOTALL)


def comparison_html(comparison: RunComparison, gates: Sequence[GateResult] = ()) -> str:
    with TemporaryDirectory() as folder:
        return write_comparison(comparison, Path(folder, "page.html"), gates).read_text(encoding="utf-8")


def page_data(html: str) -> dict[str, Any]:
    """Return a page's data by element id."""
    return {
        name: json.loads(gzip.decompress(base64.b64decode(text)) if kind == "text/plain" else text)
        for kind, name, text in _DATA.findall(html)
    }


def compared_rows(html: str, letter: str = "B") -> list[dict[str, Any]]:
    """Return one run's rows in a comparison, each merged with the question's shared data and details."""
    data = page_data(html)
    questions = data["index"]["questions"]
    rows = [{**questions[row["i"]], **row} for row in data["index"]["pairs"][letter]]
    return [row | ({"detail": data[f"chunk-{row['c']}"][row["k"]]} if "c" in row else {}) for row in rows]
