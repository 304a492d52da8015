"""MkDocs hooks."""

import shutil
from pathlib import Path
from typing import Any


def on_page_markdown(markdown: str, page: Any, **_: Any) -> None:
    """Rank the reference below the other pages in search results: it contains every word."""
    if page.file.src_uri.startswith("reference/"):
        page.meta.setdefault("search", {"boost": 0.1})


def on_post_build(config: Any) -> None:
    """Copy the pages as Markdown next to their HTML, for the links in ``llms.txt``."""
    docs, site = Path(config["docs_dir"]), Path(config["site_dir"])
    for page in docs.rglob("*.md"):
        copy = site / page.relative_to(docs)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(page, copy)
