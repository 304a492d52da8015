"""The documentation site builds strictly, loads nothing from other hosts, and can be searched without a server."""

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
# Typical searches, and the page that must be the first result.
SEARCHES = {
    "resume": "how-to/benchmark",
    "retry": "how-to/benchmark",
    "timeout": "how-to/benchmark",
    "rate limit": "how-to/benchmark",
    "cost": "how-to/judges",
    "cache": "how-to/judges",
    "llm judge": "why/judging",
    "crash": "how-to/isolation",
    "distributed": "how-to/ray",
    "slurm": "how-to/shards",
    "regression": "how-to/compare",
    "threshold": "how-to/compare",
    "cypher": "how-to/rows",
    "neo4j": "how-to/rows",
    "langsmith": "how-to/langsmith",
    "opentelemetry": "how-to/traces",
    "github actions": "how-to/ci",
    "pytest": "how-to/pytest",
    "jupyter": "how-to/notebooks",
    "custom metric": "how-to/metric",
    "recall@k": "how-to/retrieval",
    "callback handler": "how-to/capture",
    "privacy": "why/kept",
    "confidence interval": "why/intervals",
    "install": "start/install",
    "migrate": "moving-from-graphrag-eval",
    "run_benchmark": "reference/api/graphrag_eval_lc",
}
FIRST_RESULT = ".md-search-result__item .md-search-result__link"
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


def test_no_page_references_external_resources(site: Path) -> None:
    scripts = r"<(?:script|img|iframe|source)[^>]+src=\"(?:https?:)?//[^\"]+"
    styles = r"<link[^>]+rel=\"stylesheet\"[^>]+https?:"
    loading = re.compile(f"{scripts}|{styles}")
    assert [(path.name, found[0]) for path in site.rglob("*.html") if (found := loading.search(path.read_text()))] == []


def test_pages_opened_as_files_load_nothing_external_and_can_be_searched(site: Path, browser: Any) -> None:
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for name in ("index.html", "reference/api/metrics.html", "reference/metrics.html", "how-to/capture.html"):
        page.goto((site / name).as_uri())
        page.wait_for_timeout(1_000)  # requests of scripts after the page is loaded
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    page.focus("[data-md-component=search-query]")
    page.keyboard.type("nDCG", delay=30)
    page.wait_for_selector("[data-md-component=search-result] >> text=Metrics", state="attached")


def test_typical_searches_find_the_right_page(site: Path, browser: Any) -> None:
    page = browser.new_page()
    page.goto((site / "index.html").as_uri())
    page.focus("[data-md-component=search-query]")
    found: dict[str, str] = {}
    for words in SEARCHES:
        page.fill("[data-md-component=search-query]", "")
        page.wait_for_selector(FIRST_RESULT, state="detached")
        page.keyboard.type(words)
        page.wait_for_selector(FIRST_RESULT, state="attached")
        page.wait_for_timeout(300)  # the results for the last letter
        target = str(page.get_attribute(FIRST_RESULT, "href"))
        found[words] = target.partition(f"{site.name}/")[2].partition(".html")[0]
    assert found == SEARCHES


def test_copy_buttons_skip_prompt_and_output(site: Path, browser: Any) -> None:
    page = browser.new_page()
    page.goto((site / "start" / "own-agent.html").as_uri())
    copied = """() => [...document.querySelectorAll('.highlight code:has(.gp)')].map(code => {
        code.setAttribute('data-md-copying', '');  // as the theme's button does
        return code.innerText.trim();
    })"""
    blocks = page.evaluate(copied)
    assert "graphrag-eval-lc run -o runs/first" in blocks
    assert [block for block in blocks if block.startswith("$") or "Using graphrag_eval.yaml" in block] == []


def test_links_of_llms_txt_exist(site: Path) -> None:
    links = re.findall(r"\]\(([^)]+)\)", (site / "llms.txt").read_text(encoding="utf-8"))
    assert len(links) > 30
    assert [link for link in links if not (site / link).is_file()] == []
