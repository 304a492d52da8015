"""The documentation's site: it is built strictly, loads nothing from elsewhere, and is searched without a server."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.browsing import started_browser

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="the group docs is not installed")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with started_browser() as browser:
        yield browser


def test_every_page_of_the_navigation_is_built(site: Path) -> None:
    pages = [str(path.relative_to(site)) for path in site.rglob("*.html")]
    for name in ("index.html", "start/demo.html", "reference/cli.html", "why/matching.html", "how-to/compare.html"):
        assert name in pages
    assert (site / "llms.txt").is_file()
    assert not (site / "made_by").exists()


def test_no_page_names_anything_to_be_loaded_from_elsewhere(site: Path) -> None:
    scripts = r"<(?:script|img|iframe|source)[^>]+src=\"(?:https?:)?//[^\"]+"
    styles = r"<link[^>]+rel=\"stylesheet\"[^>]+https?:"
    loading = re.compile(f"{scripts}|{styles}")
    assert [(path.name, found[0]) for path in site.rglob("*.html") if (found := loading.search(path.read_text()))] == []


def test_pages_opened_as_files_load_nothing_from_elsewhere_and_are_searched(site: Path, browser: Any) -> None:
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for name in ("index.html", "reference/api/metrics.html", "reference/metrics.html", "how-to/capture.html"):
        page.goto((site / name).as_uri())
        page.wait_for_load_state("networkidle")
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    page.keyboard.press("f")
    page.keyboard.type("nDCG", delay=30)
    page.wait_for_function("document.querySelectorAll('.md-search-result__item').length > 0")
    assert "Metrics" in page.inner_text("[data-md-component=search-result]")
