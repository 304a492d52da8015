"""Notebook output in a browser, with Jupyter's layout: it runs no script and is readable in both themes."""

from pathlib import Path

import pytest

pytest.importorskip("axe_playwright_python", reason="the group `full` is not installed")

from playwright.sync_api import Browser
from support.browsing import OpenedPage
from support.hostile_runs import hostile_run

from graphrag_eval_lc import BenchmarkRun, compare_runs, run_benchmark
from graphrag_eval_lc.demo import DATASET_PATH
from graphrag_eval_lc.demo.agent import create_demo_agent

pytestmark = pytest.mark.full

# JupyterLab's colours for cells, rows and borders, in its light and dark themes.
THEMES = {"light": ("#ffffff", "rgba(0, 0, 0, 0.87)", "#f5f5f5"), "dark": ("#111111", "#ffffff", "#212121")}
_PAGE = """<!doctype html><html lang="en"><head><title>Notebook</title><style>
body {{ background: {0}; color: {1}; font: 14px sans-serif; }}
table {{ border-collapse: collapse; font-size: 12px; table-layout: fixed; }}
td, th {{ text-align: right; vertical-align: middle; padding: 0.5em; white-space: normal; }}
tbody tr:nth-child(odd) {{ background: {2}; }}
</style></head><body><main><h1>Notebook</h1>{3}</main></body></html>"""


def parts(run: BenchmarkRun, other: BenchmarkRun) -> str:
    """Return everything that a notebook shows of two runs."""
    shown = (run, run.results, run.show(run.results[0]["question_id"]), compare_runs(run, other))
    return "<hr>".join(each._repr_html_() for each in shown)


def opened(browser: Browser, folder: Path, html: str, theme: str) -> OpenedPage:
    path = folder / "notebook.html"
    path.write_text(_PAGE.format(*THEMES[theme], html), encoding="utf-8")
    return OpenedPage(browser, path)


def test_tables_are_readable_in_both_themes(browser: Browser, tmp_path: Path) -> None:
    run = run_benchmark(create_demo_agent, DATASET_PATH, progress="off", limit=20)
    other = run_benchmark(create_demo_agent, DATASET_PATH, progress="off", limit=15)
    html = parts(run, other)
    for theme in THEMES:
        page = opened(browser, tmp_path, html, theme)
        assert page.serious_violations() == [], theme
        page.close()


def test_hostile_texts_run_no_script_and_add_no_element(browser: Browser, tmp_path: Path) -> None:
    run, other = hostile_run(tmp_path / "a"), hostile_run(tmp_path / "b", is_better=True)
    page = opened(browser, tmp_path, parts(run, other), "light")
    assert page.complaints == []
    assert page.page.evaluate("window.injected") is None
    assert page.page.locator(".injected, script, a, img, svg, iframe").count() == 0
    page.close()
