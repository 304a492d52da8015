"""Takes the documentation's pictures from a real run: ``python docs/made_by/pictures.py``.

It needs the group ``full`` and a Chromium on the PATH (or at ``CHROMIUM``).
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import ViewportSize, sync_playwright

from graphrag_eval_lc import run_benchmark, write_report
from graphrag_eval_lc.demo import DATASET_PATH
from graphrag_eval_lc.demo.agent import create_demo_agent

PICTURES = Path(__file__).parents[1] / "pictures"
SIZE: ViewportSize = {"width": 1200, "height": 900}


def report_of_demo(folder: Path) -> Path:
    """Run the demo's agent on the demo's dataset, and return the report."""
    run_benchmark(create_demo_agent(), DATASET_PATH, output_dir=folder / "demo", label="demo", progress=False)
    return write_report(folder / "demo")


def take_picture(page: str, picture: Path) -> None:
    """Take a screenshot of a page."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        sys.exit("There is no chromium on the PATH; name one with CHROMIUM=/path/to/it.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        tab = browser.new_page(viewport=SIZE, color_scheme="light")
        tab.goto(page)
        tab.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        report = report_of_demo(Path(folder)).as_uri()
        take_picture(report, PICTURES / "report.png")
        take_picture(f"{report}#q=transformers_kristiansand", PICTURES / "question.png")
