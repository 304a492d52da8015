"""A hook of MkDocs: the pages as Markdown, next to their HTML, for the links of ``llms.txt``."""

import shutil
from pathlib import Path
from typing import Any


def on_post_build(config: Any) -> None:
    """Copy the pages into the built site."""
    docs, site = Path(config["docs_dir"]), Path(config["site_dir"])
    for page in docs.rglob("*.md"):
        copy = site / page.relative_to(docs)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(page, copy)
