"""The page of a comparison, and what the scripts of a page read from it: the JSON in it, unpacked."""

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
    """Return the page that is written of a comparison."""
    with TemporaryDirectory() as folder:
        return write_comparison(comparison, Path(folder, "page.html"), gates).read_text(encoding="utf-8")


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
