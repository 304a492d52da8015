"""Writes the generated pages: the reference, and llms.txt. Run it as ``python docs/made_by/pages.py``."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

DOCS = Path(__file__).parents[1]
if str(DOCS) not in sys.path:
    sys.path.insert(0, str(DOCS))

from made_by.api_pages import api_pages
from made_by.cli_page import cli_page
from made_by.config_page import config_page
from made_by.formats_page import formats_page
from made_by.llms_page import llms_page
from made_by.metrics_page import metrics_page

PAGES: Mapping[str, Callable[[], str]] = {
    "reference/cli.md": cli_page,
    "reference/config.md": config_page,
    "reference/metrics.md": metrics_page,
    "reference/formats.md": formats_page,
    **api_pages(),
    "llms.txt": llms_page,  # last, since it quotes the others
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
